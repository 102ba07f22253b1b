/**
 * Remote stages of arrows find the context and the deadline of the run, each hop and what follows it.
 * The values are those of registered AsyncLocalStorages.
 */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from 'node:test'
import { carry, zone } from '../../zone/index.ts'
import { lift, liftAsync } from '../index.ts'

const user = carry('user', new AsyncLocalStorage<string>())
const WORKER = zone.create('arrow-context', { workers: 2 })
const OTHER = zone.create('arrow-context-2', { workers: 2 })
test.after(() => Promise.all([WORKER.close(), OTHER.close()]))

async function found(seen: readonly (string | undefined)[]): Promise<readonly (string | undefined)[]> {
  const { AsyncLocalStorage } = await import('node:async_hooks')
  const { carry } = await import('../../zone/index.ts')
  const kept = globalThis as { user?: AsyncLocalStorage<string> }
  return [...seen, (kept.user ??= carry('user', new AsyncLocalStorage<string>())).getStore()]
}

test('each remote stage, and the stages here between them, find the value of the run', async () => {
  const here = (seen: readonly (string | undefined)[]): readonly (string | undefined)[] => [
    ...seen,
    user.getStore(),
  ]
  const stage = liftAsync(found)
  const path = stage.on(WORKER).andThen(lift(here)).andThen(stage.on(OTHER)).andThen(lift(here))
  const runs = ['Ann', undefined, 'Bob'].map((name) => {
    const run = (): Promise<readonly (string | undefined)[]> => Promise.resolve(path.run([]))
    return name === undefined ? run() : user.run(name, run)
  })
  const expected = ['Ann', undefined, 'Bob'].map((name) => [name, name, name, name])
  assert.deepEqual(await Promise.all(runs), expected)
})

test('a stream that is read elsewhere has the value of its call', async () => {
  const outside = AsyncLocalStorage.snapshot()
  const path = liftAsync(found).on(WORKER)
  const inputs = [[], []] as const
  const read = async (made: AsyncIterable<readonly (string | undefined)[]>): Promise<unknown[]> => {
    const all: unknown[] = []
    for await (const seen of made) all.push(...seen)
    return all
  }
  const made = ['Ann', 'Bob'].map((name) => user.run(name, () => path.stream(inputs)))
  const seen = await outside(() => Promise.all(made.map(read)))
  assert.deepEqual(seen, [
    ['Ann', 'Ann'],
    ['Bob', 'Bob'],
  ])
})

test('a remote stage within a task has the time that the task has left', async () => {
  const left = await WORKER.with({ timeoutMs: 60_000 }).run(async () => {
    const { liftAsync } = await import('../index.ts')
    const { zone } = await import('../../zone/index.ts')
    const remaining = async (): Promise<number | undefined> =>
      (await import('../../zone/index.ts')).currentTask()?.remainingMs
    return await liftAsync(remaining).on(zone.get('arrow-context-2')).run(undefined)
  })
  assert.ok(left !== undefined && left > 0 && left <= 60_000)
})
