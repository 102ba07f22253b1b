/**
 * What the public surface lacks of documentation: planted models and reports of API Extractor, each with what
 * must be found in it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { undocumented } from './documented.mjs'

const EXAMPLE = '/**\n * Does it.\n *\n * @example\n * ```ts\n * it()\n * ```\n */\n'

/** Findings about entry points: name → their members, each a kind and doc comments, one for each overload. */
function check(doors, expected, report = '') {
  const entries = Object.entries(doors).map(([door, members]) => {
    const list = Object.entries(members).flatMap(([name, [kind, ...comments]]) =>
      comments.map((docComment) => ({ name, kind, docComment })),
    )
    return [door, { model: { members: [{ kind: 'EntryPoint', members: list }] }, report }]
  })
  const found = undocumented(new Map(entries))
  const heads = found.map((finding) => /^api\/(.*?)(?: needs|$)/.exec(finding)[1])
  assert.deepEqual(heads, expected)
}

test('functions, classes and constants need an example, types do not', () => {
  const functions = { a: ['Function', EXAMPLE], b: ['Function', '/**\n * Without.\n */\n'] }
  const values = { ...functions, C: ['Class', ''], d: ['Variable', ''] }
  const members = { ...values, E: ['Interface', ''], F: ['TypeAlias', ''] }
  check({ zone: members }, ['zone.api.md: C', 'zone.api.md: b', 'zone.api.md: d'])
})

test('one overload has the example of all', () => check({ zone: { a: ['Function', '', EXAMPLE, ''] } }, []))

test('what the root exports again is looked at where it comes from', () => {
  const zone = { a: ['Function', ''] }
  check({ index: { ...zone, b: ['Function', ''] }, zone }, ['index.api.md: b', 'zone.api.md: a'])
})

test('no member is undocumented', () => {
  check({ zone: {} }, ['zone.api.md: a member is "(undocumented)"'], '// (undocumented)\na: string\n')
})
