/**
 * Zones whose workers are processes: what crosses and what is refused, and that a crash ends one worker only.
 * Each test has a zone of its own, since most of them end its processes. Windows has no such zones.
 */
import assert from 'node:assert/strict'
import { randomFillSync } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { test as everywhere } from 'node:test'
import { move } from '../transport/index.ts'
import { store } from '../store/index.ts'
import { inZone, mark, marks, once, until } from './api/zones.test.support.ts'
import { Refused } from './isolation.test.support.ts'
import { type Zone, type ZoneError, type ZoneOptions, zone } from './index.ts'

const hasProcesses = process.platform !== 'win32'
const test = (name: string, body: () => Promise<void> | void): void => {
  void everywhere(name, { skip: !hasProcesses }, body)
}

const inProcesses = (settings: ZoneOptions, body: (own: Zone) => Promise<void>): Promise<void> =>
  inZone({ workers: 1, isolation: 'process', ...settings }, body)

const INSIDE = new URL('./isolation.test.support.js', import.meta.url)
const SUPPORT = new URL('./api/zones.test.support.js', import.meta.url)
const pidOf = (own: Zone): Promise<number> => own.run(() => process.pid)

/** Whether a process of that number exists; one that has ended and was waited for does not. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('tasks run in a process of their own, with the same values and errors as in a thread', () =>
  inProcesses({}, async (own) => {
    assert.notEqual(await pidOf(own), process.pid)
    assert.equal(own.settings.isolation, 'process')
    const value = { list: [1, 'two', 3n], map: new Map([[1, new Date(0)]]), none: undefined }
    assert.deepEqual(await own.run((given) => given, value), value)
    for (let round = 0; round < 40; round++)
      assert.deepEqual(await own.run((n) => ({ id: n, name: `n${n}` }), round), {
        id: round,
        name: `n${round}`,
      })
    assert.equal(
      await own.run(
        (fn, n) => fn(n),
        (n: number) => n * 2,
        21,
      ),
      42,
    )
    assert.equal((await own.run(() => (n: number) => n + 1))(41), 42)
    assert.deepEqual(await own.map([1, 2, 3], (n) => n * n), [1, 4, 9])
    const result = await own.execute<{ mark(value: unknown): void }>(SUPPORT, 'mark', ['a'])
    assert.equal(result.value, undefined)
    assert.deepEqual(await own.module<{ marks(): unknown[] }>(SUPPORT).marks(), ['a'])
    const failing = own.run(() => {
      throw Object.assign(new RangeError('beyond'), { code: 'E_BEYOND' })
    })
    await assert.rejects(failing, { name: 'RangeError', message: 'beyond', code: 'E_BEYOND' })
    await assert.rejects(failing, RangeError)
    const { done, failed, died } = own.stats()
    assert.deepEqual([failed, died], [1, 0])
    assert.ok(done > 45)
  }))

test('classes registered on both sides keep their class, also of errors', () =>
  inProcesses({}, async (own) => {
    const { echo, refuse } = own.module<typeof import('./isolation.test.support.ts')>(INSIDE)
    await assert.rejects(
      refuse(4),
      (error) => error instanceof Refused && error.amount === 4 && error.code === 'REFUSED',
    )
    const back = await echo(new Refused(3))
    assert.ok(back instanceof Refused)
    assert.deepEqual([back.amount, back.message, back.code], [3, 'refused: 3', 'REFUSED'])
  }))

test('what only this process has is refused by name, there and back; moved memory is copied', () =>
  inProcesses({}, async (own) => {
    await using shared = store.create('isolation')
    const refused: [unknown, RegExp][] = [
      [new SharedArrayBuffer(8), /shared memory cannot leave the process/],
      [shared, /'corespun\.Store' is valid in this process only/],
      [own, /'corespun\.Zone' is valid in this process only/],
      [new AbortController().signal, /'corespun\.AbortSignal' is valid in this process only/],
    ]
    for (const [value, message] of refused) {
      await assert.rejects(
        own.run((given) => given, { value }),
        { code: 'TRANSPORT_REFUSED', message },
      )
      await assert.rejects(own.broadcast(mark, [value]), { code: 'TRANSPORT_REFUSED', message })
    }
    const shares = own.run(() => new SharedArrayBuffer(8))
    await assert.rejects(shares, { code: 'TRANSPORT_REFUSED', message: /cannot leave the process/ })
    const buffer = new Uint8Array([1, 2, 3]).buffer
    assert.deepEqual(await own.run((given) => new Uint8Array(given)[2], move(buffer)), 3)
    // A thread of this process accepts them still.
    await inZone({ workers: 1 }, async (threads) => {
      assert.equal(await threads.run((given) => given.byteLength, new SharedArrayBuffer(8)), 8)
    })
  }))

test('however a process ends, its task fails with the reason, and the next runs in another process', () =>
  inProcesses({}, async (own) => {
    const deaths: [() => unknown, RegExp][] = [
      [() => process.kill(process.pid, 'SIGSEGV'), /was ended by SIGSEGV/],
      [() => process.kill(process.pid, 'SIGKILL'), /was ended by SIGKILL/],
      [() => process.abort(), /was ended by SIGABRT/],
      [() => process.exit(3), /exited with code 3/],
      [
        () =>
          new Promise(() => {
            setImmediate(() => {
              throw new RangeError('left behind')
            })
          }),
        /an error was not caught: left behind/,
      ],
    ]
    for (const [index, [death, message]] of deaths.entries()) {
      const pid = await pidOf(own)
      const dies = own.run(death)
      const queued = pidOf(own)
      await assert.rejects(dies, (error: ZoneError) => {
        assert.equal(error.code, 'WORKER_DIED')
        assert.match(error.message, message)
        assert.equal(error.cause instanceof RangeError, index === deaths.length - 1)
        return true
      })
      assert.notEqual(await queued, pid)
      assert.ok(!isAlive(pid), 'it was waited for')
    }
    assert.deepEqual([own.stats().died, own.stats().errors], [deaths.length, 0])
  }))

test('a process that closes its socket is ended', () =>
  inProcesses({}, async (own) => {
    const closes = own.run(async () => {
      const { closeSync } = await import('node:fs')
      closeSync(4)
      await new Promise(() => {})
    })
    await assert.rejects(closes, { code: 'WORKER_DIED' })
    assert.equal(await own.run(() => 'on'), 'on')
  }))

test('a loop that never returns ends with its process; a task that listens receives the reason', () =>
  inProcesses({ graceMs: 50 }, async (own) => {
    const pid = await pidOf(own)
    let timeoutMs = 20
    // A task that was sent and has not begun in its process is withdrawn there, and the process stays.
    await until(async () => {
      timeoutMs *= 2
      const endless = (): never => {
        for (;;);
      }
      await assert.rejects(own.execute(endless, [], { timeoutMs }), { code: 'TASK_TIMEOUT' })
      return (await pidOf(own)) !== pid
    }, 'the end of the process')
  }))

test('a cancelled task finds the reason in its signal, and its worker stays', () =>
  inProcesses({ graceMs: 60_000 }, async (own) => {
    const pid = await pidOf(own)
    const controller = new AbortController()
    const listens = own.execute(
      function () {
        const { signal } = this
        return new Promise<void>((resolve) => {
          ;(globalThis as { begun?: boolean }).begun = true
          signal.addEventListener('abort', () => {
            ;(globalThis as { why?: unknown }).why = signal.reason as unknown
            resolve()
          })
        })
      },
      [],
      { signal: controller.signal },
    )
    await until(() => own.stats().running === 1)
    controller.abort(new RangeError('not needed'))
    await assert.rejects(listens, { message: 'not needed' })
    const why = await own.run(() => (globalThis as { why?: Error }).why)
    // One that is cancelled before it begins leaves nothing.
    if (why !== undefined) assert.deepEqual([why.name, why.message], ['RangeError', 'not needed'])
    assert.equal(await pidOf(own), pid)
  }))

test('values of 50 MB travel both ways while small ones do', () =>
  inProcesses({ workers: 2 }, async (own) => {
    const large = randomFillSync(new Uint8Array(50_000_000))
    const [back, ...small] = await Promise.all([
      own.run((given) => given, large),
      ...Array.from({ length: 50 }, (_, n) => own.run((given) => given * 2, n)),
    ])
    assert.ok(Buffer.compare(back, large) === 0)
    assert.deepEqual(
      small,
      Array.from({ length: 50 }, (_, n) => n * 2),
    )
  }))

test('thousands of calls in flight return each its own value, also where tasks overlap', () =>
  inProcesses({ workers: 2, tasksPerWorkerMax: 16 }, async (own) => {
    const values = await Promise.all(
      Array.from({ length: 5000 }, (_, n) =>
        own.run(async (given) => {
          if (given % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
          return `${given}:${'x'.repeat(given % 700)}`
        }, n),
      ),
    )
    for (const [n, value] of values.entries()) assert.equal(value, `${n}:${'x'.repeat(n % 700)}`)
  }))

test('setup, its state, broadcasts and teardown are those of a thread; a replacement repeats them', () =>
  inProcesses(
    {
      setup: () => ({ pid: process.pid }),
      teardown: () => {
        throw new Error('torn')
      },
    },
    async (own) => {
      const errors: unknown[] = []
      own.onError((error) => void errors.push(error))
      await own.broadcast(mark, ['first'])
      own.broadcastSync(mark, ['second'])
      const { isSetUp } = own.module<typeof import('./isolation.test.support.ts')>(INSIDE)
      const state = async (): Promise<unknown[]> => [await isSetUp(), await own.run(marks)]
      assert.deepEqual(await state(), [true, ['first', 'second']])
      await assert.rejects(
        own.broadcast(() => void JSON.parse('{')),
        SyntaxError,
      )
      await assert.rejects(
        own.run(() => process.exit(0)),
        { code: 'WORKER_DIED' },
      )
      assert.deepEqual(await state(), [true, ['first', 'second']])
      const pid = await pidOf(own)
      await own.reload()
      assert.notEqual(await pidOf(own), pid)
      assert.deepEqual(await state(), [true, ['first', 'second']])
      await until(() => errors.length === 1)
      assert.equal((errors[0] as ZoneError).code, 'TEARDOWN_FAILED')
    },
  ))

test('a setup that fails in a process breaks the zone with its error', async () => {
  const own = zone.create('isolation-setup', {
    workers: 1,
    isolation: 'process',
    setup: () => {
      throw new RangeError('no licence')
    },
  })
  await assert.rejects(
    own.run(() => 1),
    (error: ZoneError) => error.code === 'SETUP_FAILED' && error.cause instanceof RangeError,
  )
  await own.close()
})

test('options that Node refuses break the zone, and its error contains that', async () => {
  const own = zone.create('isolation-options', {
    workers: 1,
    isolation: 'process',
    execArgv: ['--no-such-option'],
  })
  await assert.rejects(
    own.run(() => 1),
    { code: 'ZONE_START_FAILED', message: /exited with code 9/ },
  )
  await own.close()
})

test('a process has the environment, the options and the permissions of its zone alone', async () => {
  const permission = process.allowedNodeEnvironmentFlags.has('--permission')
    ? '--permission'
    : '--experimental-permission'
  const settings: ZoneOptions = {
    env: { ONLY: 'this' },
    execArgv: [
      permission,
      '--allow-addons',
      '--allow-worker',
      '--allow-fs-read=*',
      '--conditions=corespun-unbundled',
    ],
  }
  await inProcesses(settings, async (own) => {
    assert.equal(await own.run(() => process.env['ONLY']), 'this')
    assert.equal(await own.run(() => process.env['PATH']), undefined)
    const writes = own.run(async (path) => {
      const { writeFileSync } = await import('node:fs')
      writeFileSync(path, '')
    }, '/tmp/corespun-not-written')
    await assert.rejects(writes, { code: 'ERR_ACCESS_DENIED' })
  })
})

test('in a process the zone is that process, and other zones are its own', () =>
  inProcesses({ tasksPerWorkerMax: 1 }, async (own) => {
    const { inside } = own.module<typeof import('./isolation.test.support.ts')>(INSIDE)
    assert.deepEqual(await inside(), [own.id, true, 7])
  }))

test('an error that belongs to no task is reported and does not end what runs', () =>
  inProcesses({ tasksPerWorkerMax: 4 }, async (own) => {
    const received: [string, string][] = []
    own.onError((error, worker) => void received.push([(error as Error).message, worker]))
    const pid = await own.run(() => {
      setTimeout(() => {
        throw new RangeError('stray')
      }, 1)
      return process.pid
    })
    await until(() => received.length === 1)
    assert.deepEqual(received, [['stray', `${own.id}/0`]])
    assert.equal(own.stats().errors, 1)
    assert.notEqual(await pidOf(own), pid)
  }))

void everywhere(
  'a process has no more memory than its zone allows: the allocation fails, the process goes on',
  { skip: process.platform !== 'linux' },
  () =>
    inProcesses({ memoryMbMax: 256 }, async (own) => {
      const allocates = own.run(() => new Uint8Array(1_000_000_000).length)
      await assert.rejects(allocates, RangeError)
      const [megabytes] = await own.run(() => [new Uint8Array(50_000_000).fill(1).length / 1e6])
      assert.equal(megabytes, 50)
    }),
)

test('a process whose heap outgrows its limit aborts, which its task reports; the next call runs', () =>
  inProcesses({ heapMbMax: 32 }, async (own) => {
    const pid = await pidOf(own)
    const grows = own.run(() => {
      const kept: object[] = []
      while (kept.length < 8_000_000) kept.push({ of: kept.length })
      return 'some 300 MB'
    })
    await assert.rejects(grows, { code: 'WORKER_DIED', message: /was ended by SIGABRT/ })
    assert.notEqual(await pidOf(own), pid)
    assert.equal(own.stats().died, 1)
  }))

test('zones that grow and shrink start and end processes', () =>
  inZone({ isolation: 'process', executor: 'cached', workers: { max: 2, idleMs: 1 } }, async (own) => {
    const pid = await pidOf(own)
    assert.ok(isAlive(pid))
    await until(() => own.stats().workers === 0)
    assert.ok(!isAlive(pid))
    assert.notEqual(await pidOf(own), pid)
  }))

void everywhere('on Windows they are refused with the reason', { skip: hasProcesses }, () => {
  const create = (): Zone => zone.create('isolation-windows', { isolation: 'process' })
  assert.throws(create, {
    code: 'ISOLATION_UNSUPPORTED',
    message: /this is Node on win32; leave isolation out/,
  })
})

test('what a zone of processes cannot be is refused at its creation', () => {
  const cases: [ZoneOptions, RegExp][] = [
    [{ isolation: 'vm' as never }, /isolation/],
    [{ isolation: 'process', executor: 'work-stealing' }, /isolation needs another executor/],
    [{ memoryMbMax: 100 }, /memoryMbMax needs isolation: 'process'/],
    [{ isolation: 'process', memoryMbMax: 1 }, /memoryMbMax/],
  ]
  for (const [options, message] of cases)
    assert.throws(() => zone.create('isolation-wrong', options), { code: 'ZONE_ARGUMENT', message })
})

/** Open descriptors of this process, by what they are; none where the system does not list them. */
function sockets(): number {
  if (process.platform !== 'linux') return 0
  return readdirSync('/proc/self/fd').length
}

test('processes that end leave no descriptor, no thread and no zombie', async () => {
  const round = (): Promise<void> =>
    inProcesses({ workers: 2 }, async (own) => {
      for (let kill = 0; kill < 2; kill++) {
        const pid = await pidOf(own)
        process.kill(pid, 'SIGKILL')
        await until(() => !isAlive(pid))
      }
      await own.run(() => 1)
    })
  await round()
  const before = sockets()
  await round()
  await once(async () => {
    await new Promise((resolve) => setTimeout(resolve, 50))
    return sockets() <= before
  }, 'all descriptors are closed')
  if (process.platform === 'linux') {
    const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim()
    assert.equal(children, '')
  }
})
