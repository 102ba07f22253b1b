/**
 * What the generator writes: what need not exist is not made, and long rows of calls are loops.
 *
 * That code does what closures do is shown by differential.test.ts; here its text is read.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generate } from './generate.ts'
import { type Arrow, id, lift, swap, test as testing, whileDo } from '../index.ts'

const increment = lift((x: number) => x + 1)
const double = lift((x: number) => x * 2)
const positive = lift((x: number) => x > 0)

type Sync = Arrow<never, unknown, never, 'sync'>

/** The statements of an arrow's code. */
function statements(arrow: Sync): string[] {
  const lines = String(generate([arrow])).split('\n')
  assert.deepEqual([lines[0], lines.at(-1)], ['function arrow(x) {', '}'])
  return lines.slice(1, -1).filter((line) => line !== '')
}

test('test and choice are an if, without an Either', () => {
  const arrow = testing(positive).andThen(increment.choice(double))
  assert.deepEqual(statements(arrow), [
    'const v0 = p0(x)',
    'const v1 = !!v0',
    'let v2',
    'if (v1) {',
    'const v3 = p1(x)',
    'v2 = v3',
    '} else {',
    'const v4 = p2(x)',
    'v2 = v4',
    '}',
    'return v2',
  ])
  assert.deepEqual([generate([arrow])?.(3), generate([arrow])?.(-3)], [4, -6])
  // One that somebody asks for is made.
  assert.match(statements(testing(positive)).join('\n'), /kind: v1 \? 'left' : 'right'/)
})

test('identities leave no statement', () => {
  const plain = statements(increment)
  assert.deepEqual(plain, ['const v0 = p0(x)', 'return v0'])
  const wrapped = id<number>().andThen(id()).andThen(increment).andThen(id<number>().andThen(id()))
  assert.deepEqual(statements(wrapped), plain)
  assert.deepEqual(statements(id().andThen(id())), ['return x'])
  const swapped = swap<number, number>().andThen(swap<number, number>()).andThen(id<number>().first())
  assert.deepEqual(statements(swapped), [
    'const v0 = x[0]',
    'const v1 = x[1]',
    'const v2 = [v0, v1]',
    'return v2',
  ])
  assert.deepEqual(statements(increment.andThen(id<number>().keepInput())), plain)
})

test('whileDo is a loop', () => {
  const below = lift((x: number) => x < 100)
  assert.deepEqual(statements(whileDo(below, double.andThen(increment))), [
    'let v0 = x',
    'for (;;) {',
    'const v1 = p0(v0)',
    'if (!v1) break',
    'const v2 = p1(v0)',
    'const v3 = p2(v2)',
    'v0 = v3',
    '}',
    'return v0',
  ])
  assert.equal(generate([whileDo(below, double.andThen(increment))])?.(1), 127)
})

const LOOP = /^for \(const v\d+ = p\d+\.length - 3; .* \+= 4\) \{$/
const FOUR = /^v\d+ = k\(h\(g\(f\(v\d+\)\)\)\)$/
const REST = /^for \(; v\d+ < p\d+\.length; v\d+\+\+\) \{$/

/** A row that writes down which function was called when: of one text, or of two by turns. */
function row(length: number, texts: 1 | 2): Arrow<string, string, never, 'sync'> {
  const letters = (at: number): ((text: string) => string) =>
    at % texts === 0 ? (text) => `${text} ${at}` : (text) => text.concat(` ${at}`)
  let arrow = lift(letters(0))
  for (let at = 1; at < length; at += 1) arrow = arrow.andThen(lift(letters(at)))
  return arrow
}

const numbers = (length: number): string => Array.from({ length }, (_, at) => ` ${at}`).join('')

function check(length: number, texts: 1 | 2, isLoop: boolean): void {
  const arrow = row(length, texts)
  const lines = statements(arrow)
  for (const part of [LOOP, FOUR, REST])
    assert.equal(lines.filter((line) => part.test(line)).length, isLoop ? 1 : 0, `${part}, ${length} calls`)
  assert.equal(generate([arrow])?.(''), numbers(length), `${length} calls`)
  assert.equal(arrow.compiled().run(''), numbers(length), `${length} calls, compiled`)
}

test('24 and more calls of one text are a loop with four in each turn, and a rest', () => {
  for (let length = 1; length < 24; length += 1) check(length, 1, false)
  for (let length = 24; length < 40; length += 1) check(length, 1, true)
  for (const length of [63, 64, 65, 66, 67, 999, 1000, 1001, 1002]) check(length, 1, true)
})

test('calls of different texts are a loop from 129 on', () => {
  for (const length of [24, 31, 127, 128]) check(length, 2, false)
  for (const length of [129, 130, 131, 132, 133]) check(length, 2, true)
})

test('a row in the midst of others, and two of them, are loops of their own', () => {
  const again = lift((text: string) => `${text}, again`)
  const arrow = lift((x: number) => String(x))
    .andThen(row(25, 1))
    .andThen(again)
    .andThen(row(30, 1))
  assert.equal(statements(arrow).filter((line) => LOOP.test(line)).length, 2)
  assert.equal(generate([arrow])?.(7), `7${numbers(25)}, again${numbers(30)}`)
})
