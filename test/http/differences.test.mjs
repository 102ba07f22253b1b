/**
 * Each place where the core on node:http differs is argued in the design, in the words of the table.
 *
 * A difference without an argument, or an argument without a difference, fails.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { BODIES } from '../../dist/http/conformance/bodies.js'
import { CONNECTIONS } from '../../dist/http/conformance/connections.js'
import { FIELDS } from '../../dist/http/conformance/fields.js'
import { REQUEST_LINES } from '../../dist/http/conformance/request-line.js'

const design = readFileSync(new URL('../../docs/design/http-app.md', import.meta.url), 'utf8').replaceAll(
  /\s+/g,
  ' ',
)
const cases = [...REQUEST_LINES, ...FIELDS, ...BODIES, ...CONNECTIONS]

test('every difference between the cores is argued', () => {
  for (const { name, node } of cases) {
    if (node !== undefined) assert.ok(design.includes(node.why), `${name}: ${node.why}`)
  }
})

test('the design names the number of cases', () => {
  assert.equal(Number(/(\d+) cases as data/.exec(design)?.[1]), cases.length)
})
