/**
 * `corespun fleet` on a fleet in memory: once, on a terminal, as JSON; and hosts that fall silent.
 *
 * The process itself is in test/fleet/fleet.test.mjs.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { FleetError, type FleetHostInfo, connect, host } from '../../fleet/index.ts'
import { zone } from '../../zone/index.ts'
import type { CommandContext, StopSignal } from '../run/run.ts'
import { showFleet } from './show.ts'
import { Seen, tableOf } from './table.ts'

const MODULE = new URL('data:text/javascript,export const one = () => 1')

/** The process, as far as the command uses it; `on` is called with what it writes. */
function contextOf(isTTY: boolean, on: (text: string, signal: (name: StopSignal) => void) => void) {
  let listener: (signal: StopSignal) => void = () => {}
  const stdout = { isTTY, write: (text: string) => on(text, (name) => listener(name)) }
  const onSignal = (given: typeof listener) => {
    listener = given
    return () => {
      listener = () => {}
    }
  }
  return { stdout, onSignal } as unknown as CommandContext
}

const words = { json: false, watch: undefined, everyMs: 1 }
const at = (name: string) => ({ ...words, connection: { servers: `memory:${name}`, options: {} } as never })

test('once, as a table and as JSON', async () => {
  await using far = await connect('memory:once')
  const cpu = zone.create('shown once', { workers: 1 })
  await host(far, { name: 'scores', module: MODULE, version: 'v1', zone: cpu, jobsMax: 3 })
  const texts: string[] = []
  const context = contextOf(false, (text) => void texts.push(text))
  assert.equal(await showFleet(at('once'), context), 0)
  assert.match(
    texts[0],
    /^hosts: 1, calls: 0 of 64, jobs: 0 of 3\nZONE .*\nscores {2}v1 .* 0\/64 +0\/3 .* ready\n/,
  )
  assert.equal(await showFleet({ ...at('once'), json: true }, context), 0)
  const { hosts, queues } = JSON.parse(texts[1]) as { hosts: FleetHostInfo[]; queues: unknown[] }
  assert.deepEqual([hosts[0].zone, queues.length], ['scores', 1])
  await far.close()
  await cpu.close()
})

test('a file that does not exist is named, and not created', async () => {
  const file = join(tmpdir(), `corespun-no-such-${process.pid}.db`)
  const connection = { servers: `sqlite:${file}`, options: {} } as never
  await assert.rejects(
    showFleet({ ...words, connection }, contextOf(false, assert.fail)),
    ({ code, message }) => code === 'CLI_USAGE' && message.includes(`--sqlite ${file}: no such file;`),
  )
  assert.ok(!existsSync(file))
})

test('a terminal is drawn anew until a signal comes', async () => {
  let count = 0
  const context = contextOf(true, (text, signal) => {
    assert.equal(text, '\u001B[H\u001B[Jhosts: 0, calls: 0 of 0, jobs: 0 of 0\n\nqueues of jobs: 0\n')
    if (++count === 3) signal('SIGINT')
  })
  assert.equal(await showFleet(at('drawn'), context), 0)
  assert.equal(count, 3)
})

test('lines of JSON until a signal comes, which ends a look too', async () => {
  let count = 0
  const context = contextOf(false, (text, signal) => {
    assert.deepEqual(JSON.parse(text), { hosts: [], queues: [] })
    count++
    setImmediate(signal, 'SIGTERM')
  })
  assert.equal(await showFleet({ ...at('lines'), json: true, watch: true, everyMs: 60_000 }, context), 0)
  assert.equal(count, 1)
})

const info: FleetHostInfo = {
  id: '0123456789',
  zone: 'scores',
  version: 'v1',
  machine: 'box',
  pid: 7,
  upMs: 65_000,
  inFlight: 1,
  inFlightMax: 4,
  jobsRunning: 0,
  jobsMax: 0,
  isLeaving: false,
}

test('a host that falls silent is shown for a minute, and one that has left is not missed', () => {
  const seen = new Seen()
  const two = { ...info, id: 'b', zone: 'b', isLeaving: true }
  const three = { ...info, id: 'c', zone: 'a' }
  assert.equal(seen.with({ hosts: [info, two, three], queues: [] }, 0).hosts.length, 3)
  const { hosts } = seen.with({ hosts: [], queues: [] }, 30_000)
  assert.deepEqual(
    hosts.map(({ id, unseenMs }) => [id, unseenMs]),
    [
      ['c', 30_000],
      ['0123456789', 30_000],
    ],
  )
  assert.equal(seen.with({ hosts: [], queues: [] }, 61_000).hosts.length, 0)
})

test('the table has what there is, in columns', () => {
  const queue = { kind: 'jobs' as const, zone: 'scores', waiting: 12, taken: 3, dead: 1, waitedMs: 125_000 }
  const hosts = [
    { ...info, unseenMs: 0 },
    { ...info, id: 'long name', isLeaving: true, jobsMax: 2, unseenMs: 0 },
    { ...info, unseenMs: 4000 },
  ]
  assert.equal(
    tableOf({
      hosts,
      queues: [queue, { ...queue, zone: 'b', waiting: 0 }, { ...queue, kind: 'runs', zone: 'pay', dead: 0 }],
    }),
    `hosts: 3, calls: 2 of 8, jobs: 0 of 2
ZONE    VERSION  MACHINE  PID  HOST      CALLS  JOBS  UP    STATE
scores  v1       box      7    01234567  1/4    -     1:05  ready
scores  v1       box      7    long nam  1/4    0/2   1:05  leaving
scores  v1       box      7    01234567  1/4    -     1:05  silent for 4s

queues of jobs: 2
ZONE    WAITING  TAKEN  DEAD  WAITS
scores  12       3      1     2:05
b       0        3      1     -

queues of runs: 1
RUN  WAITING  TAKEN  DEAD  WAITS
pay  12       3      0     2:05
`,
  )
})

test('in a narrow terminal no line is longer, and the least needed columns are left out', () => {
  const queue = { kind: 'jobs' as const, zone: 'scores', waiting: 12, taken: 3, dead: 1, waitedMs: 125_000 }
  const all = { hosts: [{ ...info, unseenMs: 0 }], queues: [queue] }
  assert.equal(
    tableOf(all, 32),
    `hosts: 1, calls: 1 of 4, jobs: 0 of 0
ZONE    CALLS  JOBS  STATE
scores  1/4    -     ready

queues of jobs: 1
ZONE    WAITING  TAKEN  DEAD
scores  12       3      1
`,
  )
  for (let width = 24; width < 80; width++) {
    const tables = tableOf(all, width).split('\n').slice(1)
    assert.ok(
      tables.every((line) => line.length <= width),
      `${width} columns`,
    )
  }
})

test('a look that is not confirmed is shown and repeated, and another error ends the command', async () => {
  const texts: string[] = []
  const failing = await connect('memory:failing')
  const errors = [
    new FleetError('FLEET_TIMEOUT', { operation: 'listing queues', timeoutMs: 5000 }),
    new FleetError('FLEET_CLOSED', { reason: 'it was' }),
  ]
  const { prototype } = failing.constructor as { prototype: { overview: () => Promise<never> } }
  const { overview } = prototype
  prototype.overview = () => Promise.reject(errors.shift()!)
  try {
    const context = contextOf(true, (text) => void texts.push(text))
    await assert.rejects(showFleet(at('failing'), context), { code: 'FLEET_CLOSED' })
  } finally {
    prototype.overview = overview
  }
  assert.match(texts[0], /listing queues was not confirmed within 5000 ms/)
  await failing.close()
})
