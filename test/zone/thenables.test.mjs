/**
 * A function whose `then` can be called, and be read only once: whatever waits for what a function of the
 * user returns waits for it as `await` does. A synchronous stage of an arrow waits for nothing.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { all, attempt, forEach, fork } from 'corespun/fiber'
import { createApp } from 'corespun/http'
import { arrow, Lock } from 'corespun'
import { join, zone } from 'corespun/zone'
import later from '../cli/modules/thenables.mjs'
import { corespun } from '../cli/corespun.mjs'

const module = new URL('../cli/modules/thenables.mjs', import.meta.url)
const far = zone.create('thenables', { workers: 1 })
after(() => far.close())

for (const [where, here] of Object.entries({ 'a zone': far, 'zone.node': zone.node })) {
  test(`${where} waits for it in run, execute, map, forEach and reduce`, async () => {
    assert.equal(await here.run(later), 5)
    assert.equal((await here.execute(module, 'default')).value, 5)
    assert.deepEqual(await here.map([1, 2, 3], later), [5, 5, 5])
    const settled = await here.map([1, 2], later, { settle: true })
    assert.deepEqual(
      settled.map(({ value }) => value),
      [5, 5],
    )
    assert.equal(await here.forEach([1, 2, 3], later), undefined)
    assert.equal(await here.reduce([1, 2, 3], later, 0), 5)
    assert.equal(await here.reduce([1, 2, 3], later, 0, { combine: later }), 5)
    assert.equal(await here.reduce([1, 2, 3], async (sum, item) => (await sum) + item, 0), 6)
  })
}

test('join refuses it, as it refuses a promise', async () => {
  assert.throws(() => join([later], [() => 1]), { code: 'JOIN_ASYNC' })
})

test('an HTTP handler and an error handler may return it', async () => {
  const routes = { '/': later, '/wrong': () => assert.fail('wrong') }
  const app = createApp({ routes, error: later })
  for (const path of ['/', '/wrong']) assert.equal(await (await app.inject(path)).text(), '5', path)
})

test('a handler whose thenable calls back twice is answered once', async () => {
  // oxlint-disable-next-line unicorn/no-thenable -- it is what the test is about
  const twice = () => ({ then: (fulfil) => [fulfil('one'), fulfil('two')] })
  assert.equal(await (await createApp({ routes: { '/': twice } }).inject('/')).text(), 'one')
})

test('a fiber waits for it as its body, in attempt and in the combinators', async () => {
  assert.equal(await fork(later).join(), 5)
  const body = function* () {
    return [yield* attempt(later), yield* all([later, later]), yield* forEach([1], later)]
  }
  assert.deepEqual(await fork(body).join(), [5, [5, 5], [5]])
})

test('locks hold until it has settled, and guardSync refuses it', async () => {
  const lock = Lock.getOrCreate('thenables')
  assert.equal(await lock.guard(later), 5)
  assert.equal(await lock.tryGuard(later).value, 5)
  assert.throws(() => lock.guardSync(later, { allowBlocking: true }), { code: 'SYNC_ASYNC_BODY' })
})

test('an asynchronous stage of an arrow waits for it, a synchronous one passes it on', async () => {
  const { lift, liftAsync } = arrow
  assert.equal(await liftAsync(later).run(0), 5)
  assert.equal(
    await liftAsync(later)
      .andThen(lift((x) => x + 1))
      .run(0),
    6,
  )
  assert.equal(typeof lift(later).run(0), 'function')
  const passed = await liftAsync(async (x) => x)
    .andThen(lift(later))
    .andThen(lift((x) => typeof x))
    .run(0)
  assert.equal(passed, 'function')
})

test('corespun run waits for it', async () => {
  const { code, out, err } = await corespun(['run', 'modules/thenables.mjs'], 'a\nb\n')
  assert.deepEqual([code, out, err], [0, '5\n5\n', ''])
})
