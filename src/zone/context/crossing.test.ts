/**
 * A context beside what else belongs to a call: an order, streams.
 * And where it goes besides workers that are threads: to processes, and to the main thread.
 */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { after, test } from 'node:test'
import { inZone, makeZone } from '../api/zones.test.support.ts'
import { type AnyZone, carry, withTrace, zone } from '../index.ts'
import { type Looked, MODULE, call, functionsOn, user } from './context.test.support.ts'

const SINGLE = makeZone({ workers: 2 })
const MANY = makeZone({ workers: 2, tasksPerWorkerMax: 8 })
after(() => Promise.all([SINGLE.close(), MANY.close()]))

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const ORDER = { priority: 'high', tenant: 7, weight: 2, affinity: 'key' } as const
const NAMES = ['Ann', undefined, 'Bob']
const OUTSIDE = AsyncLocalStorage.snapshot()

function* numbers(): Generator<number, void, undefined> {
  for (let item = 1; item <= 300; item++) yield item
}

type Support = typeof import('./context.test.support.ts')

async function looked(items: AsyncIterable<number> | Iterable<number>): ReturnType<Support['lookAround']> {
  return (await import('./context.test.support.ts')).lookAround(items)
}

/** Runs `body` once in the context of each name, all at once. */
async function forNames(body: (check: (seen: Looked) => void) => Promise<void>): Promise<void> {
  const run = (name: string | undefined): Promise<void> => {
    const check = ({ user, traceparent, remainingMs = Infinity }: Looked): void => {
      assert.deepEqual([user, traceparent], name === undefined ? [undefined, undefined] : [name, TRACE])
      assert.ok(remainingMs > 0 && remainingMs <= 100_000)
    }
    const named = (): Promise<void> => body(check)
    return name === undefined ? named() : withTrace({ traceparent: TRACE }, () => user.run(name, named))
  }
  await Promise.all(NAMES.map(run))
}

test('a call has a context, an order and streams at once', () =>
  forNames(async (check) => {
    const views: [AnyZone, RegExp][] = [SINGLE, MANY].flatMap((each) => [
      [each.with(ORDER), /\/[01]$/],
      [each.worker(1), /\/1$/],
      [each, /\/[01]$/],
    ])
    views.push([zone.node, /^node$/])
    await Promise.all(
      views.map(async ([view, worker]) => {
        const limited = view.with({ timeoutMs: 100_000 })
        const result = await limited.execute<Support, 'lookAround'>(MODULE, 'lookAround', [numbers()])
        for (const found of [
          await limited.run(looked, numbers()),
          await functionsOn(limited).lookAround(numbers()),
          result.value,
        ]) {
          const [before, afterwards, sum, where] = found
          check(before as Looked)
          check(afterwards as Looked)
          assert.equal(sum, 45_150)
          assert.match(String(where), worker)
        }
        check(await functionsOn(limited).look())
      }),
    )
  }))

test('a result that is a stream finds the context of its call at each item', () =>
  forNames(async (check) => {
    for (const each of [SINGLE.with(ORDER), MANY.worker(0), SINGLE, MANY]) {
      let count = 0
      for await (const seen of await functionsOn(each.with({ timeoutMs: 100_000 })).lookAtEach()) {
        check(seen)
        count++
      }
      assert.equal(count, 2)
    }
  }))

test('what is read outside of the call that made it has the context of that call', () =>
  forNames(async (check) => {
    const limited = MANY.with({ timeoutMs: 100_000 })
    async function* each(items: AsyncIterable<number>): AsyncGenerator<Looked> {
      const { look } = await import('./context.test.support.ts')
      for await (const item of items) if (item < 3) yield look()
    }
    const read = async (made: AsyncIterableIterator<Looked>): Promise<void> => {
      let count = 0
      for await (const seen of made) {
        check(seen)
        count++
      }
      assert.equal(count, 2)
    }
    const mapped = async (): Promise<Looked> => (await import('./context.test.support.ts')).look()
    for (const made of [
      limited.stream(each, numbers()),
      zone.node.with({ timeoutMs: 100_000 }).stream(each, numbers()),
      limited.map(new Set([1, 2]), mapped),
      (await functionsOn(limited).lookAtEach()) as AsyncIterableIterator<Looked>,
    ])
      await OUTSIDE(() => read(made))
    const left = limited.map(new Set([1, 2]), mapped)
    assert.equal(Object.prototype.toString.call(left), '[object AsyncGenerator]')
    assert.equal(left[Symbol.asyncIterator](), left)
    check((await left.next()).value as Looked)
    assert.deepEqual(await left.return(), { value: undefined, done: true })
    await assert.rejects(left.throw(new RangeError('late')), { message: 'late' })
  }))

test('a call whose streams are sent after its task has ended has the context of that task', () =>
  inZone({ workers: 1 }, async (own) => {
    await user.run('Ann', () => functionsOn(own.with({ timeoutMs: 100_000 })).leaveCall(MANY.id))
    const [seen, , sum] = (await functionsOn(own).takeLeft()) as [Looked, Looked, number]
    assert.equal(sum, 3)
    assert.equal(seen.user, 'Ann')
    assert.ok(seen.remainingMs !== undefined && seen.remainingMs <= 100_000)
  }))

test('tasks of the main thread, and their calls, find the context of the worker that calls it', () =>
  forNames(async (check) => {
    const limited = SINGLE.with({ timeoutMs: 100_000 })
    for (const seen of await functionsOn(limited).lookInMain(MANY.id)) check(seen)
  }))

test('a context goes into a process, to the calls that are made there too', async (context) => {
  if (process.platform === 'win32') return context.skip('no zones of processes')
  await inZone({ workers: 1, isolation: 'process', tasksPerWorkerMax: 8 }, async (own) => {
    const inner = { zone: own.id, how: 'execute', calls: [] } as const
    const large = new Uint8Array(1 << 20).fill(7)
    await forNames(async (check) => {
      for (const view of [own, own.with(ORDER), own.worker(0)]) {
        const limited = view.with({ timeoutMs: 100_000 })
        check(await functionsOn(limited).look())
        assert.deepEqual(await limited.run((bytes: Uint8Array) => bytes, large), large)
      }
      const seen = await call({ ...inner, timeoutMs: 100_000, calls: [inner] })
      check(seen)
      check(seen.calls[0])
    })
  })
})

test('what cannot leave the process is refused in a context and in a call with an order', async (context) => {
  if (process.platform === 'win32') return context.skip('no zones of processes')
  await inZone({ workers: 1, isolation: 'process' }, async (own) => {
    const shared = new SharedArrayBuffer(8)
    const memory = carry<object>('memory')
    const one = (): number => 1
    await assert.rejects(
      memory.run({ shared }, () => own.run(one)),
      { code: 'TRANSPORT_REFUSED', message: /^context\.memory\.shared/ },
    )
    for (const view of [own, own.with(ORDER), own.worker(0)])
      await assert.rejects(
        view.run((given: object) => given, shared),
        {
          code: 'TRANSPORT_REFUSED',
          message: /^args\[0\].*shared memory cannot leave the process/,
        },
      )
    assert.equal(await memory.run({ a: 1 }, () => own.run(one)), 1)
  })
})
