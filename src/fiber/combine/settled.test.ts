/**
 * Waiting for promises that have settled: each value goes to the fiber that waits for it, once, also if it is
 * interrupted meanwhile, if others are ready before it, or if the promise is one of another realm.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { attempt, catchAll, exitOf, fork, yieldNow } from '../index.ts'

test('one op brings its value to every fiber and every time', async () => {
  const op = attempt(Promise.resolve({ isHere: true }))
  function* twice() {
    return [yield* op, yield* op]
  }
  const all = await Promise.all([fork(twice()).join(), fork(twice()).join()])
  assert.equal(new Set(all.flat()).size, 1)
  assert.equal(all.flat().length, 4)
})

test('a fiber that is interrupted between its value and its turn does not have the value', async () => {
  const log: string[] = []
  function* victim() {
    try {
      log.push(`came ${yield* attempt(Promise.resolve(1))}`)
    } finally {
      log.push(`then ${yield* attempt(Promise.resolve(2))}`)
    }
  }
  const waiting = fork(victim())
  // Ready before the reaction: the queue has the next turn, and the victim is behind this one.
  const other = fork(function* () {
    yield* yieldNow()
    while (waiting.status === 'waiting') yield* attempt(Promise.resolve())
    log.push(waiting.status)
    void waiting.interrupt('enough')
  })
  await other.join()
  assert.equal((await waiting.await()).kind, 'interruption')
  assert.deepEqual(log, ['ready', 'then 2'])
})

test('a rejection is thrown where it is waited for, and the next wait has its own value', async () => {
  const why = new RangeError('why')
  const rejected = Promise.reject(why)
  function* body() {
    const seen: unknown[] = []
    for (let turn = 0; turn < 3; turn += 1) {
      try {
        seen.push(yield* attempt(turn === 1 ? rejected : Promise.resolve(turn)))
      } catch (error) {
        seen.push(error)
      }
    }
    seen.push(yield* catchAll(attempt(rejected), () => 'handled'))
    return seen
  }
  assert.deepEqual(await fork(body()).join(), [0, why, 2, 'handled'])
})

test('promises of other realms, thenables and what only looks like a promise', async () => {
  const Foreign = runInNewContext('Promise') as PromiseConstructor
  const fake = Object.create(Promise.prototype) as Promise<unknown>
  function* body() {
    const foreign = yield* attempt(Foreign.resolve(1))
    const exit = yield* exitOf(attempt(Foreign.reject(2)))
    const thenable = yield* attempt({ then: (resolve: (value: number) => void) => resolve(3) } as never)
    const none = yield* exitOf(attempt(fake))
    return [foreign, (exit as { error: unknown }).error, thenable, none.kind]
  }
  const beside = fork(yieldNow())
  assert.deepEqual(await fork(body()).join(), [1, 2, 3, 'failure'])
  await beside.join()
})
