/**
 * What else a user of the transport pays for: registered classes, looking for them, and the smallest frames.
 *
 * `node extras.js '<order as JSON>'`, the samples as JSON on standard output: row → contender → ns per round.
 */
import assert from 'node:assert/strict'
import { register } from 'corespun/transport'
import { FrameWriter, readFrame } from '../../harness/internal.ts'
import { writeFirstValues } from './codecs.ts'
import { OBJECTS } from './payloads.ts'
import { slice } from './slice.ts'

/** How long and how often. */
export interface ExtrasOrder {
  readonly rounds: number
  readonly sliceMs: number
}

/** Nanoseconds per call, one per round. */
export type Extras = Record<string, Record<string, number[]>>

const CLASSES = 1000

class Account {
  id: number
  owner: string
  cents: number
  isOpen: boolean
  limit: number | null
  constructor(id: number) {
    this.id = id
    this.owner = `owner ${id}`
    this.cents = id * 331
    this.isOpen = id % 2 === 0
    this.limit = id % 3 === 0 ? null : id
  }
}

const scratch = new Uint8Array(1 << 16)
const writer = new FrameWriter(scratch)
writeFirstValues(writer)
type Case = readonly [row: string, contender: string, run: (index: number) => unknown]

function cases(row: string, values: readonly unknown[]): Case[] {
  const frames = values.map((value) => {
    for (let use = 0; use < 40; use += 1) writer.write(value, 0)
    const frame = scratch.slice(0, writer.write(value, 0))
    assert.deepStrictEqual(readFrame(frame, 0, frame.length), value)
    return frame
  })
  const texts = values.map((value) => JSON.stringify(value))
  return [
    [`${row}, encode`, 'JSON', (index) => JSON.stringify(values[index])],
    [`${row}, encode`, 'corespun', (index) => writer.write(values[index], 0)],
    [`${row}, decode`, 'JSON', (index) => JSON.parse(texts[index]) as unknown],
    [`${row}, decode`, 'corespun', (index) => readFrame(frames[index], 0, frames[index].length)],
  ]
}

function measure(all: readonly Case[], order: ExtrasOrder, into: Extras): void {
  for (const [, , run] of all) slice(run, order.sliceMs * 5)
  for (let round = 0; round < order.rounds; round += 1) {
    for (const [row, contender, run] of all)
      ((into[row] ??= {})[contender] ??= []).push(slice(run, order.sliceMs))
  }
}

/** One more class with a prototype of its own. */
function newClass(): new () => object {
  return class {
    field = 0
  }
}

function main(order: ExtrasOrder): Extras {
  const each = <Value>(make: (index: number) => Value): Value[] =>
    Array.from({ length: OBJECTS }, (_, index) => make(index))
  const found: Extras = {}
  const small = [
    ...cases(
      '[5]',
      each((index) => [index + 5]),
    ),
    ...cases(
      "['abc', 3]",
      each((index) => ['abc', index]),
    ),
    ...cases(
      'undefined in an array',
      each(() => [null]),
    ),
  ]
  measure(small, order, found)
  register(Account, { cid: 'bench.Account' })
  const tens = each((index) => Array.from({ length: 10 }, (_, at) => new Account(index * 10 + at)))
  const classes = [
    ...cases('10 objects of a class', tens),
    ...cases(
      'the same as plain objects',
      tens.map((ten) => ten.map((account) => ({ ...account }))),
    ),
  ]
  measure(classes, order, found)
  for (let at = 0; at < CLASSES; at += 1) register(newClass(), { cid: `bench.${at}` })
  measure(
    cases(
      `plain, ${CLASSES} classes registered`,
      tens.map((ten) => ten.map((account) => ({ ...account }))),
    ),
    order,
    found,
  )
  return found
}

process.stdout.write(JSON.stringify(main(JSON.parse(process.argv[2]) as ExtrasOrder)))
