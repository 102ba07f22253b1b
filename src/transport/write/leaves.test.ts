/**
 * Leaves met twice are found whatever their number and content, and others are not.
 *
 * The oracle is a Set of all leaves.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decode, encode } from '../codec.ts'
import { setFirstLeaves } from './kinds.ts'
import { areDistinct } from './leaves.ts'
import '../tables.test.support.ts'

/** Compare the answer for leaves of these contents with the oracle's; `repeated` has pairs of one object. */
function check(contents: readonly string[], repeated: readonly (readonly [first: number, last: number])[]) {
  const objects = contents.map(() => ({}))
  for (const [first, last] of repeated) objects[last] = objects[first]
  const from = new Int32Array(contents.length)
  const to = new Int32Array(contents.length)
  let bytes = ''
  for (const [leaf, content] of contents.entries()) {
    from[leaf] = bytes.length
    bytes += content
    to[leaf] = bytes.length
  }
  const expected = new Set(objects).size === objects.length
  assert.equal(areDistinct({ objects, from, to }, Buffer.from(bytes, 'latin1'), contents.length), expected)
}

const COUNTS = [2, 32, 33, 129, 1000, 4095, 4096, 20_000]
const numbered = (count: number) => Array.from({ length: count }, (_, leaf) => `leaf ${leaf}`)

for (const count of COUNTS) {
  test(`${count} leaves of different content are distinct`, () => check(numbered(count), []))
  test(`${count} leaves of equal content are distinct`, () =>
    check(new Array<string>(count).fill('alike'), []))
  test(`${count} leaves of no content are distinct`, () => check(new Array<string>(count).fill(''), []))
  test(`one of ${count} leaves that is met twice is found`, () => {
    for (const [first, last] of [
      [0, count - 1],
      [0, 1],
      [count >> 1, count - 1],
    ]) {
      const contents = numbered(count)
      contents[last] = contents[first]
      check(contents, [[first, last]])
      check(new Array<string>(count).fill('alike'), [[first, last]])
    }
  })
}

test('leaves of an earlier call leave nothing behind', () => {
  check(new Array<string>(3000).fill('alike'), [])
  check(numbered(3000), [])
  check(numbered(100), [])
})

/** `object` at both ends of `others` other objects, encoded and decoded. */
function atBothEnds(object: object, others: number, plainLeaves: number): [first: unknown, last: unknown] {
  const between = Array.from({ length: others }, (_, id) => ({ id, name: `n${id}` }))
  setFirstLeaves(plainLeaves)
  const far = decode(encode([object, ...between, object])) as unknown[]
  return [far[0], far[others + 1]]
}

for (const others of [10, 40, 200, 1100, 3000]) {
  for (const [way, plainLeaves] of [
    ['by shapes', 0],
    ['by plain loops at first', Infinity],
  ] as const) {
    test(`an object before and after ${others} others is one object, ${way}`, () => {
      for (let round = 0; round < 5; round++) {
        const key = `key of ${others}, ${way}, ${round}`
        for (const object of [
          { [key]: round, name: 'new keys' },
          { id: -1, name: 'the keys of all others' },
        ]) {
          const [first, last] = atBothEnds(object, others, plainLeaves)
          assert.deepEqual(first, object)
          assert.equal(first, last)
        }
      }
    })
  }
}
