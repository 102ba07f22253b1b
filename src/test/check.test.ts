/**
 * What a check promises: the same seed makes the same run, time and chance are its own, tasks die as
 * processes do, and what no seed decides is refused.
 */
import assert from 'node:assert/strict'
import { getRandomValues, randomBytes, randomFill, randomFillSync, randomInt, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { setInterval as interval, scheduler, setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { durable, pause, runs, step as runStep } from '../durable/index.ts'
import { Schedule, all, fork, sleep as fiberSleep } from '../fiber/index.ts'
import { store } from '../store/index.ts'
import { Lock } from '../sync/index.ts'
import { type CheckError, type Model, type World, check, exactlyOnce, linearizable } from './index.ts'

type Found = CheckError<'CHECK_FAILED'>
const failing = (options: object, body: (world: World) => unknown): Promise<Found> =>
  check(options, body).then(
    () => assert.fail('nothing is found'),
    (error: Found) => error,
  )

test('a check that finds nothing counts its seeds and their schedules', async () => {
  const { seeds, schedules, steps } = await check({ seeds: 30 }, async ({ spawn, step }) => {
    const tasks = [1, 2, 3].map(() => spawn(() => step()))
    for (const task of tasks) await task.join()
  })
  assert.equal(seeds, 30)
  assert.ok(schedules > 5 && schedules <= 31)
  assert.ok(steps > 300)
})

test('time, chance, timers and ids follow from the seed, and are real again behind it', async () => {
  const seen: unknown[][] = []
  const before = [setTimeout, Date, Math.random]
  for (const _ of [1, 2])
    await check({ seeds: 3 }, async ({ now, id, random, sleep }) => {
      const list: unknown[] = [Math.random(), random(), randomUUID(), crypto.randomUUID(), id()]
      const later = await new Promise((resolve) => randomBytes(8, (_, bytes) => resolve(bytes)))
      list.push(randomBytes(8).toString('hex'), later)
      await wait(1000)
      assert.equal(now(), Date.UTC(2026, 0, 1, 0, 0, 1))
      assert.equal(new Date().getTime(), now())
      assert.equal(new Date(5).getTime(), 5)
      assert.match(Date(), /2026|2025/)
      assert.ok(new Date() instanceof Date)
      let ticks = 0
      const interval = setInterval(() => void ticks++, 100)
      await sleep(1050)
      clearInterval(interval)
      clearTimeout(setTimeout(() => assert.fail('cleared'), 1))
      clearImmediate(setImmediate(() => assert.fail('cleared')))
      const timer = setTimeout(() => void (ticks += 100), 5)
        .unref()
        .ref()
        .refresh()
      assert.equal(timer.hasRef(), true)
      await sleep(3_600_000)
      await new Promise((resolve) => setImmediate(resolve))
      timer.close()
      list.push(ticks, performance.now(), process.hrtime.bigint(), process.hrtime()[0])
      list.push(crypto.getRandomValues(new Uint16Array(3)), getRandomValues(new Uint8Array(3)))
      list.push(randomInt(1e6), randomInt(5, 7), randomFillSync(new Uint32Array(4), 1, 2))
      list.push(await promisify(randomInt)(1e6), await promisify(randomFill)(new Uint8Array(3)))
      assert.equal(await promisify(setTimeout)(1000, 'later'), 'later')
      await promisify(setImmediate)()
      list.push(now())
      await assert.rejects(wait(1, 0, { signal: AbortSignal.abort('early') }), {
        code: 'ABORT_ERR',
        cause: 'early',
      })
      seen.push(list)
    })
  assert.equal(seen.length, 8)
  assert.deepEqual(seen.slice(0, 4), seen.slice(4))
  assert.equal(new Set(seen.map(String)).size, 4)
  assert.equal(seen[0][7], 110)
  assert.deepEqual([setTimeout, Date, Math.random], before)
  assert.ok(Date.now() > 0)
})

test('a seed that CORESPUN_SEED names is played alone', async () => {
  process.env['CORESPUN_SEED'] = '77'
  try {
    const played: number[] = []
    await check({ seeds: 10 }, ({ seed }) => void played.push(seed))
    assert.deepEqual(played, [0, 77])
    process.env['CORESPUN_SEED'] = 'seven'
    const wrong = { code: 'CHECK_ARGUMENT', message: /^CORESPUN_SEED must be .*"seven"/ }
    await assert.rejects(
      check({ seeds: 10 }, () => {}),
      wrong,
    )
  } finally {
    delete process.env['CORESPUN_SEED']
  }
})

test('each strategy finds a race, and the schedule is shortened to what it needs', async () => {
  for (const strategy of ['random', 'pct', 'rounds'] as const) {
    const { code, facts, cause } = await failing({ seeds: 2000, strategy }, async ({ spawn, step }) => {
      let balance = 0
      const add = async () => {
        const read = balance
        await step('think')
        balance = read + 1
      }
      const noise = spawn(async () => {
        for (let count = 0; count < 10; count++) await step('noise')
      })
      const tasks = [spawn(add), spawn(add)]
      for (const task of [...tasks, noise]) await task.join()
      assert.equal(balance, 2)
    })
    assert.equal(code, 'CHECK_FAILED')
    assert.ok(facts.deviations <= 2, `${strategy}: ${facts.deviations}`)
    assert.match(facts.story, /add #2: think {2}\(check\.test\.[jt]s:\d+\)/)
    assert.match(facts.command, new RegExp(`CORESPUN_SEED=${facts.seed} node .*check\\.test`))
    assert.ok(cause instanceof assert.AssertionError)
  }
})

test('a deadlock names who waits for what, and a run that does not end who goes on', async () => {
  const locks = await failing({ seeds: 500 }, async ({ spawn, lock }) => {
    const [a, b] = [lock(), lock()]
    const tasks = [
      spawn(() => a.guard(() => b.guard(() => {}))),
      spawn(() => b.guard(() => a.guard(() => {}))),
    ]
    for (const task of tasks) await task.join()
  })
  assert.equal(locks.code, 'CHECK_DEADLOCK')
  assert.match(locks.message, /task #1 waits for a lock[^]*task #2 waits for a lock/)
  const stuck = await failing({ seeds: 1 }, () => new Promise(() => {}))
  assert.match(stuck.message, /main waits for a promise that nobody settles/)
  const endless = await failing({ seeds: 1, stepsMax: 200 }, async ({ step }) => {
    for (;;) await step('again')
  })
  assert.equal(endless.code, 'CHECK_LIVELOCK')
  assert.match(endless.message, /not ended after 200 steps[^]*main: again/)
})

test('what no seed decides is refused with its name and line', async () => {
  const file = await failing({ seeds: 1 }, () => readFile(new URL(import.meta.url)))
  assert.equal(file.code, 'CHECK_REAL')
  assert.match(file.message, /FSREQPROMISE|FSREQCALLBACK|FILEHANDLE/)
  const timer = await failing({ seeds: 1, mock: false }, () => new Promise((go) => setTimeout(go, 1)))
  assert.match(timer.message, /a Timeout of Node at .*check\.test\.[jt]s:\d+/)
  const seeds: number[] = []
  const later = await failing({ seeds: 9 }, ({ seed }) =>
    seeds.push(seed) && seed === 3 ? readFile(new URL(import.meta.url)) : undefined,
  )
  assert.equal(later.code, 'CHECK_REAL')
})

test('a program that is another one each time is refused', async () => {
  let runs = 0
  const found = await failing({ seeds: 5 }, async ({ step, seed }) => {
    if (seed === 0) return
    for (let count = 0; count < runs++; count++) await step()
    throw new Error('always')
  })
  assert.equal(found.code, 'CHECK_NOT_REPEATED')
})

test('an error of a task that nobody joins is that of the run', async () => {
  const found = await failing({ seeds: 1 }, async ({ spawn, sleep }) => {
    spawn(() => Promise.reject(new RangeError('lost')))
    await sleep(1)
  })
  assert.match(found.message, /lost/)
  await check({ seeds: 1 }, async ({ spawn, step }) => {
    const task = spawn(() => Promise.reject(new RangeError('joined')))
    await step()
    await assert.rejects(task.join(), RangeError)
    await assert.rejects(task.join(), RangeError)
  })
})

test('a rejection that nobody handles, or a fiber that nobody joins, fails the run', async () => {
  const listeners = process.listenerCount('unhandledRejection')
  const lost = new RangeError('lost')
  const reject = (): void => void Promise.reject(lost)
  const fail = (): void =>
    void fork(function* () {
      yield* fiberSleep(1)
      throw lost
    })
  for (const lose of [reject, fail]) {
    const { code, message } = await failing({ seeds: 300 }, async ({ random, sleep }) => {
      const isLost = random() > 0.95
      await sleep(1)
      if (isLost) lose()
      await sleep(10)
    })
    assert.equal(code, 'CHECK_FAILED')
    assert.match(message, /^seed \d+: .*lost[^]*play it again: /)
  }
  assert.equal(process.listenerCount('unhandledRejection'), listeners)
})

test('a task that is killed runs no more code, and its locks are released', async () => {
  const named = Lock.create('of the test')
  await check({ seeds: 200, stall: 0 }, async ({ spawn, kill, step, sleep, semaphore, channel }) => {
    const log: string[] = []
    const two = semaphore({ permits: 1 })
    const box = channel<number>({ messagesMax: 1 })
    const holder = spawn(async () => {
      const child = spawn(async () => {
        await sleep(1000)
        log.push('child')
      })
      try {
        await named.guard(() => two.guard(() => child.join()))
      } finally {
        log.push('finally')
      }
    }, 'holder')
    const waiting = spawn(() => named.guard(() => {}), 'waiting')
    const taking = spawn(() => box.take(), 'taking')
    await step()
    kill(holder)
    kill(waiting)
    kill(taking)
    kill(taking)
    await named.guard(() => two.guard(() => log.push('free')))
    await assert.rejects(holder.join(), { code: 'CHECK_KILLED' })
    await box.put(1)
    assert.equal(await box.take(), 1)
    await sleep(2000)
    assert.deepEqual(log, ['free'])
  })
  assert.equal(await named.guard(() => 'free'), 'free')
  named[Symbol.dispose]()
})

test('a call that dies when a worker is free for it leaves that to the next one', () =>
  check({ seeds: 500 }, async ({ zone, step, spawn, random }) => {
    const one = zone.create('one', { workers: 1 })
    const calls = ['a', 'b', 'c'].map((name) => spawn(() => one.run(async () => step()), name))
    for (let count = Math.floor(random() * 9); count > 0; count--) await step()
    calls[1].kill()
    await Promise.all([calls[0].join(), calls[2].join()])
  }))

test('an aborted timer of Node fails as there', () =>
  check({ seeds: 20, stall: 0 }, async ({ spawn, step }) => {
    const controller = new AbortController()
    const timer = spawn(() => wait(1000, undefined, { signal: controller.signal }))
    await step()
    controller.abort('enough')
    await assert.rejects(timer.join(), { name: 'AbortError', code: 'ABORT_ERR', cause: 'enough' })
  }))

test('calls of a zone wait for its workers, get copies, and are lost with them', async () => {
  await check({ seeds: 200 }, async ({ zone, step, spawn }) => {
    const cpu = zone.create('cpu', { workers: 2 })
    let most = 0
    let running = 0
    const work = async (item: { readonly n: number }) => {
      most = Math.max(most, ++running)
      await step()
      running--
      return { double: item.n * 2 }
    }
    assert.deepEqual(await cpu.map([{ n: 1 }, { n: 2 }, { n: 3 }], work), [
      { double: 2 },
      { double: 4 },
      { double: 6 },
    ])
    assert.ok(most <= 2)
    await assert.rejects(
      cpu.run(() => Promise.reject(new RangeError('its own'))),
      RangeError,
    )
    const call = spawn(() => cpu.execute(async () => new Promise(() => {})))
    await step()
    while (!cpu.killWorker()) await step()
    await assert.rejects(call.join(), { code: 'WORKER_DIED' })
    assert.equal(await cpu.run((a: number) => a + 1, 1), 2)
  })
  let died = 0
  await check({ seeds: 100 }, async ({ zone, step }) => {
    const weak = zone.create('weak', { workers: 1, deaths: 0.2 })
    const slow = async () => (await step(), await step(), 'done')
    const outcomes = await Promise.allSettled([weak.run(slow), weak.run(slow), weak.run(slow)])
    died += outcomes.filter(({ status }) => status === 'rejected').length
  })
  assert.ok(died > 20 && died < 280)
})

test('fibers of a run are interleaved in its time', async () => {
  const orders = new Set<string>()
  await check({ seeds: 100 }, async ({ now }) => {
    const begun = now()
    const log: string[] = []
    const slow = (name: string) =>
      function* () {
        yield* fiberSleep(1000)
        log.push(name)
      }
    await fork(all([slow('a'), slow('b')])).join()
    assert.equal(now() - begun, 1000)
    orders.add(log.join())
  })
  assert.deepEqual([...orders].sort(), ['a,b', 'b,a'])
})

test('durable runs keep what they promise when their process dies and messages are lost', async () => {
  let resumed = 0
  const network = { loss: 0.03, repeat: 0.03, delayMs: 20 }
  await check({ seeds: 20, network, stall: 0 }, async ({ connect, spawn, sleep, random }) => {
    const charges: string[] = []
    const order = durable('order', function* (cents: number) {
      const payment = yield* runStep('charge', ({ key }) => void charges.push(key), [], {
        retry: Schedule.spaced(20),
      })
      yield* pause(300)
      return yield* runStep('ship', async () => `${cents} ${payment}`)
    })
    const open = { definitions: [order], leaseMs: 600 } as const
    const worker = () =>
      spawn(async () => {
        await retried(() => runs(connect(), open))
        await sleep(3_600_000)
      }, 'worker')
    const shop = await retried(() => runs(connect(), { ...open, runsMax: 0 }))
    const first = worker()
    const run = await retried(() => shop.start('order', 250, { key: 'a' }))
    await sleep(random() * 400)
    first.kill()
    worker()
    assert.equal(await retried(() => run.result({ timeoutMs: 60_000 })), '250 undefined')
    const { steps, resumedCount } = await retried(() => run.state())
    resumed += resumedCount
    assert.equal(steps.filter(({ name }) => name === 'charge').length, 1)
    assert.equal(new Set(charges).size, 1)
  })
  assert.ok(resumed > 5, String(resumed))
})

test('a task that is cut off reaches nobody until it is connected again', async () => {
  await check({ seeds: 20, stall: 0 }, async ({ connect, spawn, cut, sleep }) => {
    const other = spawn(async () => {
      const kept = connect().store<number>('kept')
      for (let count = 0; ; count++, await sleep(100)) await kept.set('count', count).catch(() => {})
    }, 'other')
    const kept = connect().store<number>('kept')
    await sleep(1000)
    const heal = cut(other)
    await sleep(1000)
    const before = await kept.get('count')
    await sleep(3000)
    assert.deepEqual(await kept.get('count'), before)
    heal()
    await sleep(3000)
    assert.ok(Number((await kept.get('count'))?.value) > Number(before?.value))
  })
})

const REGISTER: Model<number, number | 'read', number> = {
  initial: 0,
  next: (state, input, output) => {
    if (input !== 'read') return [input]
    return output === undefined || output === state ? [state] : []
  },
}

test('a clock that steps changes the time of day alone', async () => {
  const jumps = new Set<number>()
  await check({ seeds: 60, clockStepMs: 3_600_000, stall: 0 }, async ({ now, sleep }) => {
    for (let count = 0; count < 10; count++) {
      const [day, time] = [now(), performance.now()]
      await sleep(1000)
      assert.equal(performance.now() - time, 1000)
      assert.equal(Date.now(), now())
      jumps.add(Math.sign(now() - day - 1000))
      assert.ok(Math.abs(now() - day) <= 3_601_000)
    }
  })
  assert.deepEqual([...jumps].sort(), [-1, 0, 1])
  const found = await failing({ seeds: 100, clockStepMs: 60_000 }, async ({ sleep }) => {
    const until = Date.now() + 1000
    await sleep(500)
    assert.ok(Date.now() < until, 'a lease by the clock of the day')
  })
  assert.match(found.facts.story, /main: the clock of the day steps by \d+ ms/)
})

test('what a run leaves open is found, if that is asked for', async () => {
  const left = (what: RegExp, body: (world: World) => unknown) =>
    failing({ seeds: 1, leaks: true }, body).then(({ code, message }) => {
      assert.equal(code, 'CHECK_LEAK')
      assert.match(message, what)
    })
  await left(/task #1: has not ended {2}\(check\.test\.[jt]s:\d+\)/, ({ spawn }) => void spawn(() => {}))
  await left(/main: setInterval\(\) {2}\(check\.test/, () => void setInterval(() => {}, 100))
  await left(/main waits for sleep\(5\)/, ({ sleep }) => void sleep(5))
  await left(/main: the server http:\/\/localhost:3000/, ({ serve }) => serve({ routes: {} }))
  await left(/fiber #\d+ idle has not ended/, async ({ step }) => {
    fork(fiberSleep(60_000), { name: 'idle' })
    await step()
  })
  await check({ seeds: 30, leaks: true }, async ({ spawn, serve, fetch, step, lock }) => {
    const [one, server] = [lock(), await serve({ routes: { '/': 'hello' } })]
    await Promise.all([1, 2].map(() => spawn(() => one.guard(() => step())).join()))
    assert.equal(await (await fetch(server.url)).text(), 'hello')
    const killed = spawn(() => new Promise(() => {}))
    await step()
    killed.kill()
    clearTimeout(setTimeout(() => {}, 5))
    assert.equal(
      setTimeout(() => {}, 60_000)
        .unref()
        .hasRef(),
      false,
    )
    await new Promise((resolve) => setTimeout(resolve, 5))
    await fork(fiberSleep(5)).join()
    await server.close()
  })
})

test('months pass, too: a sleep may be longer than a timer of Node', async () => {
  const monthMs = 30 * 86_400_000
  await check({ seeds: 3 }, async ({ now, sleep }) => {
    const beganMs = now()
    await sleep(monthMs)
    await fork(fiberSleep(monthMs)).join()
    assert.ok(now() - beganMs >= 2 * monthMs)
    // Of Node's own it makes 1 ms.
    const atMs = now()
    await wait(2 ** 31)
    await new Promise((resolve) => setTimeout(resolve, Infinity))
    assert.ok(now() - atMs < 3)
  })
})

test('hrtime() counts from an earlier one, to the ns', () =>
  check({ seeds: 20 }, async ({ random, sleep }) => {
    await sleep(random() * 1e9)
    const before = process.hrtime()
    assert.deepEqual(process.hrtime(before), [0, 0])
    await sleep(1000)
    const [s, ns] = process.hrtime(before)
    const leftNs = (s - 1) * 1e9 + ns
    assert.ok(leftNs >= -1000 && leftNs <= 1000, `${s} s, ${ns} ns`)
  }))

test('every clock and timer of Node is that of the run', () =>
  check({ seeds: 20, stall: 0, leaks: true }, async ({ now, sleep }) => {
    performance.mark('begin of a run')
    await sleep(90_000)
    performance.mark('end of a run')
    assert.equal(performance.measure('a run', 'begin of a run', 'end of a run').duration, 90_000)
    assert.equal(process.uptime(), 90)
    assert.equal(performance.timeOrigin + performance.now(), now())
    const format = new Intl.DateTimeFormat('en', { dateStyle: 'full', timeStyle: 'full' })
    assert.equal(format.format(), format.format(now()))
    assert.deepEqual(format.formatToParts(), format.formatToParts(now()))
    const { Temporal } = globalThis as { Temporal?: { Now: Record<string, (zone?: string) => object> } }
    if (Temporal !== undefined) {
      assert.equal(String(Temporal.Now['instant']()), '2026-01-01T00:01:30Z')
      assert.equal(String(Temporal.Now['plainDateTimeISO']('Asia/Tokyo')), '2026-01-01T09:01:30')
      assert.equal(String(Temporal.Now['plainDateISO']('Asia/Tokyo')), '2026-01-01')
      assert.equal(String(Temporal.Now['plainTimeISO']('UTC')), '00:01:30')
      assert.match(String(Temporal.Now['zonedDateTimeISO']()), /^20(26|25)-/)
    }
    const begun = now()
    const signal = AbortSignal.any([AbortSignal.timeout(250), AbortSignal.timeout(60_000)])
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    assert.equal((signal.reason as DOMException).name, 'TimeoutError')
    assert.equal(now() - begun, 250)
    await scheduler.yield()
    const ticks: [value: string, atMs: number][] = []
    for await (const value of interval(100, 'tick')) {
      ticks.push([value, now() - begun])
      if (ticks.length === 3) break
      await sleep(ticks.length === 1 ? 150 : 0)
    }
    assert.deepEqual(ticks, [
      ['tick', 350],
      ['tick', 500],
      ['tick', 550],
    ])
  }))

test('streams of Node in memory are played', () =>
  check({ seeds: 10 }, async ({ sleep }) => {
    const doubled: number[] = []
    await pipeline(
      Readable.from([1, 2, 3]),
      async function* (numbers: AsyncIterable<number>) {
        for await (const each of numbers) yield (await sleep(5), 2 * each)
      },
      new Writable({ objectMode: true, write: (each: number, _, done) => (doubled.push(each), done()) }),
    )
    assert.deepEqual(doubled, [2, 4, 6])
  }))

test('what has a bound of the time of a run fails when it takes longer', () =>
  check({ seeds: 20, stall: 0 }, async ({ within, sleep, now }) => {
    assert.equal(await within(100, async () => (await sleep(99), 'in time')), 'in time')
    const begun = now()
    const late = within(100, async function search() {
      await sleep(1000)
    })
    const message = "search has not ended within 100 ms of the run's time"
    await assert.rejects(late, { code: 'CHECK_LATE', message })
    assert.equal(now() - begun, 100)
    await assert.rejects(
      within(1, () => Promise.reject(new RangeError('its own'))),
      RangeError,
    )
  }))

test('a history of a register that is cached is not linearizable, that of one without is', async () => {
  const body = (isCached: boolean) => async (world: World) => {
    const { spawn, step, history, kill } = world
    const register = history<number | 'read', number>()
    let value = 0
    const caches = [0, 0]
    const write = (to: number, client: number) =>
      register.call(to, async () => {
        await step('write')
        caches[client] = value = to
        await step('answer')
        return to
      })
    const read = (client: number) => register.call('read', () => (isCached ? caches[client] : value))
    const client = (number: number) => async () => {
      await write(number + 1, number)
      await read(number)
      await step()
      await read(number)
    }
    const dying = spawn(() => write(9, 0), 'dying')
    const tasks = [spawn(client(0), 'a'), spawn(client(1), 'b')]
    await step()
    kill(dying)
    for (const task of tasks) await task.join()
    await read(0)
    linearizable(register, REGISTER)
  }
  const found = await failing({ seeds: 2000 }, body(true))
  assert.match(found.message, /no order of these operations/)
  await check({ seeds: 500 }, body(false))
})

test('effects are exactly those that are expected', () => {
  exactlyOnce(['a', 'b'], ['b', 'a'])
  assert.throws(() => exactlyOnce(['a', 'a', 'c'], ['a', 'b']), {
    code: 'CHECK_HISTORY',
    message: /a: 2 times\n {2}b: 0 times\n {2}c: not expected/,
  })
})

test('a check in a run of another one is refused with its line, before any wait', async () => {
  const nested = await failing({ seeds: 1 }, () => check({ seeds: 1 }, () => {}))
  const { code, facts, message } = nested.cause as CheckError<'CHECK_NESTED'>
  assert.deepEqual([nested.code, code], ['CHECK_FAILED', 'CHECK_NESTED'])
  assert.match(facts.where, /check\.test\.[jt]s:\d+$/)
  assert.ok(
    message.includes(
      `check() at ${facts.where} was called in a run of another check(), whose world has spawn()`,
    ),
  )
  const play = (): unknown => check({ seeds: 1 }, ({ step }) => step())
  await Promise.all([play(), play()])
})

test('times to live of stores pass with the time of the run', async () => {
  const outside = store.create<number>('outside', { ttlMs: 3_600_000 })
  outside.set('a', 1)
  for (const mock of [true, false])
    await check({ seeds: 20, stall: 0, mock }, async ({ sleep, store: made }) => {
      const own = store.create<number>('own', { ttlMs: 1000 })
      const other = made<number>({ file: 'other.db', ttlMs: 60_000 })
      try {
        own.set('default', 1)
        own.set('short', 1, { ttlMs: 10 })
        other.set('long', 1)
        await sleep(9)
        assert.ok(own.has('short'))
        await sleep(1)
        assert.deepEqual([own.get('short'), own.get('default')], [undefined, 1])
        await sleep(989)
        assert.equal(own.get('default'), 1)
        await sleep(1)
        assert.deepEqual([own.get('default'), other.get('long')], [undefined, 1])
        await sleep(5_184_000_000)
        assert.deepEqual([own.size, other.get('long'), outside.get('a')], [0, undefined, 1])
        assert.equal(await own.getOrCompute('default', () => 2), 2)
      } finally {
        own.close()
      }
    })
  outside.close()
})

test('options are checked, and a world is of its run alone', async () => {
  await assert.rejects(
    check({ seeds: 0 }, () => {}),
    { code: 'CHECK_ARGUMENT' },
  )
  await assert.rejects(
    check({ network: { loss: 2 } }, () => {}),
    { code: 'CHECK_ARGUMENT' },
  )
  let left: World | undefined
  await check({ seeds: 1 }, (world) => void (left = world))
  await assert.rejects(left!.sleep(1), { code: 'CHECK_OUTSIDE' })
  assert.throws(() => left!.random(), { code: 'CHECK_OUTSIDE' })
})

async function retried<Value>(fn: () => Promise<Value>): Promise<Value> {
  for (;;)
    try {
      return await fn()
    } catch (error) {
      if ((error as { readonly code?: string }).code !== 'FLEET_TIMEOUT') throw error
    }
}
