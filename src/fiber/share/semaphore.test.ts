/**
 * Semaphores and read-write locks against an oracle of arrays: who holds what when, with interruptions.
 *
 * And what an interruption at the very moment of a grant does: no permit is lost.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  RwLock,
  Semaphore,
  SynchronizedRef,
  dump,
  exitOf,
  fail,
  fork,
  never,
  sleep,
  yieldNow,
} from '../index.ts'
import { type Actor, type Outcome, crowds, play, scripts } from './actors.test.support.ts'

interface Use {
  readonly permits: number
  readonly holdMs: number
}

const PERMITS = 3

const uses = fc.record({ permits: fc.integer({ min: 1, max: PERMITS }), holdMs: fc.nat(12) })

/** The slow way: all events in order, a list of those who wait. */
function oracle(actors: readonly Actor<Use>[]): Outcome[] {
  const outcomes: Outcome[] = []
  const line: number[] = []
  const endsMs = new Map<number, number>()
  let free = PERMITS
  const serve = (nowMs: number): void => {
    while (line.length > 0 && actors[line[0]].does.permits <= free) {
      const next = line.shift() as number
      free -= actors[next].does.permits
      endsMs.set(next, nowMs + actors[next].does.holdMs)
    }
  }
  for (;;) {
    const open = actors.flatMap(({ atMs, cutMs }, index) => {
      if (outcomes[index] !== undefined) return []
      const endMs = endsMs.get(index)
      const arrives = endMs === undefined && !line.includes(index) ? atMs : Infinity
      return [
        { ms: arrives, index, what: 'arrives' },
        { ms: endMs ?? Infinity, index, what: 'success' },
        { ms: cutMs, index, what: 'interruption' },
      ]
    })
    const [first] = open.sort((one, two) => one.ms - two.ms)
    if (first === undefined) return outcomes
    const { ms, index, what } = first
    if (what === 'arrives') line.push(index)
    else {
      outcomes[index] = { kind: what as Outcome['kind'], value: undefined, ms }
      if (line.includes(index)) line.splice(line.indexOf(index), 1)
      if (endsMs.delete(index)) free += actors[index].does.permits
    }
    serve(ms)
  }
}

function assertSame(got: readonly Outcome[], expected: readonly Outcome[]): void {
  const rounded = (all: readonly Outcome[]): unknown =>
    all.map(({ kind, value, ms }) => [kind, value, Math.round(ms * 1e6)])
  assert.deepEqual(rounded(got), rounded(expected))
}

test('permits are granted in order and released, as the oracle has it, whoever is interrupted', async () => {
  await fc.assert(
    fc.asyncProperty(scripts(uses), fc.nat(), async (actors, seed) => {
      const semaphore = new Semaphore({ permits: PERMITS })
      const work = ({ permits, holdMs }: Use) => semaphore.withPermits(sleep(holdMs), { permits })
      const outcomes = await play(seed, actors, work as never)
      assertSame(outcomes, oracle(actors))
      assert.deepEqual([semaphore.free, semaphore.waiting], [PERMITS, 0])
    }),
    { numRuns: 300 },
  )
})

test('an interruption at the moment of a grant loses no permit', async () => {
  await fc.assert(
    fc.asyncProperty(crowds(uses), fc.nat(), async (actors, seed) => {
      const semaphore = new Semaphore({ permits: PERMITS })
      let held = 0
      const work = ({ permits, holdMs }: Use) =>
        semaphore.withPermits(
          function* () {
            held += permits
            assert.ok(held <= PERMITS)
            try {
              if (holdMs % 2 === 0) yield* yieldNow()
              else yield* sleep(holdMs % 4)
            } finally {
              held -= permits
            }
          },
          { permits },
        )
      const outcomes = await play(seed, actors, work as never)
      assert.ok(outcomes.every(({ kind }) => kind === 'success' || kind === 'interruption'))
      assert.deepEqual([semaphore.free, semaphore.waiting], [PERMITS, 0])
    }),
    { numRuns: 300 },
  )
})

test('a read-write lock has many readers or one writer, and loses neither by interruptions', async () => {
  const kinds = fc.record({ writes: fc.boolean(), waits: fc.nat(3) })
  await fc.assert(
    fc.asyncProperty(crowds(kinds), fc.nat(), async (actors, seed) => {
      const lock = new RwLock()
      let [readers, writers] = [0, 0]
      const work = ({ writes, waits }: { writes: boolean; waits: number }) => {
        function* body() {
          if (writes) writers += 1
          else readers += 1
          assert.ok(writers === 0 || (writers === 1 && readers === 0))
          try {
            for (let turn = 0; turn < waits; turn += 1) yield* yieldNow()
          } finally {
            if (writes) writers -= 1
            else readers -= 1
          }
        }
        return writes ? lock.write(body) : lock.read(body)
      }
      const done = () => lock.write(() => assert.deepEqual([readers, writers, lock.waiting], [0, 0, 0]))
      await play(seed, actors, work as never, done as never)
    }),
    { numRuns: 200 },
  )
})

test('a reader behind a waiting writer waits: writers do not starve', async () => {
  const lock = new RwLock()
  const log: string[] = []
  const note = (name: string) => () => void log.push(name)
  const first = fork(lock.read(never()))
  const all = [lock.write(note('writer')), lock.read(note('reader'))]
  assert.equal(lock.waiting, 2)
  await first.interrupt()
  await Promise.all(all)
  assert.deepEqual(log, ['writer', 'reader'])
})

test('changes of a SynchronizedRef are in order; a failed or interrupted one changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(crowds(fc.nat(3)), fc.nat(), async (actors, seed) => {
      const ref = new SynchronizedRef<readonly number[]>([])
      const work = (waits: number, index: number) =>
        ref.modify(function* (value) {
          for (let turn = 0; turn < waits; turn += 1) yield* yieldNow()
          if (waits === 3) yield* fail('refused')
          return [value.length, [...value, index]] as const
        })
      const outcomes = await play(seed, actors, work as never)
      const changed = outcomes.flatMap(({ kind }, index) => (kind === 'success' ? [index] : []))
      assert.deepEqual([...ref.get()].sort(), changed.sort())
      assert.deepEqual(
        ref.get().map((index) => outcomes[index].value),
        ref.get().map((_, order) => order),
      )
    }),
    { numRuns: 200 },
  )
})

test('with await: the same, and a signal ends a wait with its reason', async () => {
  const semaphore = new Semaphore({ permits: 1, waitingMax: 2 })
  let letGo = (): void => {}
  const held = semaphore.withPermits(() => new Promise<void>((resolve) => (letGo = resolve)))
  const controller = new AbortController()
  const waits = [
    semaphore.withPermits(() => 'no', { signal: controller.signal }),
    semaphore.withPermits(async () => 'second'),
  ]
  await assert.rejects(
    semaphore.withPermits(() => 'too many'),
    { code: 'FIBER_FULL' },
  )
  controller.abort(new Error('late'))
  await assert.rejects(waits[0], /late/)
  await assert.rejects(
    semaphore.withPermits(() => 'no', { signal: controller.signal }),
    /late/,
  )
  letGo()
  await held
  assert.equal(await waits[1], 'second')
  assert.deepEqual([semaphore.free, semaphore.waiting], [1, 0])
  assert.deepEqual(dump(), [])
})

test('an aborted large request lets those behind it go on', async () => {
  const semaphore = new Semaphore({ permits: 2 })
  const holder = fork(semaphore.withPermits(never()))
  const controller = new AbortController()
  const large = semaphore.withPermits(() => 0, { permits: 2, signal: controller.signal })
  const small = semaphore.withPermits(() => 'small')
  controller.abort()
  await assert.rejects(large)
  assert.equal(await small, 'small')
  await holder.interrupt()
})

test('what a body fails with passes, and the permits are free', async () => {
  const semaphore = new Semaphore({ permits: 1 })
  const exit = await fork(exitOf(semaphore.withPermits(fail('busy' as const)))).join()
  assert.deepEqual(exit, { kind: 'failure', error: 'busy', others: [] })
  await assert.rejects(
    semaphore.withPermits(() => Promise.reject(new Error('no'))),
    /no/,
  )
  assert.equal(semaphore.free, 1)
})

for (const [name, make] of Object.entries({
  'no permits': () => new Semaphore({} as never),
  'permits: 0': () => new Semaphore({ permits: 0 }),
  'more permits than there are': () => new Semaphore({ permits: 1 }).withPermits(() => 1, { permits: 2 }),
  'an unknown option': () => new RwLock({ readers: 1 } as never),
  'a signal that is a number': () => new RwLock().read(() => 1, { signal: 1 as never }),
  'a change that is not a function': () => new SynchronizedRef(1).update(2 as never),
}))
  test(`${name} is refused`, () => assert.throws(make, { code: 'FIBER_ARGUMENT' }))
