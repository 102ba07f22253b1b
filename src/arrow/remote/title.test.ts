/**
 * What profiles call arrows that run in zones.
 * That samples have it is in src/observe/profile.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ArrowNode } from '../build/node.ts'
import { lift, liftAsync, succeed } from '../index.ts'
import { titleOf } from './title.ts'

const parse = (text: string): string[] => text.split(' ')
const count = (words: string[]): number => words.length
const loads = async (text: string): Promise<string> => text

const TABLE: readonly (readonly [title: string, arrow: object])[] = [
  ['words', lift(parse).named('words')],
  ['parse', lift(parse)],
  ['parse, count', lift(parse).andThen(lift(count))],
  ['words, count', lift(parse).named('words').andThen(lift(count))],
  ['loads, parse', liftAsync(loads).andThen(lift(parse))],
  ['whole', lift(parse).andThen(lift(count)).named('whole')],
  ['without a name', succeed(1)],
]

for (const [title, arrow] of TABLE)
  test(title, () => assert.equal(titleOf(arrow as unknown as ArrowNode), title))

test('of many stages the first ones', () => {
  let arrow = lift(parse).andThen(lift((words: string[]) => words.join(' ')))
  for (let depth = 0; depth < 10; depth++) arrow = arrow.andThen(arrow)
  assert.equal(titleOf(arrow as unknown as ArrowNode).split(', ').length, 4)
})
