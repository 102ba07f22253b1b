/**
 * `setup` and `teardown`: once in each worker, before its first task and before it leaves.
 *
 * Hooks write what they do to a shared store, which survives every worker. The oracle is a count: each worker
 * that ran a task has been set up once before, and each that left has been torn down once after.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { store } from '../store/index.ts'
import { lifted } from '../transport/index.ts'
import { cellIsSet } from '../base/wait.test.support.ts'
import { inZone, makeZone, until } from './api/zones.test.support.ts'
import { type Task, type WorkerEvent, type Zone, ZoneError, workerState, zone } from './index.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-hooks-'))
after(() => rmSync(folder, { recursive: true }))

const log = store.create('hooks')
after(() => log.close())

/** What hooks have noted, in the order of time. */
function noted(): string[] {
  return (log.get('log') as string[] | undefined) ?? []
}

/** Setups, teardowns and tasks note themselves: see {@link noted}. */
const OPTIONS = {
  async setup(this: Task) {
    const { store } = await import('corespun/store')
    const { threadId } = await import('node:worker_threads')
    const note = (text: string) =>
      store.get('hooks').update('log', (all: unknown) => [...((all as string[] | undefined) ?? []), text])
    note(`setup ${threadId}`)
    return { thread: threadId, note, name: this.worker }
  },
  teardown(state: { thread: number; note(text: string): void }) {
    state.note(`teardown ${state.thread}`)
  },
}

async function work(): Promise<string> {
  const { workerState } = await import('corespun/zone')
  const { thread, name, note } = workerState<{ thread: number; name: string; note(text: string): void }>()
  note(`task ${thread}`)
  return name
}

/** Each thread in the log: one setup, then tasks, then at most one teardown. Returns the counts of all. */
function checkLog(): { setups: number; tasks: number; teardowns: number } {
  const counts = { setups: 0, tasks: 0, teardowns: 0 }
  const states = new Map<string, 'up' | 'down'>()
  for (const line of noted()) {
    const [what, thread = ''] = line.split(' ')
    if (what === 'setup') {
      assert.equal(states.get(thread), undefined, line)
      states.set(thread, 'up')
      counts.setups++
      continue
    }
    assert.equal(states.get(thread), 'up', line)
    counts[what === 'task' ? 'tasks' : 'teardowns']++
    if (what === 'teardown') states.set(thread, 'down')
  }
  log.delete('log')
  return counts
}

test('each worker is set up before its first task and torn down when the zone closes', async () => {
  await inZone({ workers: 3, ...OPTIONS }, async (own) => {
    const names = await Promise.all(Array.from({ length: 30 }, () => own.run(work)))
    assert.ok(names.every((name) => new RegExp(`^${own.id}/[012]$`).test(name)))
  })
  assert.deepEqual(checkLog(), { setups: 3, tasks: 30, teardowns: 3 })
})

test('a worker that replaces a dead one is set up too; the dead one is not torn down', async () => {
  await inZone({ workers: 1, ...OPTIONS }, async (own) => {
    await own.run(work)
    await assert.rejects(
      own.run(() => process.exit(3)),
      { code: 'WORKER_DIED' },
    )
    await own.run(work)
  })
  assert.deepEqual(checkLog(), { setups: 2, tasks: 2, teardowns: 1 })
})

test('so is one that replaces a worker whose cancelled task ran on', async () => {
  await inZone({ workers: 1, graceMs: 0, ...OPTIONS }, async (own) => {
    await own.run(work)
    const begun = new Int32Array(new SharedArrayBuffer(4))
    const stop = new AbortController()
    const endless = own.with({ signal: stop.signal }).run((cells: Int32Array) => {
      Atomics.store(cells, 0, 1)
      for (;;);
    }, begun)
    await cellIsSet(begun, 0)
    stop.abort()
    await assert.rejects(endless, { name: 'AbortError' })
    await own.run(work)
  })
  assert.deepEqual(checkLog(), { setups: 2, tasks: 2, teardowns: 1 })
})

test('an idle worker that is released is torn down, and a later one set up', async () => {
  await inZone({ executor: 'cached', workers: { max: 1, idleMs: 1 }, ...OPTIONS }, async (own) => {
    await own.run(work)
    await until(() => own.stats().workers === 0)
    assert.deepEqual(
      noted().map((line) => line.split(' ')[0]),
      ['setup', 'task', 'teardown'],
    )
    await own.run(work)
  })
  assert.deepEqual(checkLog(), { setups: 2, tasks: 2, teardowns: 2 })
})

test('a setup that has returned nothing leaves undefined; none at all is an error', async () => {
  const read = async (): Promise<unknown> => (await import('corespun/zone')).workerState()
  await inZone({ workers: 1, setup: () => {} }, async (own) => {
    assert.equal(await own.run(read), undefined)
  })
  await inZone({ workers: 1, teardown: () => {} }, async (own) => {
    const code = 'SETUP_MISSING'
    await assert.rejects(own.run(read), { code, facts: { zone: own.id } })
  })
  assert.throws(() => workerState(), { code: 'SETUP_MISSING', facts: { zone: 'node' } })
})

test('modules are named relative to the file that creates the zone; their exports are called', async () => {
  const text = `export const setup = async () => ({ from: import.meta.url })
    export const teardown = (state) => { if (!state.from.endsWith('hooks.mjs')) throw new Error('lost') }`
  writeFileSync(join(folder, 'hooks.mjs'), text)
  const body = `import { zone } from ${JSON.stringify(new URL('index.js', import.meta.url).href)}
    const hooks = { setup: './hooks.mjs', teardown: './hooks.mjs' }
    export const make = (id) => zone.create(id, { workers: 1, ...hooks })`
  writeFileSync(join(folder, 'makes.mjs'), body)
  const url = pathToFileURL(join(folder, 'makes.mjs')).href
  const { make } = (await import(url)) as { make(id: string): Zone }
  const own = make('by-module')
  const errors: unknown[] = []
  own.onError((error) => errors.push(error))
  assert.match(own.settings.setup?.name ?? '', /hooks\.mjs#setup$/)
  const from = own.run(async () => (await import('corespun/zone')).workerState<{ from: string }>().from)
  assert.equal(await from, pathToFileURL(join(folder, 'hooks.mjs')).href)
  await own.close()
  assert.deepEqual(errors, [])
})

const FAILURES: [string, () => unknown, RegExp][] = [
  [
    'throws',
    () => {
      throw new RangeError('no database')
    },
    /no database/,
  ],
  ['rejects', () => Promise.reject(new RangeError('no database')), /no database/],
  [
    'rejects with what cannot travel',
    () => Promise.reject(new RangeError('no database', { cause: () => 1 })),
    /no database/,
  ],
]

for (const [how, setup, reason] of FAILURES) {
  test(`a setup that ${how} breaks the zone with its error`, async () => {
    const own = makeZone({ workers: 2, setup })
    const waiting = [own.run(() => 1), own.ready()]
    for (const call of [...waiting, own.run(() => 1)]) {
      const error = await call.then(
        () => assert.fail('the zone has no worker'),
        (thrown: unknown) => thrown,
      )
      assert.ok(error instanceof ZoneError && error.code === 'SETUP_FAILED', String(error))
      assert.match(error.message, reason)
      assert.ok(error.cause instanceof RangeError)
    }
    await own.close()
  })
}

test('a module without the export, or none at all, fails the setup', async () => {
  writeFileSync(join(folder, 'empty.mjs'), 'export const other = 1')
  for (const [file, cause] of [
    ['empty.mjs', 'FUNCTION_EXPORT_MISSING'],
    ['absent.mjs', 'FUNCTION_MODULE'],
  ]) {
    const own = makeZone({ workers: 1, setup: pathToFileURL(join(folder, file ?? '')) })
    await assert.rejects(
      own.run(() => 1),
      (error: Error & { code: string }) => {
        assert.deepEqual([error.code, (error.cause as { code: string }).code], ['SETUP_FAILED', cause])
        return true
      },
    )
    await own.close()
  }
})

const HANGS: [string, () => unknown][] = [
  [
    'blocks its thread',
    () => {
      for (;;);
    },
  ],
  ['never settles', () => new Promise(() => {})],
]

for (const [how, hook] of HANGS) {
  test(`a setup that ${how} ends after hookMs`, async () => {
    const own = makeZone({ workers: 1, setup: hook, hookMs: 30 })
    await assert.rejects(
      own.run(() => 1),
      { code: 'SETUP_TIMEOUT' },
    )
    await own.close()
  })

  test(`a teardown that ${how} ends after hookMs, and is reported`, async () => {
    const own = makeZone({ workers: 1, teardown: hook, hookMs: 30 })
    const codes: unknown[] = []
    own.onError((error, worker, ended) => codes.push([(error as ZoneError).code, worker, ended]))
    assert.equal(await own.run(() => 1), 1)
    await own.close()
    assert.deepEqual(codes, [['TEARDOWN_TIMEOUT', `${own.id}/0`, true]])
  })
}

test('the error of a teardown is reported, and the zone closes', async () => {
  const own = makeZone({
    workers: 1,
    teardown: () => {
      throw new RangeError('still in use')
    },
  })
  const errors: ZoneError[] = []
  own.onError((error) => errors.push(error as ZoneError))
  await own.run(() => 1)
  await own.close()
  assert.deepEqual(
    errors.map(({ code }) => code),
    ['TEARDOWN_FAILED'],
  )
  assert.ok(errors[0]?.cause instanceof RangeError)
})

test('a hook may call another zone, and not its own', async () => {
  await inZone({ workers: 1 }, async (other) => {
    const setup = zoneCaller(other.id)
    const own = makeZone({ workers: 1, setup })
    const state = own.run(async () => (await import('corespun/zone')).workerState())
    assert.deepEqual(await state, ['other', 'ZONE_DEADLOCK'])
    await own.close()
  })
})

/** A setup that calls the zone `id`, and its own. */
function zoneCaller(id: string): () => Promise<unknown> {
  log.set('other', id)
  return async () => {
    const { zone } = await import('corespun/zone')
    const { store } = await import('corespun/store')
    const other = await zone.get(store.get('hooks').get('other') as string).run(() => 'other')
    const own = await zone.current.run(() => 1).catch((error: { code: string }) => error.code)
    return [other, own]
  }
}

test('values that the plugin lets a hook capture travel with it; shared memory is refused', async () => {
  const captures = <Fn>(fn: Fn, value: unknown): Fn => {
    const source = { line: 0, column: 0, file: import.meta.url, usesImport: false, imports: [] }
    const code = 'return (state) => ({ kept, state })'
    return lifted(fn, () => ({ ...source, code, captured: ['kept'] }), [value])
  }
  const own = makeZone({ workers: 1, setup: captures(() => {}, new Map([[1, 'one']])) })
  const state = own.run(async () => (await import('corespun/zone')).workerState())
  assert.deepEqual(await state, { kept: new Map([[1, 'one']]), state: undefined })
  await own.close()
  const shared = captures(() => {}, new SharedArrayBuffer(8))
  assert.throws(() => makeZone({ setup: shared }), { code: 'ZONE_ARGUMENT' })
})

test('a zone that closes while its workers are set up ends them, torn down if they were', async () => {
  const slow = makeZone({ workers: 2, teardown: OPTIONS.teardown, setup: OPTIONS.setup })
  await slow.close()
  const { setups, tasks, teardowns } = checkLog()
  assert.deepEqual([tasks, teardowns], [0, setups])
  const endless = makeZone({ workers: 2, setup: () => new Promise(() => {}) })
  const waiting = assert.rejects(
    endless.run(() => 1),
    { code: 'ZONE_CLOSED' },
  )
  await endless.close({ timeoutMs: 20 })
  await waiting
})

test('workers that die in any moment: each was set up once, and those that left were torn down', async () => {
  const ended: string[] = []
  const onEnded = (event: unknown): void => void ended.push((event as WorkerEvent).reason ?? '')
  subscribe('corespun:worker:ended', onEnded)
  await inZone({ workers: 2, tasksPerWorkerMax: 3, ...OPTIONS }, async (own) => {
    for (let index = 0; index < 12; index++) {
      const died = own.run(
        (ms: number) => new Promise(() => setTimeout(() => process.exit(1), ms)),
        index % 4,
      )
      await Promise.allSettled([died, ...Array.from({ length: 5 }, () => own.run(work))])
    }
    await own.run(work)
  })
  unsubscribe('corespun:worker:ended', onEnded)
  const { setups, teardowns } = checkLog()
  const deaths = ended.filter((reason) => reason === 'it exited with code 1').length
  assert.ok(deaths > 1, String(deaths))
  assert.equal(teardowns, setups - deaths)
})

test('settings name the hooks; another hook is another zone for getOrCreate', async () => {
  const setup = () => 1
  const own = zone.create('hooked', { workers: 1, setup })
  assert.equal(own.settings.setup?.name, 'setup')
  assert.equal(own.settings.teardown, null)
  assert.equal(zone.getOrCreate('hooked', { setup }), own)
  assert.throws(() => zone.getOrCreate('hooked', { setup: () => 2 }), { code: 'ZONE_ARGUMENT' })
  await own.close()
})

test('what is not a hook, or cannot be sent, is refused where the zone is created', () => {
  const captured = Math.random()
  assert.throws(() => makeZone({ setup: 7 as never }), { code: 'ZONE_ARGUMENT' })
  assert.throws(() => makeZone({ setup: () => captured }), { code: 'FUNCTION_CAPTURES' })
  assert.throws(() => makeZone({ teardown: Math.max.bind(null) }), { code: 'FUNCTION_BOUND' })
  assert.throws(() => makeZone({ hookMs: 0 }), { code: 'ZONE_ARGUMENT' })
})
