/**
 * `atomically` of corespun/store in fibers: one call, by `yield*` there and by `await` everywhere.
 *
 * The test is here and not beside it, since stores are below fibers.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../../base/wait.test.support.ts'
import { TRef, atomically, store } from '../../store/index.ts'
import { Exit } from '../core/exit.ts'
import { all, attempt, catchAll, fork, race, sleep } from '../index.ts'

const used = store.create<number>('atomic fibers')
after(() => used.close())

/** Takes a value, which it waits for. */
const take = (key: string) =>
  atomically((tx) => {
    const value = tx.get(used, key)
    if (value === undefined) return tx.retry()
    tx.delete(used, key)
    return value
  })

test('yield* has the result, and what the function throws is a failure', async () => {
  const ref = new TRef(1)
  const program = function* () {
    const value = yield* atomically((tx) => tx.update(ref, (n) => n + 1))
    const failing = function* () {
      return yield* atomically((): number => {
        throw new RangeError('mine')
      })
    }
    const name = yield* catchAll(failing, (error) => (error as Error).name)
    return [value, name]
  }
  assert.deepEqual(await fork(program).join(), [2, 'RangeError'])
  assert.equal(ref.get(), 2)
})

test('a transaction that waits is woken by a change, and ends with its fiber', async () => {
  const waiting = fork(function* () {
    return yield* take('job')
  })
  const stopped = fork(function* () {
    return yield* take('job')
  })
  await fork(sleep(1)).join()
  assert.deepEqual(await stopped.interrupt('enough'), Exit.interruption('enough'))
  used.set('job', 7)
  assert.equal(await waiting.join(), 7)
  used.set('job', 8)
  assert.equal(await take('job'), 8, 'the interrupted one has taken nothing')
})

test('in the code of a fiber nothing begins before yield* or await', async () => {
  const ref = new TRef(0)
  const add = () => atomically((tx) => tx.update(ref, (n) => n + 1))
  const counts = await fork(function* () {
    const [first, second] = [add(), add()]
    const before = ref.get()
    const one = yield* first
    return [before, one, yield* second]
  }).join()
  assert.deepEqual(counts, [0, 1, 2])
  assert.equal(await fork(async () => add()).join(), 3)
  assert.deepEqual(await fork(all([add, add])).join(), [4, 5])
  assert.equal(await fork(race([() => take('never'), () => add()])).join(), 6)
})

test('one that has begun outside is a promise, which attempt waits for', async () => {
  const outside = take('late')
  assert.ok(outside instanceof Promise)
  const fiber = fork(attempt(outside))
  used.set('late', 3)
  assert.equal(await fiber.join(), 3)
})

test('its own signal and the interrupt both end it', async () => {
  const stop = new AbortController()
  const ended = await fork(function* () {
    stop.abort(new RangeError('stop'))
    return yield* atomically((tx) => (tx.get(used, 'never'), tx.retry()), { signal: stop.signal })
  }).await()
  assert.ok(ended.kind === 'failure' && (ended.error as Error).name === 'RangeError')
  let runs = 0
  const fiber = fork(function* () {
    const own = new AbortController()
    yield* atomically(
      (tx) => {
        runs += 1
        tx.get(used, 'never')
        return tx.retry()
      },
      { signal: own.signal },
    )
  })
  await until(() => runs === 1)
  assert.equal((await fiber.interrupt()).kind, 'interruption')
})
