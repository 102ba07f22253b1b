/**
 * What a process does at one moment, as a document of JSON: what `corespun top` and `dashboard()` show.
 *
 * Counts are totals since the process began to count, so who looks twice has the rates (view.ts). It is read
 * from memory that the threads share: none of them has to answer, and one in an endless loop is in it.
 *
 * Over 400 lines: what each list has, and from which instruments, is one table.
 */
import { hostname } from 'node:os'
import { native } from '../../native/index.ts'
import {
  type InstrumentKey,
  LISTED,
  type SlowRecord,
  collect,
  numberOf,
  slowRecords,
  startMetrics,
  unread,
} from '../../metrics/internal.ts'
import type { FleetFigures } from './fleets.ts'
import type { RunsFigures } from './runs.ts'
import { type RunningTask, runningTasks } from './tasks.ts'
import { versionOf } from './version.ts'

/** Durations by buckets: how many were at most as long as each bound, and longer than the one before. */
export interface Durations {
  readonly count: number
  readonly sumMs: number
  /** One more than there are bounds: the last bucket is for all longer ones. */
  readonly buckets: readonly number[]
}

/** One zone: how many of its tasks wait, by priority and by tenant. */
export interface ZoneFigures {
  readonly zone: string
  readonly workers: number
  readonly asleep: number
  readonly waiting: number
  readonly waitingBytes: number
  readonly high: number
  readonly low: number
  /** Tenants with a task that waits. */
  readonly tenants: number
  /** Those with the most. */
  readonly byTenant: readonly { readonly tenant: string; readonly waiting: number }[]
  /** Errors in workers that no caller received. */
  readonly errors: number
}

/** One function of a zone. */
export interface FunctionFigures {
  readonly zone: string
  readonly name: string
  readonly running: number
  readonly done: number
  readonly failed: number
  readonly died: number
  readonly withdrawn: number
  readonly cpuMs: number
  readonly wait: Durations
  readonly duration: Durations
}

/** One route of the servers. */
export interface RouteFigures {
  readonly method: string
  readonly route: string
  readonly active: number
  readonly requests: number
  readonly clientErrors: number
  readonly serverErrors: number
  readonly aborted: number
  readonly bytes: number
  /** Of their tasks, too; by samples. */
  readonly cpuMs: number
  readonly duration: Durations
}

/** One stage of arrows that run often. */
export interface StageFigures {
  readonly arrow: string
  readonly stage: string
  readonly calls: number
  readonly ms: number
}

/** One thread. */
export interface ThreadFigures {
  readonly thread: string
  readonly cpuMs: number
  readonly activeMs: number
  readonly idleMs: number
  readonly delayP99Ms: number
  readonly delayMaxMs: number
  readonly gcMs: number
  readonly heapBytes: number
  readonly heapBytesMax: number
  readonly externalBytes: number
  readonly fibers: number
  /** Connections to fleets. */
  readonly fleets: number
}

/** One store. */
export interface StoreFigures {
  readonly store: string
  readonly entries: number
  readonly bytes: number
  readonly hits: number
  readonly misses: number
  readonly evictions: number
  readonly expirations: number
  /** Groups of changes that its file has received. */
  readonly syncs: number
}

/** One named lock or semaphore. */
export interface LockFigures {
  readonly lock: string
  readonly kind: string
  readonly free: number
  readonly waiting: number
}

/** Durable jobs of a function, or durable runs of a definition, that this process has ended. */
export interface EndedFigures {
  readonly kind: 'jobs' | 'runs'
  /** Of jobs. */
  readonly zone: string
  /** The function, or the definition. */
  readonly name: string
  readonly done: number
  /** Of jobs the dead ones. */
  readonly failed: number
  readonly cancelled: number
}

/** What was not accepted, or has ended, by its reason. */
export interface ReasonFigures {
  /** `zone cpu`; `connection`, `handshake` and the like of servers. */
  readonly what: string
  readonly reason: string
  readonly count: number
}

export interface Snapshot {
  /** Of this shape. */
  readonly version: 1
  readonly name: string
  readonly pid: number
  readonly host: string
  readonly node: string
  readonly corespun: string
  /** Unix time. */
  readonly atMs: number
  readonly upMs: number
  readonly cpuMs: number
  readonly memoryBytes: number
  readonly connections: number
  readonly accepted: number
  readonly receivedBytes: number
  readonly sentBytes: number
  /** Upper bounds of the buckets of {@link Durations}. */
  readonly boundsMs: { readonly tasks: readonly number[]; readonly requests: readonly number[] }
  readonly running: readonly RunningTask[]
  readonly zones: readonly ZoneFigures[]
  readonly functions: readonly FunctionFigures[]
  readonly routes: readonly RouteFigures[]
  readonly stages: readonly StageFigures[]
  readonly threads: readonly ThreadFigures[]
  readonly stores: readonly StoreFigures[]
  readonly locks: readonly LockFigures[]
  readonly ended: readonly EndedFigures[]
  readonly refusals: readonly ReasonFigures[]
  /** Workers that have ended. */
  readonly ends: readonly ReasonFigures[]
  /** The last tasks and requests that were slow, the latest first. */
  readonly slow: readonly SlowRecord[]
  /** Threads that have not responded. */
  readonly problems: readonly string[]
  /** Of the fleets that it is connected to; `undefined` without any. */
  readonly fleet?: FleetFigures
  /** Durable runs, which the dashboard adds. */
  readonly runs?: RunsFigures
  /** Names of what clients may do. */
  readonly actions: readonly string[]
  /** Rows that the lists do not have, by the list. */
  readonly leftOut: Readonly<Record<string, number>>
}

/** Rows of a list, those with the most first. */
const ROWS_MAX = 1000

/** What a list has of an instrument: its name, a factor, and the value of the attribute behind the keys. */
interface Field {
  readonly name: string
  readonly of: InstrumentKey
  readonly times?: number
  readonly only?: string
}

type Cells = Record<string, string | number | Durations>

const ZONE: readonly Field[] = [
  { name: 'workers', of: 'workers' },
  { name: 'asleep', of: 'workersAsleep' },
  { name: 'waiting', of: 'tasksWaiting' },
  { name: 'waitingBytes', of: 'tasksWaitingBytes' },
  { name: 'errors', of: 'zoneErrors' },
]
const FUNCTION: readonly Field[] = [
  { name: 'running', of: 'tasksRunning' },
  ...['done', 'failed', 'died', 'withdrawn'].map((only): Field => ({ name: only, of: 'tasks', only })),
  { name: 'cpuMs', of: 'taskCpu', times: 1000 },
  { name: 'wait', of: 'taskWait' },
  { name: 'duration', of: 'taskSeconds' },
]
const ROUTE: readonly Field[] = [
  { name: 'active', of: 'activeRequests' },
  { name: 'cpuMs', of: 'requestCpu', times: 1000 },
  { name: 'duration', of: 'requestSeconds' },
]
const STAGE: readonly Field[] = [
  { name: 'calls', of: 'stageCalls' },
  { name: 'ms', of: 'stageSeconds', times: 1000 },
]
const THREAD: readonly Field[] = [
  { name: 'cpuMs', of: 'threadCpu', times: 1000 },
  { name: 'activeMs', of: 'loopTime', times: 1000, only: 'active' },
  { name: 'idleMs', of: 'loopTime', times: 1000, only: 'idle' },
  { name: 'delayP99Ms', of: 'loopDelayP99', times: 1000 },
  { name: 'delayMaxMs', of: 'loopDelayMax', times: 1000 },
  { name: 'heapBytes', of: 'heapUsed' },
  { name: 'heapBytesMax', of: 'heapLimit' },
  { name: 'externalBytes', of: 'externalBytes' },
  { name: 'fibers', of: 'fibers' },
  { name: 'fleets', of: 'fleetConnections' },
]
const STORE: readonly Field[] = [
  { name: 'entries', of: 'storeEntries' },
  { name: 'bytes', of: 'storeBytes' },
  { name: 'hits', of: 'storeReads', only: 'hit' },
  { name: 'misses', of: 'storeReads', only: 'miss' },
  { name: 'evictions', of: 'storeRemovals', only: 'eviction' },
  { name: 'expirations', of: 'storeRemovals', only: 'expiration' },
  { name: 'syncs', of: 'storeSyncs' },
]
const LOCK: readonly Field[] = [
  { name: 'free', of: 'lockFree' },
  { name: 'waiting', of: 'lockWaiting' },
]

type Families = ReturnType<typeof collect>

/** The rows of a list: one for each combination of the first attributes. */
class List {
  readonly #families: Families
  readonly #keys: readonly string[]
  readonly #empty: Cells
  readonly #rows = new Map<string, Cells>()

  constructor(families: Families, keys: readonly string[], fields: readonly Field[], more: Cells = {}) {
    this.#families = families
    this.#keys = keys
    const fresh = ({ name, of }: Field): readonly [string, number | Durations] => [name, emptyOf(of)]
    this.#empty = { ...Object.fromEntries(fields.map(fresh)), ...more }
    for (const field of fields) this.#add(field)
  }

  #add({ name, of, times = 1, only }: Field): void {
    const { kind } = LISTED[numberOf(of)]
    for (const { values, cells } of this.points(of)) {
      if (only !== undefined && values[this.#keys.length] !== only) continue
      const row = this.row(values)
      if (kind === 'histogram') row[name] = sumOf(row[name] as Durations, cells)
      else row[name] = rounded((row[name] as number) + cells[0] * times)
    }
  }

  points(of: InstrumentKey): Families[number]['points'] {
    return this.#families[numberOf(of)].points
  }

  row(values: readonly (string | number)[]): Cells {
    const own = this.#keys.map((_, index) => values[index] ?? '')
    const key = own.join('\0')
    let row = this.#rows.get(key)
    if (row === undefined) {
      row = { ...Object.fromEntries(this.#keys.map((name, index) => [name, own[index]])), ...this.#empty }
      this.#rows.set(key, row)
    }
    return row
  }

  get rows(): Cells[] {
    return [...this.#rows.values()]
  }
}

function emptyOf(of: InstrumentKey): number | Durations {
  const { kind, bounds } = LISTED[numberOf(of)]
  return kind === 'histogram' ? { count: 0, sumMs: 0, buckets: Array(bounds.length + 1).fill(0) } : 0
}

function sumOf({ count, sumMs, buckets }: Durations, [seconds, ...more]: Iterable<number>): Durations {
  return {
    count: count + more.reduce((sum, each) => sum + each, 0),
    sumMs: rounded(sumMs + seconds * 1000),
    buckets: buckets.map((each, index) => each + more[index]),
  }
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000
}

/** What the process is called; the rest is found here. */
export interface Named {
  readonly name: string
  readonly actions: readonly string[]
}

/** The figures of this moment. From the first call on the process counts. */
export function snapshotOf({ name, actions }: Named): Snapshot {
  startMetrics()
  const families = collect()
  const leftOut = unread()
  const cut = <Row>(list: string, rows: readonly unknown[], most: (row: Row) => number): Row[] => {
    if (rows.length > ROWS_MAX) leftOut[list] = (leftOut[list] ?? 0) + rows.length - ROWS_MAX
    return ([...rows] as Row[]).sort((a, b) => most(b) - most(a)).slice(0, ROWS_MAX)
  }
  const total = (of: InstrumentKey): number =>
    families[numberOf(of)].points.reduce((sum, { cells }) => sum + cells[0], 0)
  const listed = (keys: readonly string[], fields: readonly Field[]): Cells[] =>
    new List(families, keys, fields).rows
  const bounds = (of: InstrumentKey): number[] => LISTED[numberOf(of)].bounds.map((s) => rounded(s * 1000))
  return {
    version: 1,
    name,
    pid: process.pid,
    host: hostname(),
    node: process.version,
    corespun: versionOf(),
    atMs: Date.now(),
    upMs: Math.round(process.uptime() * 1000),
    cpuMs: rounded(total('processCpu') * 1000),
    memoryBytes: total('processMemory'),
    connections: total('connections'),
    accepted: total('connectionsTotal'),
    receivedBytes: total('bytesIn'),
    sentBytes: total('bytesOut'),
    boundsMs: { tasks: bounds('taskSeconds'), requests: bounds('requestSeconds') },
    running: cut<RunningTask>('running', runningTasks(), ({ ageMs }) => ageMs),
    zones: cut<ZoneFigures>('zones', zonesOf(families), ({ waiting }) => waiting),
    functions: cut<FunctionFigures>('functions', listed(['zone', 'name'], FUNCTION), ({ done }) => done),
    routes: cut<RouteFigures>('routes', routesOf(families), ({ requests }) => requests),
    stages: cut<StageFigures>('stages', listed(['arrow', 'stage'], STAGE), ({ ms }) => ms),
    threads: cut<ThreadFigures>('threads', threadsOf(families), ({ cpuMs }) => cpuMs),
    stores: cut<StoreFigures>('stores', listed(['store'], STORE), ({ bytes }) => bytes),
    locks: cut<LockFigures>('locks', listed(['lock', 'kind'], LOCK), ({ waiting }) => waiting),
    ended: cut<EndedFigures>('ended', endedOf(families), ({ done }) => done),
    refusals: cut<ReasonFigures>('refusals', refusalsOf(families), ({ count }) => count),
    ends: cut<ReasonFigures>('ends', reasonsOf(families, 'workerEnds'), ({ count }) => count),
    slow: slowRecords().reverse(),
    problems: [],
    actions,
    leftOut,
  }
}

/** Numbers of a zone's queue before those of its tenants, and of each of those. */
const [QUEUE_HEAD, QUEUE_EACH] = [3, 3]

function zonesOf(families: Families): Cells[] {
  return new List(families, ['zone'], ZONE).rows.map((row) => {
    const numbers = new Float64Array(native.zoneQueue(row['zone'] as string).buffer)
    const [high = 0, low = 0, tenants = 0] = numbers
    const byTenant: { tenant: string; waiting: number }[] = []
    for (let at = QUEUE_HEAD; at < numbers.length; at += QUEUE_EACH) {
      const [lower, upper, waiting] = numbers.subarray(at, at + QUEUE_EACH)
      const hash = upper.toString(16).padStart(8, '0') + lower.toString(16).padStart(8, '0')
      byTenant.push({ tenant: native.tenantName(lower, upper) ?? `#${hash}`, waiting })
    }
    return { ...row, high, low, tenants, byTenant } as unknown as Cells
  })
}

function routesOf(families: Families): Cells[] {
  const counts = { requests: 0, clientErrors: 0, serverErrors: 0, aborted: 0, bytes: 0 }
  const list = new List(families, ['method', 'route'], ROUTE, counts)
  for (const { values, cells } of list.points('requests')) {
    const row = list.row(values) as typeof counts & Cells
    const [, , status, error] = values
    row.requests += cells[0]
    if (error === 'aborted') row.aborted += cells[0]
    else if (Number(status) >= 500) row.serverErrors += cells[0]
    else if (Number(status) >= 400) row.clientErrors += cells[0]
  }
  for (const { values, cells } of list.points('bodyBytes'))
    (list.row(values) as typeof counts & Cells).bytes += cells[0]
  return list.rows
}

function threadsOf(families: Families): Cells[] {
  const list = new List(families, ['thread'], THREAD, { gcMs: 0 })
  for (const { values, cells } of list.points('gcSeconds')) {
    const row = list.row(values)
    row['gcMs'] = rounded((row['gcMs'] as number) + cells[0] * 1000)
  }
  return list.rows
}

function endedOf(families: Families): Cells[] {
  const fields = (of: InstrumentKey, failed: string): Field[] => [
    { name: 'done', of, only: 'done' },
    { name: 'failed', of, only: failed },
    { name: 'cancelled', of, only: 'cancelled' },
  ]
  const jobs = new List(families, ['zone', 'name'], fields('jobsEnded', 'dead'), { kind: 'jobs' })
  const runs = new List(families, ['name'], fields('runsEnded', 'failed'), { kind: 'runs', zone: '' })
  return [...jobs.rows, ...runs.rows]
}

function reasonsOf(families: Families, of: InstrumentKey, prefix = ''): ReasonFigures[] {
  return families[numberOf(of)].points.map(({ values: [what, reason], cells: [count] }) => ({
    what: prefix + String(what ?? ''),
    reason: String(reason ?? ''),
    count,
  }))
}

function refusalsOf(families: Families): ReasonFigures[] {
  return [...reasonsOf(families, 'refusals'), ...reasonsOf(families, 'tasksRefused', 'zone ')]
}
