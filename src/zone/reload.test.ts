/**
 * Reload: new workers replace the old ones, while calls go on.
 *
 * The module that the workers load is rewritten in between. The oracle: every call returns, with a version
 * that existed while it was in flight, and after `reload` every worker has the newest.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { store } from '../store/index.ts'
import { inZone, makeZone, mark, marks, until } from './api/zones.test.support.ts'
import { type Zone, type ZoneOptions, ZoneError, type ZoneReloadedEvent, zone } from './index.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-reload-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'code.mjs')
const url = pathToFileURL(file)

const shared = store.create('reload')
after(() => shared.close())

/** Write the module: it exports its version, and a setup that returns it. */
function write(version: number, setup = `return ${version}`): void {
  // At once, since a worker may be reading it.
  writeFileSync(
    `${file}.new`,
    `export const version = () => ${version}\nexport const setup = () => { ${setup} }\n`,
  )
  renameSync(`${file}.new`, file)
}

async function versionOf(own: Zone): Promise<number> {
  return (await own.execute(url, 'version')).value as number
}

const EXECUTORS: ZoneOptions[] = [
  { workers: 1 },
  { workers: 3 },
  { workers: 2, tasksPerWorkerMax: 4 },
  { workers: 2, executor: 'work-stealing' },
  { workers: { min: 2, max: 2 }, executor: 'blocking' },
]

for (const options of EXECUTORS) {
  test(`after reload all workers have the new code: ${JSON.stringify(options)}`, async () => {
    write(1)
    await inZone(options, async (own) => {
      await own.broadcast(mark, ['kept'])
      assert.equal(await versionOf(own), 1)
      write(2)
      await own.reload()
      const calls = Array.from({ length: 20 }, () => versionOf(own))
      assert.deepEqual(new Set(await Promise.all(calls)), new Set([2]))
      assert.deepEqual(await own.run(marks), ['kept'])
      const { workers, byWorker } = own.stats()
      assert.equal(workers, own.settings.workers)
      const numbers = byWorker.map(({ worker }) => Number(worker.slice(own.id.length + 1))).toSorted()
      assert.deepEqual(
        numbers,
        Array.from({ length: workers }, (_, slot) => slot),
      )
    })
  })
}

test('no call is refused or lost, however many reloads run beside', async () => {
  write(1)
  await inZone({ workers: 2, setup: url, tasksMax: 64 }, async (own) => {
    let version = 1
    let reloaded = 1
    let isOver = false
    let count = 0
    const caller = async (): Promise<void> => {
      while (!isOver) {
        const least = reloaded
        const seen = await versionOf(own)
        assert.ok(seen >= least && seen <= version, `${least} <= ${seen} <= ${version}`)
        count++
      }
    }
    const callers = Array.from({ length: 8 }, caller)
    for (let round = 2; round <= 4; round++) {
      write(round)
      version = round
      await Promise.all([own.reload(), own.reload()])
      reloaded = round
      assert.equal(await versionOf(own), round)
    }
    isOver = true
    await Promise.all(callers)
    const { failed, died } = own.stats()
    assert.deepEqual([failed, died], [0, 0])
    assert.ok(count > 8, String(count))
  })
})

test('a running task ends in its worker, also one that calls its own zone', async () => {
  await inZone({ workers: 1 }, async (own) => {
    shared.set('go', false)
    const long = own.run(async (id: string) => {
      const { threadId } = await import('node:worker_threads')
      const { zone } = await import('corespun/zone')
      const { store } = await import('corespun/store')
      const state = store.get('reload')
      state.set('begun', true)
      while (state.get('go') !== true) await new Promise((resolve) => setTimeout(resolve, 2))
      const inner = await zone.get(id).run(() => process.getBuiltinModule('node:worker_threads').threadId)
      return inner === threadId
    }, own.id)
    await until(() => shared.get('begun') === true)
    const reloaded = own.reload()
    const waiting = own.run(() => 'waited')
    // The old worker is retired once the new one is prepared.
    await new Promise((resolve) => setTimeout(resolve, 300))
    shared.set('go', true)
    assert.equal(await long, true)
    assert.equal(await waiting, 'waited')
    await reloaded
  })
})

test('a task that runs on for longer than closeMs ends with its worker', async () => {
  const own = makeZone({ workers: 1, closeMs: 30 })
  const endless = own.run(() => new Promise(() => {}))
  const lost = assert.rejects(endless, (error) => {
    assert.ok(error instanceof ZoneError && error.code === 'WORKER_DIED')
    assert.match(error.message, /reloaded/)
    return true
  })
  await own.ready()
  await until(() => own.stats().running === 1)
  await own.reload()
  await lost
  assert.equal(await own.run(() => 1), 1)
  await own.close()
})

test('a setup that fails in the new worker: reload rejects with it, and the old workers stay', async () => {
  write(1)
  await inZone({ workers: 2, setup: url }, async (own) => {
    assert.equal(await versionOf(own), 1)
    const before = own.stats().byWorker.length
    write(2, 'throw new RangeError("no database")')
    await assert.rejects(own.reload(), (error: Error & { code: string }) => {
      assert.equal(error.code, 'SETUP_FAILED')
      assert.ok(error.cause instanceof RangeError)
      return true
    })
    assert.equal(own.stats().byWorker.length, before)
    assert.equal(await versionOf(own), 1)
    write(3)
    await own.reload()
    assert.equal(await versionOf(own), 3)
  })
})

test('an event has how many workers a reload has replaced, and why not all', async () => {
  const events: ZoneReloadedEvent[] = []
  const seen = (event: unknown): void => void events.push(event as ZoneReloadedEvent)
  subscribe('corespun:zone:reloaded', seen)
  try {
    write(1)
    await inZone({ workers: 2, setup: url }, async (own) => {
      await versionOf(own)
      await own.reload()
      write(2, 'throw new RangeError("no database")')
      await assert.rejects(own.reload())
      await until(() => events.length === 2)
      assert.deepEqual(
        events.map(({ zone, workers }) => [zone, workers]),
        [
          [own.id, 2],
          [own.id, 0],
        ],
      )
      const [done, failed] = events
      assert.ok(done.ms > 0 && done.error === undefined)
      assert.equal((failed.error as ZoneError).code, 'SETUP_FAILED')
    })
  } finally {
    unsubscribe('corespun:zone:reloaded', seen)
  }
})

test('close during reload: both end, and no thread stays', async () => {
  for (const waitMs of [0, 5, 60]) {
    const own = makeZone({ workers: 2 })
    await own.ready()
    const reloaded = own.reload().then(
      () => 'done',
      (error: ZoneError) => error.code,
    )
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    await own.close()
    assert.ok(['done', 'ZONE_CLOSED'].includes(await reloaded))
    await assert.rejects(own.reload(), { code: 'ZONE_CLOSED' })
  }
})

test('workers that die during reload are replaced once', async () => {
  await inZone({ workers: 2 }, async (own) => {
    for (let round = 0; round < 4; round++) {
      const reloaded = own.reload()
      const died = Array.from({ length: 3 }, async (_, index) => {
        await new Promise((resolve) => setTimeout(resolve, index * 20 * round))
        await own.run(() => process.exit(1)).catch(() => {})
      })
      await Promise.all([reloaded, ...died])
      assert.equal(await own.run(() => 1), 1)
      await until(() => own.stats().workers === 2)
    }
  })
})

test('a zone without workers has nothing to replace; a busy cached one replaces what it has', async () => {
  await inZone({ executor: 'cached', workers: { max: 2 } }, async (own) => {
    await own.reload()
    write(1)
    assert.equal(await versionOf(own), 1)
    write(2)
    await own.reload()
    assert.equal(await versionOf(own), 2)
  })
})

test('another thread may reload; a task of the zone itself may not', async () => {
  write(1)
  await inZone({ workers: 1 }, async (own) => {
    assert.equal(await versionOf(own), 1)
    write(2)
    const reload = async (id: string): Promise<string> => {
      const { zone } = await import('corespun/zone')
      const called = zone.get(id) as import('./index.ts').Zone
      return called.reload().then(
        () => 'done',
        (error: { code: string }) => error.code,
      )
    }
    await inZone({ workers: 1 }, async (other) => {
      assert.equal(await other.run(reload, own.id), 'done')
    })
    assert.equal(await versionOf(own), 2)
    assert.equal(await own.run(reload, own.id), 'ZONE_DEADLOCK')
  })
})

test('one worker at a time: the others work on', async () => {
  let now = 0
  let least = 3
  const started = (): void => void now++
  const ended = (): void => void (least = Math.min(least, --now))
  const own = zone.create('reload-one', { workers: 3 })
  now = 3
  await own.ready()
  subscribe('corespun:worker:started', started)
  subscribe('corespun:worker:ended', ended)
  await own.reload()
  await own.run(() => 1)
  unsubscribe('corespun:worker:started', started)
  unsubscribe('corespun:worker:ended', ended)
  await own.close()
  assert.equal(least, 2)
})
