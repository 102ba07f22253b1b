/**
 * What calls over a fleet promise, as tests that run on any engine.
 *
 * Hosts and callers are in this process, each with a connection of its own.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { compute, until } from '../base/wait.test.support.ts'
import { TransportError, decode, encode } from '../transport/index.ts'
import { ZoneError, withTrace, zone } from '../zone/index.ts'
import type { Fleet } from './connect.ts'
import { newName } from './engine/conformance.test.support.ts'
import { FleetError } from './errors.ts'
import { type FleetHost, type HostOptions, host } from './host/host.ts'
import { ScoreError, user } from './scores.test.support.ts'
import type { FarZone } from './zone/far-zone.ts'

type Scores = typeof import('./scores.test.support.ts')
const MODULE = new URL('./scores.test.support.js', import.meta.url)

/** A host, a caller, and what they are called. */
interface Setting {
  readonly name: string
  readonly far: FarZone<Scores>
  readonly caller: Fleet
  readonly hosting: Fleet
  readonly running: FleetHost
  /** A path that does not exist. */
  readonly file: string
}

const code = (expected: string) => (error: unknown) => {
  assert.equal((error as { code?: unknown }).code, expected, String(error))
  return true
}

/** The tests, with connections that `connect` makes. */
export function callTests(kind: string, connect: () => Promise<Fleet>): void {
  const cpu = zone.create(`calls ${kind}`, { workers: 2, graceMs: 100 })
  const folder = mkdtempSync(join(tmpdir(), 'fleet-'))
  after(async () => {
    await cpu.close()
    rmSync(folder, { recursive: true })
  })
  const check = (
    title: string,
    work: (setting: Setting) => Promise<void>,
    options: Partial<HostOptions> = {},
  ): void => {
    test(`${kind}: ${title}`, async () => {
      const name = newName()
      await using caller = await connect()
      await using hosting = await connect()
      const running = await host(hosting, { name, module: MODULE, version: 'v1', zone: cpu, ...options })
      const far = caller.zone<Scores>(name)
      await work({ name, far, caller, hosting, running, file: join(folder, newName()) })
    })
  }
  results(check)
  errors(check)
  ends(check)
  streams(check)
  credit(check)
  hosts(check, connect)
}

/** Keep a host from ending the calls of a test: a caller that is silent for some seconds is lost. */
export function pinging({ engine }: Fleet, subject: string, calls: readonly string[]): () => void {
  const pings = setInterval(() => engine.messages!.ask(subject, encode(['ping', calls]), () => {}), 500)
  return () => clearInterval(pings)
}

type Check = (
  title: string,
  work: (setting: Setting) => Promise<void>,
  options?: Partial<HostOptions>,
) => void

function results(check: Check): void {
  check('a call returns what the function returns, whichever way it is made', async ({ far }) => {
    assert.equal(await far.run('score', ['abc']), 3)
    assert.equal(await far.run('nothing'), undefined)
    assert.equal(await far.module().score('four'), 4)
    const graph = new Map<unknown, unknown>([['at', new Date(5)]])
    graph.set('self', graph)
    const copy = (await far.run('echo', [graph])) as Map<unknown, unknown>
    assert.equal(copy.get('self'), copy)
    assert.deepEqual(copy.get('at'), new Date(5))
  })

  check('the trace travels with a call, and no other context does', async ({ far }) => {
    const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', baggage: 'a=1' }
    const seen = await user.run('Ann', () =>
      withTrace(trace, async () => [
        await far.run('traced'),
        await far.module().traced(),
        ...(await far.map([1, 2], 'traced')),
        (await far.stream('tracedRows', []).next()).value,
      ]),
    )
    for (const each of seen) assert.deepEqual(each, [trace, undefined, undefined])
    assert.deepEqual(await far.run('traced'), [undefined, undefined, undefined])
  })

  check('map returns values in the order of items, of arrays and of iterables', async ({ far }) => {
    const words = Array.from({ length: 200 }, (_, index) => 'x'.repeat(index % 17))
    const lengths = words.map(({ length }) => length)
    assert.deepEqual(await far.map(words, 'score'), lengths)
    const values: number[] = []
    for await (const value of far.map(new Set(['a', 'bb', 'ccc']), 'score')) values.push(value)
    assert.deepEqual(values, [1, 2, 3])
    assert.deepEqual(await far.map([], 'score'), [])
  })

  check(
    'map waits for a zone that is full',
    async ({ far, running }) => {
      const words = Array.from({ length: 60 }, (_, index) => 'x'.repeat(index))
      assert.deepEqual(
        await far.map(words, 'score', { callsMax: 20 }),
        words.map(({ length }) => length),
      )
      assert.equal(running.inFlight, 0)
    },
    { inFlightMax: 2 },
  )

  check(
    'values that are too large for a message go another way, and more than the limit none',
    async ({ far, caller }) => {
      const length = caller.engine.messageBytesMax + 1
      const bytes = new Uint8Array(length).fill(3)
      assert.equal(((await far.run('echo', [bytes])) as Uint8Array).length, length)
      assert.equal((await far.run('sized', [length])).length, length)
      await assert.rejects(far.run('echo', [new Uint8Array(5_000_000)]), code('FLEET_TOO_LARGE'))
      await assert.rejects(far.run('sized', [5_000_000]), code('FLEET_TOO_LARGE'))
    },
  )
}

function errors(check: Check): void {
  check('errors keep class, code and cause', async ({ far }) => {
    await assert.rejects(far.run('fail', ['LOW']), (error) => {
      assert.ok(error instanceof ScoreError)
      assert.equal(error.code, 'LOW')
      assert.equal(error.message, 'no score: LOW')
      assert.ok(error.cause instanceof RangeError)
      return true
    })
    await assert.rejects(far.run('failOddly', []), (error) => {
      assert.ok(error instanceof TypeError)
      assert.equal((error as { readonly code?: unknown }).code, 'ODD')
      return true
    })
  })

  check('only functions that the module exports are called', async ({ far }) => {
    for (const name of ['missing', 'notAFunction', 'score.constructor', 'constructor', '__proto__'])
      await assert.rejects(far.run(name as 'score', ['x']), (error) => {
        assert.ok(error instanceof FleetError && error.code === 'EXPORT_MISSING', String(error))
        assert.match(error.message, /score/)
        return true
      })
  })

  check('what cannot be encoded is named, on both sides', async ({ far }) => {
    await assert.rejects(far.run('echo', [() => 1]), TransportError)
    await assert.rejects(far.run('rows', [1]), TransportError)
    await assert.rejects(far.run('echo', [new SharedArrayBuffer(1)]), TransportError)
  })

  check('nobody hosts another name, and nobody another version', async ({ far, caller, name }) => {
    await assert.rejects(caller.zone<Scores>(`${name}_`).run('score', ['x']), code('ZONE_NOWHERE'))
    const own = caller.zone<Scores>(name, { version: 'v1' })
    assert.equal(await own.run('score', ['xx']), 2)
    const other = caller.zone<Scores>(name, { version: 'other' })
    await assert.rejects(other.run('score', ['x']), (error) => {
      assert.ok(error instanceof FleetError && error.code === 'ZONE_NOWHERE')
      assert.match(error.message, /hosts have v1: /)
      return true
    })
    await assert.rejects(other.ready(), code('ZONE_NOWHERE'))
    await assert.rejects(other.map(['x'], 'score'), code('ZONE_NOWHERE'))
    await far.ready()
  })
}

function ends(check: Check): void {
  check('a deadline ends the call here and there', async ({ far, running }) => {
    await assert.rejects(far.run('wait', [], { timeoutMs: 30 }), (error) => {
      assert.ok(error instanceof ZoneError && error.code === 'TASK_TIMEOUT', String(error))
      return true
    })
    while (running.inFlight > 0) await turn()
    await assert.rejects(far.map(['x'], 'wait' as 'score', { timeoutMs: 30 }), code('TASK_TIMEOUT'))
    while (running.inFlight > 0) await turn()
  })

  check('an abort ends the call with its reason, and the task too', async ({ far, running }) => {
    const controller = new AbortController()
    const waiting = far.run('wait', [], { signal: controller.signal })
    const settled = assert.rejects(waiting, /enough/)
    while (running.inFlight === 0) await turn()
    controller.abort(new Error('enough'))
    await settled
    while (running.inFlight > 0) await turn()
    await assert.rejects(far.run('score', ['x'], { signal: controller.signal }), /enough/)
  })

  check(
    'a full host refuses, and accepts again',
    async ({ far, file }) => {
      const busy = far.run('until', [file])
      await assert.rejects(far.run('score', ['x']), code('ZONE_FULL'))
      const ready = far.ready()
      writeFileSync(file, '')
      assert.equal(await busy, file)
      await ready
      assert.equal(await far.run('score', ['x']), 1)
    },
    { inFlightMax: 1 },
  )

  check('a host that closes finishes its calls and takes no more', async ({ far, running, file }) => {
    const busy = far.run('until', [file])
    while (running.inFlight === 0) await turn()
    const closed = running.close()
    await assert.rejects(far.run('score', ['x']), code('ZONE_NOWHERE'))
    writeFileSync(file, '')
    assert.equal(await busy, file)
    await closed
  })

  check('what a closing host does not wait for ends', async ({ far, running }) => {
    const waiting = assert.rejects(far.run('wait', []), code('HOST_LOST'))
    while (running.inFlight === 0) await turn()
    await running.close({ timeoutMs: 1 })
    await waiting
  })

  check('a host that is lost under a call is an error', async ({ far, hosting, running }) => {
    const waiting = assert.rejects(far.run('wait', []), code('HOST_LOST'))
    while (running.inFlight === 0) await turn()
    await hosting.engine.close()
    await waiting
    await running.close({ timeoutMs: 0 })
  })

  check('closing the connection ends its calls', async ({ far, caller, running }) => {
    const waiting = assert.rejects(far.run('wait', []), code('FLEET_CLOSED'))
    while (running.inFlight === 0) await turn()
    await caller.close()
    await waiting
    await assert.rejects(far.run('score', ['x']), code('FLEET_CLOSED'))
    while (running.inFlight > 0) await turn()
  })
}

function streams(check: Check): void {
  check('a stream returns its items in order, and its error behind them', async ({ far }) => {
    const rows: number[] = []
    for await (const row of far.stream('rows', [300], { aheadMax: 7 })) rows.push(row)
    assert.deepEqual(
      rows,
      Array.from({ length: 300 }, (_, index) => index),
    )
    const failing = far.stream('rows', [2, true])
    assert.deepEqual([(await failing.next()).value, (await failing.next()).value], [0, 1])
    await assert.rejects(failing.next(), ScoreError)
    assert.equal((await failing.next()).done, true)
    await assert.rejects(far.stream('score' as 'rows', [1]).next(), TypeError)
  })

  check('a stream that a closing host does not wait for is an error', async ({ far, running, file }) => {
    const values = far.stream('endless', [file])
    await values.next()
    const read = async (): Promise<void> => {
      for await (const value of values) assert.ok(value > 0)
    }
    const cut = assert.rejects(read(), code('HOST_LOST'))
    await running.close({ timeoutMs: 1 })
    await cut
  })

  check('behind an abort a stream has no item, though some have come', async ({ far, file }) => {
    const controller = new AbortController()
    const values = far.stream('endless', [file], { aheadMax: 64, signal: controller.signal })
    for (let taken = 0; taken < 3; taken++) await values.next()
    controller.abort(new Error('enough'))
    await assert.rejects(values.next(), /enough/)
    assert.equal((await values.next()).done, true)
  })

  check('a limit of a stream passes while its reader computes', async ({ far, file }) => {
    const values = far.stream('endless', [file], { aheadMax: 4096, timeoutMs: 200 })
    const read = async (): Promise<void> => {
      for await (const row of values) {
        assert.ok(row < 100_000, 'read on')
        compute(0.1)
      }
    }
    await assert.rejects(read, code('TASK_TIMEOUT'))
  })

  check('a stream that is left ends its function', async ({ far, file, running }) => {
    for await (const row of far.stream('endless', [file], { aheadMax: 4 })) if (row === 10) break
    while (!existsSync(file) || running.inFlight > 0) await turn()
    const unread = far.stream('endless', [file])
    await unread.return()
    assert.equal((await unread.next()).done, true)
    const signal = AbortSignal.abort(new Error('never'))
    await assert.rejects(far.stream('rows', [1], { signal }).next(), /never/)
  })
}

/** A host that sends ten parts at once, and their end. */
async function flooding(fleet: Fleet, name: string): Promise<void> {
  const messages = fleet.engine.messages!
  const card = encode(['card', 'h', 'v1', 'machine', 8, 0, false])
  await messages.listen(`corespun.zone.${name}`, ({ reply }) => reply(card))
  await messages.listen(`corespun.host.${name}.h`, ({ bytes, reply }) => {
    if ((decode(bytes) as unknown[])[0] !== 'run') return
    for (let number = 0; number < 10; number++) reply(encode(['part', encode(number), number]))
    reply(encode(['value', encode(undefined), 0, 10]))
  })
}

function credit(check: Check): void {
  check('a host that sends more than was asked for ends the call', async ({ far, caller, hosting, name }) => {
    await flooding(hosting, `${name}_`)
    const flooded = caller.zone<Scores>(`${name}_`)
    await assert.rejects(flooded.run('score', ['x']), code('HOST_CREDIT'))
    const rows = flooded.stream('rows', [10], { aheadMax: 2 })
    const first = rows.next()
    first.catch(() => {})
    // Whose reply comes behind all that the other one has sent.
    await far.run('score', ['x'])
    let taken = 1
    const read = async (): Promise<void> => {
      await first
      for await (const _ of rows) taken++
    }
    await assert.rejects(read, code('HOST_CREDIT'))
    assert.ok(taken <= 3, `${taken} taken`)
  })

  check('a host sends no more than it is asked for, in numbers', async ({ far, caller, running, name }) => {
    const subject = `corespun.host.${name}.${running.id}`
    const replies: unknown[][] = []
    const end = pinging(caller, subject, ['x.3'])
    const ask = (credit: unknown): void => {
      const args = encode([10])
      const call = encode(['run', `x.${String(credit)}`, '', 'rows', 'x', 0, 0, credit, args])
      caller.engine.messages!.ask(subject, call, (reply) => void replies.push(decode(reply!) as unknown[]))
    }
    const more = (partsMax: unknown): void =>
      caller.engine.messages!.send(subject, encode(['more', 'x.3', partsMax]))
    const sent = async (count: number): Promise<void> => {
      await until(() => replies.length >= count)
      await far.run('score', ['x'])
      assert.equal(replies.length, count)
    }
    ask(3)
    await sent(3)
    for (const wrong of [NaN, Infinity, -1, 4.5, '9', 3n, undefined, 2]) more(wrong)
    await sent(3)
    for (const _ of [1, 2]) more(5)
    await sent(5)
    more(100)
    await sent(11)
    end()
    assert.deepEqual(
      replies.map(([kind]) => kind),
      [...Array<string>(10).fill('part'), 'value'],
    )
    // Called as a function that returns a value, which a generator is not.
    for (const wrong of [NaN, -1, '9']) ask(wrong)
    await sent(14)
    assert.deepEqual(
      replies.slice(11).map(([kind]) => kind),
      ['error', 'error', 'error'],
    )
  })
}

function hosts(check: Check, connect: () => Promise<Fleet>): void {
  check(
    'another host is called while one is full, and when one has left',
    async ({ far, running, name, file }) => {
      await using second = await connect()
      const busy = far.run('until', [file])
      while (running.inFlight === 0) await turn()
      const cpu = zone.create(newName(), { workers: 1 })
      const other = await host(second, { name, module: MODULE, version: 'v1', zone: cpu, inFlightMax: 1 })
      while ((await far.run('score', ['xx']).catch(() => 0)) !== 2) await turn()
      await other.close()
      writeFileSync(file, '')
      await busy
      assert.equal(await far.run('score', ['x']), 1)
      await cpu.close()
    },
    { inFlightMax: 1 },
  )

  check('calls on their way to a host that leaves run at another one', async ({ far, running, name }) => {
    await using second = await connect()
    assert.equal(await far.run('score', ['x']), 1) // so that the first host is known
    await host(second, { name, module: MODULE, version: 'v1' })
    const calls = Array.from({ length: 64 }, () => far.run('score', ['xx']))
    await running.close()
    assert.deepEqual(new Set(await Promise.all(calls)), new Set([2]))
  })

  check('a new version is called beside the old one', async ({ name, caller, hosting }) => {
    await using next = await host(hosting, { name, module: MODULE, version: 'next', inFlightMax: 8 })
    assert.equal(next.version, 'next')
    assert.equal(await caller.zone<Scores>(name, { version: 'next' }).run('score', ['xx']), 2)
    assert.equal(await caller.zone<Scores>(name, { version: 'v1' }).run('score', ['x']), 1)
  })

  check('what is not a message changes nothing', async ({ far, caller, name, running }) => {
    const messages = caller.engine.messages!
    const subject = `corespun.host.${name}.${running.id}`
    const noise = [new Uint8Array(), new Uint8Array([1, 2, 3]), Buffer.from('{"run":1}')]
    for (const bytes of noise) {
      messages.send(subject, bytes)
      messages.send(`corespun.zone.${name}`, bytes)
      messages.send(`corespun.card.${name}`, bytes)
    }
    assert.equal(await far.run('score', ['x']), 1)
  })
}
