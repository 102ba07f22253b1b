/**
 * What the public surface lacks of documentation, on planted models and reports of API Extractor: which kinds
 * need an example, and what a list of exceptions allows.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lackingOf, undocumented } from './documented.mjs'

const EXAMPLE = '/**\n * Does it.\n *\n * @example\n * ```ts\n * it()\n * ```\n */\n'

/** An entry point with these members: name → its kind and its doc comments, one for each overload. */
function door(members, report = '') {
  const list = Object.entries(members).flatMap(([name, [kind, ...comments]]) =>
    comments.map((docComment) => ({ name, kind, docComment })),
  )
  return { model: { members: [{ kind: 'EntryPoint', members: list }] }, report }
}

test('functions, classes and constants need an example, types do not', () => {
  const members = {
    a: ['Function', EXAMPLE],
    b: ['Function', '/**\n * Without.\n */\n'],
    C: ['Class', ''],
    d: ['Variable', ''],
    E: ['Interface', ''],
    F: ['TypeAlias', ''],
  }
  const { zone } = lackingOf(new Map([['zone', door(members)]]))
  assert.deepEqual(zone, { undocumented: 0, withoutExample: ['C', 'b', 'd'] })
})

test('one overload has the example of all', () => {
  const { zone } = lackingOf(new Map([['zone', door({ a: ['Function', '', EXAMPLE, ''] })]]))
  assert.deepEqual(zone.withoutExample, [])
})

test('what the root exports again is looked at where it comes from', () => {
  const doors = new Map([
    ['index', door({ a: ['Function', ''], b: ['Function', ''] })],
    ['zone', door({ a: ['Function', ''] })],
  ])
  const { index, zone } = lackingOf(doors)
  assert.deepEqual([index.withoutExample, zone.withoutExample], [['b'], ['a']])
})

test('what is listed may lack it, and nothing else', () => {
  const report = '// (undocumented)\na: string\n// (undocumented)\nb: string\n'
  const lacking = lackingOf(new Map([['zone', door({ a: ['Function', ''] }, report)]]))
  assert.deepEqual(undocumented(lacking, { zone: { undocumented: 2, withoutExample: ['a', 'b'] } }), [])
  assert.deepEqual(undocumented(lacking, { zone: { undocumented: 1, withoutExample: ['b'] } }), [
    'api/zone.api.md: a needs a doc comment with an @example',
    'api/zone.api.md: "(undocumented)" occurs 2 times, at most 1',
  ])
  assert.equal(undocumented(lacking, {}).length, 2)
})
