/**
 * Dying workers and closing: what a zone keeps through all of it. broadcasts.test.ts has the broadcasts.
 *
 * Workers die here in every way Node has. The oracle of a death: exactly the running tasks fail, with
 * WORKER_DIED and the reason; everything that waited runs; the replacement has seen every broadcast.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Zone, type ZoneError, type ZoneOptions, zone } from './index.ts'
import { settled } from '../base/wait.test.support.ts'
import { inZone, makeZone, mark, marks, until } from './api/zones.test.support.ts'

type Death = [name: string, settings: ZoneOptions, body: () => unknown, reason: RegExp, cause?: RegExp]

const DEATHS: Death[] = [
  ['process.exit with a code', {}, () => process.exit(7), /it exited with code 7/],
  ['process.exit with 0', {}, () => process.exit(0), /it exited with code 0/],
  [
    'an error in a timer',
    {},
    () => {
      setImmediate(() => {
        throw Object.assign(new TypeError('nobody caught it'), {
          code: 'E_LOST',
        })
      })
      return new Promise(() => {})
    },
    /nobody caught it/,
    /nobody caught it/,
  ],
  [
    'a rejection nobody handles',
    {},
    () => {
      void Promise.reject(new RangeError('nobody handled it'))
      return new Promise(() => {})
    },
    /nobody handled it/,
    /nobody handled it/,
  ],
  [
    'a thrown text in a timer',
    {},
    () => {
      setImmediate(() => {
        throw 'just text'
      })
      return new Promise(() => {})
    },
    /just text/,
  ],
  [
    'an exhausted heap',
    { heapMbMax: 24 },
    () => {
      const kept: unknown[] = []
      for (;;) kept.push(Array.from({ length: 1000 }, () => ({})))
    },
    /heap was exhausted/,
    /memory limit/i,
  ],
]

for (const [name, settings, body, reason, cause] of DEATHS) {
  test(`${name}: the task fails with WORKER_DIED and why; the worker is replaced; others are not lost`, () =>
    inZone({ workers: 1, ...settings }, async (own) => {
      await own.broadcast(mark, ['replayed'])
      const dying = own.run(body)
      const after = [own.run(marks), own.run(() => 'later')]
      await assert.rejects(dying, (error: ZoneError<'WORKER_DIED'>) => {
        assert.equal(error.code, 'WORKER_DIED')
        assert.deepEqual([error.facts.zone, error.facts.worker], [own.id, `${own.id}/0`])
        assert.match(error.facts.reason, reason)
        if (cause !== undefined) assert.match(String((error.cause as Error).message), cause)
        if (name.startsWith('an error in a timer')) {
          assert.ok(error.cause instanceof TypeError)
          assert.equal((error.cause as { code?: string }).code, 'E_LOST')
        }
        return true
      })
      assert.deepEqual(await Promise.all(after), [['replayed'], 'later'])
      await until(() => own.stats().died === 1 && own.stats().workers === 1)
    }))
}

test('a worker that dies with no task running is replaced in silence', () =>
  inZone({ workers: 1 }, async (own) => {
    await own.run(() => void setImmediate(() => process.exit(1)))
    await until(() => own.stats().workers === 1)
    assert.equal(
      await own.run(() => 'ok').catch((error: ZoneError) => error.code === 'WORKER_DIED' && 'ok'),
      'ok',
    )
    assert.equal(await own.run(() => 'ok'), 'ok')
  }))

test('all overlapping tasks of a dying worker fail, each once', () =>
  inZone({ workers: 1, tasksPerWorkerMax: 10 }, async (own) => {
    const calls = Array.from({ length: 9 }, () => own.run(() => new Promise(() => {})))
    await until(() => own.stats().running === 9)
    const ends = await Promise.allSettled([...calls, own.run(() => process.exit(1))])
    assert.deepEqual(
      new Set(ends.map((end) => (end as { reason: ZoneError }).reason.code)),
      new Set(['WORKER_DIED']),
    )
    assert.equal(own.stats().died, 10)
  }))

test('a broadcast that kills every worker breaks the zone, whose error has the reason', async () => {
  const own = zone.create('lifecycle-broken-broadcast', { workers: 2 })
  await own.ready()
  const cast = own.broadcast(() => process.exit(9))
  const waiting = own.run(() => 1)
  const broken = {
    code: 'ZONE_START_FAILED',
    message: /cannot be started: it exited with code 9/,
  }
  const ends = await Promise.allSettled([cast, waiting])
  for (const end of ends) {
    const { code } = (end as { reason: ZoneError }).reason
    assert.ok(code === 'ZONE_START_FAILED' || code === 'WORKER_DIED', code)
  }
  await assert.rejects(cast, broken)
  await assert.rejects(
    own.run(() => 1),
    broken,
  )
  await own.close()
  zone.create('lifecycle-broken-broadcast', { workers: 1 })
  await (zone.get('lifecycle-broken-broadcast') as Zone).close()
})

const STARTS: [string, ZoneOptions, RegExp][] = [
  ['a module that is missing', { execArgv: ['--import', '/corespun-none.mjs'] }, /corespun-none\.mjs/],
  [
    'a module that throws',
    {
      execArgv: ['--import', 'data:text/javascript,throw new Error("preload")'],
    },
    /preload/,
  ],
  [
    'a module that exits',
    { execArgv: ['--import', 'data:text/javascript,process.exit(5)'] },
    /it exited with code 5/,
  ],
  [
    'an option Node refuses',
    { execArgv: ['--max-old-space-size=50'] },
    /could not be started: .*max-old-space-size/,
  ],
]

for (const [name, settings, reason] of STARTS) {
  test(`workers that cannot start because of ${name} break the zone with ZONE_START_FAILED`, async () => {
    for (const workers of [1, 3]) {
      const own = makeZone({ workers, ...settings })
      const execute = own.execute(() => 1, [], { timeoutMs: 60_000 })
      for (const end of await Promise.allSettled([
        own.ready(),
        own.run(() => 1),
        execute,
        own.broadcast(() => {}),
      ])) {
        const error = (end as { reason?: ZoneError }).reason
        assert.equal(error?.code, 'ZONE_START_FAILED')
        assert.match(error.message, reason)
      }
      await assert.rejects(
        own.run(() => 1),
        { code: 'ZONE_START_FAILED' },
      )
      await assert.rejects(own.ready(), { code: 'ZONE_START_FAILED' })
      await own.close()
    }
  })
}

test('settings reach the workers: env, execArgv, heap limit, names', () =>
  inZone(
    {
      workers: 1,
      env: { CORESPUN_TEST: 'yes' },
      execArgv: ['--no-warnings'],
      heapMbMax: 48,
    },
    async (own) => {
      const seen = await own.run(async () => {
        const { resourceLimits } = await import('node:worker_threads')
        return [
          process.env['CORESPUN_TEST'],
          process.env['PATH'],
          process.execArgv,
          resourceLimits.maxOldGenerationSizeMb,
        ]
      })
      assert.deepEqual(seen, ['yes', undefined, ['--no-warnings'], 48])
    },
  ))

test('close refuses new calls, finishes the accepted ones, frees the name; twice is as once', async () => {
  const own = zone.create('lifecycle-close', { workers: 2 })
  const accepted = Array.from({ length: 100 }, (_, n) =>
    own.run(async (n: number) => {
      await new Promise((resolve) => setImmediate(resolve))
      return n
    }, n),
  )
  const closing = [own.close(), own.close(), own[Symbol.asyncDispose]()]
  const closed = { code: 'ZONE_CLOSED', message: /^zone lifecycle-close is closed; / }
  await assert.rejects(
    own.run(() => 1),
    closed,
  )
  await assert.rejects(
    own.execute(() => 1),
    closed,
  )
  await assert.rejects(
    own.broadcast(() => 1),
    closed,
  )
  await assert.rejects(own.ready(), closed)
  assert.throws(() => own.broadcastSync(() => 1), closed)
  assert.deepEqual(
    await Promise.all(accepted),
    Array.from({ length: 100 }, (_, n) => n),
  )
  await Promise.all(closing)
  await own.close()
  assert.throws(() => zone.get('lifecycle-close'), { code: 'ZONE_UNKNOWN' })
  await zone.create('lifecycle-close', { workers: 1 }).close()
  await assert.rejects(
    own.run(() => 1),
    closed,
  )
})

test('close ends what does not end: running loops, what waits behind them, and broadcasts', async () => {
  const own = makeZone({ workers: 2 })
  await own.ready()
  const endless = [1, 2].map(() =>
    own.run(() => {
      for (;;);
    }),
  )
  await until(() => own.stats().running === 2)
  const ends = Promise.allSettled([...endless, own.run(() => 1), own.broadcast(() => {})])
  await own.close({ timeoutMs: 50 })
  for (const end of await ends) assert.equal((end as { reason: ZoneError }).reason.code, 'ZONE_CLOSED')
  assert.equal(own.stats().workers, 0)
})

test('close with a deadline of 0 ms right after create ends workers that have not even started', async () => {
  for (let round = 0; round < 5; round++) {
    const own = zone.create('lifecycle-quick', { workers: 2 })
    const ends = Promise.allSettled([own.run(() => 1), own.broadcast(() => {})])
    await own.close({ timeoutMs: 0 })
    for (const end of await ends) {
      assert.ok(
        end.status === 'fulfilled' || (end.reason as ZoneError).code === 'ZONE_CLOSED',
        String((end as { reason?: unknown }).reason),
      )
    }
  }
})

test('a worker that dies while the zone closes does not take accepted tasks with it', async () => {
  const own = makeZone({ workers: 1 })
  const calls: Promise<unknown>[] = [1, 2, 3].map((n) =>
    own.run((n: number) => (n === 1 ? process.exit(1) : n), n),
  )
  const closing = own.close()
  const ends = await Promise.allSettled(calls)
  await closing
  assert.equal((ends[0] as { reason: ZoneError }).reason.code, 'WORKER_DIED')
  assert.deepEqual(
    ends.slice(1).map((end) => (end as { value?: unknown }).value),
    [2, 3],
  )
})

test('a task that closes its own zone and does not wait for that ends well', async () => {
  const own = zone.create('lifecycle-self', { workers: 1 })
  const answer = await own.run(async () => {
    const { zone } = await import('./index.js')
    void zone.current.close()
    return 'closing'
  })
  assert.equal(answer, 'closing')
  await own.close()
})

test('a task that awaits close() of its own zone is refused at once, and the zone closes', async () => {
  const isolated = process.platform === 'win32' ? [] : [{ workers: 1, isolation: 'process' } as const]
  for (const settings of [{ workers: 1 } as const, ...isolated]) {
    const own = zone.create('lifecycle-awaits', settings)
    const closed = own.run(async () => {
      const { zone } = await import('./index.js')
      await zone.current.close()
    })
    await assert.rejects(settled(closed, 'the refusal'), {
      code: 'ZONE_DEADLOCK',
      facts: {
        zone: 'lifecycle-awaits',
        call: 'a task that awaits close() of its own zone',
      },
    })
    await own.close()
  }
})

test('a worker that loads a module which creates its zone learns that from the error', async () => {
  await inZone({ workers: 1 }, async (own) => {
    const again = own.run(async (id) => {
      const { zone } = await import('./index.js')
      zone.create(id)
    }, own.id)
    await assert.rejects(again, { code: 'ZONE_EXISTS', facts: { zone: own.id, workerOf: own.id } })
    await assert.rejects(again, /a worker of zone "[^"]+" has loaded a module that creates it/)
  })
})

test('await using closes a zone', async () => {
  {
    await using own = zone.create('lifecycle-using', { workers: 1 })
    assert.equal(await own.run(() => 1), 1)
  }
  assert.throws(() => zone.get('lifecycle-using'), { code: 'ZONE_UNKNOWN' })
})

test('ready waits for all workers; an idle zone sleeps and uses no wake-ups', () =>
  inZone({ workers: 2 }, async (own) => {
    await own.ready()
    assert.equal(own.stats().workers, 2)
    await until(() => own.stats().asleep === 2)
    const { wakeUps } = own.stats()
    await new Promise((resolve) => setTimeout(resolve, 200))
    assert.equal(own.stats().wakeUps, wakeUps)
  }))

test('eight zones at once, each with its own workers, and none is left', async () => {
  const { native } = await import('../native/index.ts')
  const ids = native.zoneIds()
  await Promise.all(
    Array.from({ length: 8 }, async (_, n) => {
      const own = zone.create(`lifecycle-many-${n}`, { workers: 1 })
      assert.equal(await own.run((n: number) => n, n), n)
      await own.close()
    }),
  )
  assert.equal(native.zoneIds(), ids)
})
