/**
 * Errors in workers that no caller of a task receives: they are reported, counted, and end no innocent task.
 *
 * What nobody listens for ends a process, so those cases run in processes of their own.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { inZone, until } from '../api/zones.test.support.ts'

const WAIT_MS = 60_000

/** What a listener of a zone received. */
interface Received {
  readonly error: Error
  readonly worker: string
}

function processWith(body: string): { status: number | null; stdout: string; stderr: string } {
  const url = new URL('../index.js', import.meta.url).href
  const head = `import { zone } from ${JSON.stringify(url)}; const own = zone.create('own', { workers: 1 })`
  const source = `${head}; ${body}`
  const given = ['--input-type=module', '-e', source]
  return spawnSync(process.execPath, given, { encoding: 'utf8', timeout: WAIT_MS })
}

const LEFT_BEHIND = `
  const task = await own.run(async () => {
    const save = async () => { throw new RangeError('the database is down') }
    void save()
    return 'saved'
  })
  console.log(task)`

test('an error between tasks is an uncaughtException of the thread that starts the workers', () => {
  const dies = processWith(`${LEFT_BEHIND}; await new Promise((resolve) => setTimeout(resolve, ${WAIT_MS}))`)
  assert.equal(dies.status, 1, dies.stderr)
  assert.match(dies.stderr, /WORKER_ERROR/)
  assert.match(dies.stderr, /worker own\/0, outside of its tasks: .*the database is down/)
  assert.match(dies.stderr, /RangeError: the database is down/)
})

test('a listener for uncaughtException gets it, and the zone goes on with another worker', () => {
  const goesOn = processWith(`
    const alive = setInterval(() => {}, 1000)
    const caught = new Promise((resolve) => process.once('uncaughtException', resolve))
    ${LEFT_BEHIND}
    const { code, facts, cause } = await caught
    console.log(code, facts.worker, cause.name, cause.message, own.stats().errors, await own.run(() => 'on'))
    clearInterval(alive)
    await own.close()`)
  assert.equal(goesOn.status, 0, goesOn.stderr)
  assert.equal(goesOn.stdout, 'saved\nWORKER_ERROR own/0 RangeError the database is down 1 on\n')
})

test('onError gets an error between tasks instead, until it is ended, and stats count it', () =>
  inZone({ workers: 1 }, async (own) => {
    const received: Received[] = []
    const end = own.onError((error, worker) => void received.push({ error: error as Error, worker }))
    await own.run(
      () =>
        void setTimeout(() => {
          throw new RangeError('too late')
        }, 1),
    )
    await until(() => received.length === 1)
    assert.ok(received[0]?.error instanceof RangeError)
    assert.deepEqual([received[0].error.message, received[0].worker], ['too late', `${own.id}/0`])
    assert.deepEqual([own.stats().errors, own.stats().died], [1, 0])
    assert.equal(await own.run(() => 'replaced'), 'replaced')
    end()
    assert.throws(() => own.onError('no function' as never), { code: 'ZONE_ARGUMENT' })
  }))

test('a thrown undefined between tasks is an error like others', () =>
  inZone({ workers: 1 }, async (own) => {
    const received: [unknown, boolean][] = []
    own.onError((error, _, ended) => void received.push([error, ended]))
    const thrower = (): void => {
      setTimeout(() => {
        throw undefined
      }, 1)
    }
    await own.run(thrower)
    await until(() => received.length === 1)
    assert.deepEqual([received, own.stats().errors], [[[undefined, true]], 1])
  }))

test('an error that belongs to no task in flight ends none, and the worker keeps its state', () =>
  inZone({ workers: 1, tasksPerWorkerMax: 4 }, async (own) => {
    const received: Received[] = []
    own.onError((error, worker) => void received.push({ error: error as Error, worker }))
    const innocent = own.run(async () => {
      const shared = globalThis as { kept?: string; go?: () => void }
      shared.kept = 'kept'
      await new Promise<void>((resolve) => (shared.go = resolve))
      return 'innocent'
    })
    for (let round = 1; round <= 2; round++) {
      const left = round === 1 ? 'rejection' : 'timer'
      const value = await own.run((left) => {
        if (left === 'timer')
          setTimeout(() => {
            throw new Error('a timer')
          }, 1)
        else void Promise.reject(new Error('a rejection'))
        return left
      }, left)
      assert.equal(value, left)
      await until(() => received.length === round)
    }
    assert.deepEqual(
      received.map(({ error }) => error.message),
      ['a rejection', 'a timer'],
    )
    assert.deepEqual([own.stats().errors, own.stats().died], [2, 0])
    const state = await own.run(() => {
      const shared = globalThis as { kept?: string; go?: () => void }
      shared.go?.()
      return shared.kept
    })
    assert.deepEqual([state, await innocent], ['kept', 'innocent'])
  }))

test('an error that belongs to one of several tasks in flight fails that one alone, as it is', () =>
  inZone({ workers: 1, tasksPerWorkerMax: 4 }, async (own) => {
    own.onError((error) => assert.fail(`reported: ${String(error)}`))
    const waits = (): Promise<string> =>
      own.run(async () => {
        const shared = globalThis as { all?: (() => void)[] }
        await new Promise<void>((resolve) => (shared.all ??= []).push(resolve))
        return 'innocent'
      })
    const innocents = [waits(), waits()]
    const guilty = own.run(
      () =>
        new Promise(() => {
          setTimeout(() => {
            throw new RangeError('its own timer')
          }, 1)
        }),
    )
    await assert.rejects(guilty, { name: 'RangeError', message: 'its own timer' })
    await own.run(() => (globalThis as { all?: (() => void)[] }).all?.forEach((go) => go()))
    assert.deepEqual(await Promise.all(innocents), ['innocent', 'innocent'])
    assert.deepEqual([own.stats().errors, own.stats().died, own.stats().failed], [0, 0, 1])
  }))

test('what a task listens for in its worker is its own: nothing is reported and nothing ends', () =>
  inZone({ workers: 1 }, async (own) => {
    own.onError((error) => assert.fail(`reported: ${String(error)}`))
    await own.run(() => {
      const shared = globalThis as { caught?: string }
      process.once('uncaughtException', (error: Error) => (shared.caught = error.message))
      setTimeout(() => {
        throw new Error('expected')
      }, 1)
    })
    const caught = (): Promise<string | undefined> =>
      own.run(() => (globalThis as { caught?: string }).caught)
    let seen: string | undefined
    for (let look = 0; look < 20_000 && seen === undefined; look++) seen = await caught()
    assert.equal(seen, 'expected')
    assert.equal(own.stats().errors, 0)
  }))
