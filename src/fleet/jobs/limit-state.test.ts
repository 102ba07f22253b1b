/**
 * Who a limit admits, as a table of what happens, and against what it promises by seeds.
 *
 * Nothing here waits: the time is passed in.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generator } from '../../base/index.ts'
import { encode } from '../../transport/index.ts'
import { written } from '../wire.ts'
import {
  type Change,
  type JobLimit,
  type LimitState,
  NO_STATE,
  calledBy,
  entered,
  extended,
  left,
  readLimit,
  writeLimit,
} from './limit-state.ts'

const LEASE_MS = 100
const TWO: JobLimit = { per: '', concurrency: 2, jobs: 0, perMs: 0 }
const RATE: JobLimit = { per: '', concurrency: 0, jobs: 2, perMs: 1000 }

/** One limit, and the results of what is done to it. */
class Limit {
  state: LimitState = NO_STATE
  nowMs = 1_000_000
  readonly #limit: JobLimit

  constructor(limit: JobLimit) {
    this.#limit = limit
  }

  change(by = 'host'): Change {
    return { by, limit: this.#limit, leaseMs: LEASE_MS, nowMs: this.nowMs }
  }

  #done<Result>([state, result]: readonly [LimitState, Result]): Result {
    this.state = readLimit(writeLimit(state))
    return result
  }

  /** `in`, or how long it waits, with its turn. */
  enter(key: string, turn = 0, isFirst = true, by = 'host'): string {
    const of = { key, id: `${by} ${key}`, turn, isFirst }
    const { waitMs, turn: drawn } = this.#done(entered(this.state, of, this.change(by)))
    return waitMs === undefined ? 'in' : `${waitMs}${drawn > 0 ? ` turn ${drawn}` : ''}`
  }

  leave(key: string | number, by = 'host'): number[] {
    this.#done(left(this.state, key, typeof key === 'number' ? by : `${by} ${key}`, this.change(by)))
    return calledBy(this.state, by)
  }

  extend(key: string, by = 'host'): boolean {
    return this.#done(extended(this.state, new Set([`${by} ${key}`]), this.change(by))).size === 1
  }
}

test('as many run at once as it allows, and the next turn is called when one ends', () => {
  const limit = new Limit(TWO)
  assert.deepEqual([limit.enter('a'), limit.enter('b')], ['in', 'in'])
  assert.deepEqual([limit.enter('c'), limit.enter('d')], ['200 turn 1', '300 turn 2'])
  assert.deepEqual(limit.leave('a'), [1])
  // Nobody comes between, whoever has had no turn.
  assert.equal(limit.enter('e'), '300 turn 3')
  assert.equal(limit.enter('c', 1), 'in')
  assert.deepEqual(limit.leave('b'), [2])
  assert.equal(limit.enter('d', 2), 'in')
  assert.deepEqual([limit.leave('c'), limit.leave('d')], [[3], [3]])
  assert.equal(limit.enter('f'), 'in')
})

test('what was not confirmed and is done again changes nothing', () => {
  const limit = new Limit(TWO)
  assert.deepEqual([limit.enter('a'), limit.enter('a')], ['in', 'in'])
  assert.equal(limit.state.held.length, 1)
  limit.leave('a')
  assert.deepEqual(limit.leave('a'), [])
  assert.deepEqual(limit.state.held, [])
})

test('a slot that nobody extends is free after a lease and a half, and not before', () => {
  const limit = new Limit({ ...TWO, concurrency: 1 })
  limit.enter('a')
  limit.nowMs += 100
  assert.equal(limit.extend('a'), true)
  limit.nowMs += 149
  assert.equal(limit.enter('b', 0, true, 'other'), '200 turn 1')
  // The job itself, at another host, waits until the one before has ended it.
  assert.equal(limit.enter('a', 0, true, 'other'), '1')
  limit.nowMs += 1
  assert.deepEqual(limit.leave(0, 'other'), [1])
  assert.equal(limit.extend('a'), false)
  assert.equal(limit.enter('b', 1, true, 'other'), 'in')
})

test('a turn that was called in vain is over after three leases, or when that is found', () => {
  const limit = new Limit({ ...TWO, concurrency: 1 })
  limit.enter('a')
  for (const key of ['b', 'c', 'd']) limit.enter(key)
  assert.deepEqual(limit.leave('a'), [1])
  assert.deepEqual(limit.leave(1), [2])
  limit.nowMs += 300
  assert.deepEqual(limit.leave('nobody'), [3])
  // It has lost its slot, and draws another turn.
  assert.equal(limit.enter('c', 2), '200 turn 4')
})

test('a rate admits at once what it has left, and the others one behind the other', () => {
  const limit = new Limit(RATE)
  const all = ['a', 'b', 'c', 'd', 'e'].map((key) => limit.enter(key))
  assert.deepEqual(all, ['in', 'in', '1000', '1500', '2000'])
  limit.nowMs += 1000
  // Whoever comes first waits behind those that were promised it.
  assert.equal(limit.enter('f'), '1500')
  assert.equal(limit.enter('c', 0, false), 'in')
  limit.nowMs += 500
  assert.equal(limit.enter('d', 0, false), 'in')
  // One that is early, since another has begun late, waits for that alone.
  assert.equal(limit.enter('e', 0, false), '500')
})

test('a job that was called, and waits for the rate, keeps its slot', () => {
  const limit = new Limit({ per: '', concurrency: 1, jobs: 1, perMs: 1000 })
  limit.enter('a')
  assert.equal(limit.enter('b'), '200 turn 1')
  assert.deepEqual(limit.leave('a'), [1])
  assert.equal(limit.enter('b', 1), '1000')
  limit.nowMs += 1000
  assert.equal(limit.enter('c'), '200 turn 2')
  assert.equal(limit.enter('b', 1, false), 'in')
})

test('by seeds: never more than it allows, in no span, and everybody gets in', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = generator(seed)
    const own = { per: '', concurrency: 1 + Math.floor(random() * 3), jobs: 3, perMs: 500 }
    const limit = new Limit(random() < 0.5 ? own : { ...own, jobs: 0, perMs: 0 })
    const { jobs } = limit.change().limit
    const running = new Map<string, number>()
    const begun: number[] = []
    // A job looks by itself, or when one of its turns is called.
    let waiting = Array.from({ length: 30 }, (_, index) => ({ key: `${index}`, atMs: limit.nowMs }))
    const turns = new Map<number, string>()
    const seen = new Set<string>()
    for (let step = 0; waiting.length > 0; step++) {
      assert.ok(step < 20_000, `seed ${seed}: ${waiting.length} wait`)
      limit.nowMs += random() * 20
      for (const [key, endsMs] of running)
        if (endsMs <= limit.nowMs) {
          running.delete(key)
          limit.leave(key)
        } else limit.extend(key)
      const called = new Map(calledBy(limit.state, 'host').map((turn) => [turns.get(turn), turn]))
      for (const [key, turn] of called) if (!waiting.some((job) => job.key === key)) limit.leave(turn)
      for (const job of [...waiting]) {
        const calledTurn = called.get(job.key) ?? 0
        if (job.atMs > limit.nowMs && calledTurn === 0) continue
        const verdict = limit.enter(job.key, calledTurn, !seen.has(job.key))
        seen.add(job.key)
        if (verdict === 'in') {
          waiting = waiting.filter((other) => other !== job)
          running.set(job.key, limit.nowMs + random() * 200)
          begun.push(limit.nowMs)
          assert.ok(running.size <= own.concurrency, `seed ${seed}`)
          const inSpan = begun.filter((ms) => ms > limit.nowMs - own.perMs).length
          assert.ok(jobs === 0 || inSpan <= jobs, `seed ${seed}: ${inSpan} in a span`)
        } else {
          const [waitMs, , turn] = verdict.split(' ')
          job.atMs = limit.nowMs + Number(waitMs)
          if (turn !== undefined) turns.set(Number(turn), job.key)
        }
      }
    }
  }
})

test('what is not a state is read as none', () => {
  for (const state of [
    5,
    {},
    { ...NO_STATE, first: 'x' },
    { ...NO_STATE, held: 5 },
    { ...NO_STATE, begun: 5 },
    { ...NO_STATE, held: [5] },
    { ...NO_STATE, held: [['a', 'b']] },
  ])
    assert.deepEqual(readLimit(written('limit', state)), NO_STATE)
  for (const bytes of [undefined, new Uint8Array([1]), encode(['other', NO_STATE])])
    assert.deepEqual(readLimit(bytes), NO_STATE)
})
