/**
 * To which label the time of a callback without a label belongs.
 *
 * The callbacks take a while each, so it shows in the times.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { here } from '../zone/internal.ts'
import { type LabelTimes, begin, end } from './labels.ts'

const BURN_MS = 30

function burn(): void {
  const endMs = performance.now() + BURN_MS
  while (performance.now() < endMs);
}

/** How long each label lasted until the last change, ms. */
function spans({ names, times, labels }: LabelTimes): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [index, time] of times.slice(0, -1).entries()) {
    assert.ok(times[index + 1] >= time, 'times rise')
    const name = names[labels[index]]
    sums.set(name, (sums.get(name) ?? 0) + (times[index + 1] - time) / 1000)
  }
  return sums
}

/** Burns in a timer of nobody's, and returns the time by label. */
async function burned(then: () => void, during: () => Promise<void>): Promise<Map<string, number>> {
  begin()
  const timer = new Promise<void>((resolve) =>
    setTimeout(() => {
      burn()
      then()
      resolve()
    }, 5),
  )
  await during()
  await timer
  await new Promise((resolve) => setImmediate(resolve))
  here.labels!.run('the last', () => {})
  return spans(JSON.parse(end()) as LabelTimes)
}

test('a callback without a label that settles what a label waits for belongs to that', async () => {
  const settled = resolvers()
  const found = await burned(settled.resolve, async () =>
    here.labels!.run('waits', () => awaited(settled.promise)),
  )
  assert.ok((found.get('waits') ?? 0) >= BURN_MS, JSON.stringify([...found]))
})

test('one that settles nothing belongs to none, though a label has callbacks of its own', async () => {
  const found = await burned(
    () => {},
    async () => here.labels!.run('ticks', () => new Promise((resolve) => setTimeout(resolve, 100))),
  )
  assert.ok((found.get('') ?? 0) >= BURN_MS, JSON.stringify([...found]))
})

test('what follows a label has that of what has run last', async () => {
  begin()
  const { labels } = here
  labels!.run('first', () => {})
  labels!.run('second', () => {})
  await new Promise<void>((resolve) =>
    labels!.follow(() =>
      setTimeout(() => {
        burn()
        resolve()
      }, 1),
    ),
  )
  labels!.run('the last', () => {})
  assert.ok((spans(JSON.parse(end()) as LabelTimes).get('second') ?? 0) >= BURN_MS)
})

async function awaited(promise: Promise<void>): Promise<void> {
  await promise
}

function resolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve!: () => void
  const promise = new Promise<void>((settle) => (resolve = settle))
  return { promise, resolve }
}
