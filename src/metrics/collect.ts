/**
 * The figures of the whole process, from any of its threads: what the threads have counted, and what is
 * found in the core and in the process.
 *
 * Reading neither waits for another thread nor interrupts one.
 */
import { Counts, Kind, thisBridge, thisScratch } from '../bridge/index.ts'
import { Table, native } from '../native/index.ts'
import { labelOfKey } from '../transport/internal.ts'
import { TASK_SECONDS, numberOf } from './instruments.ts'
import { Collected, type Family, type Point, copied, pointOf } from './points.ts'
import { type Counted, countedThreads, readSheets, sumOf, unended } from './sheet.ts'
import { look } from './thread.ts'

/** The most stores that are read, and the most locks of each kind: those first by name. */
const NAMES_MAX = 1000
const LOCK_KINDS = ['lock', 'rwLock', 'semaphore'] as const
/** Zones, in the order of the core: what each has, and why a call was not accepted. */
const ZONE = ['tasksWaiting', 'tasksWaitingBytes', 'workers', 'workersAsleep', 'zoneErrors'] as const
const REFUSALS = ['full', 'bytes', 'too-large', 'closed', 'broadcasts', 'too-deep', 'deadlock', 'tenant']
const OUTCOMES = ['done', 'failed', 'died', 'withdrawn']
const BOUNDS_NS = Float64Array.from(TASK_SECONDS, (seconds) => seconds * 1e9)
const BUCKETS = TASK_SECONDS.length + 1
/** Numbers of a function: itself, its outcomes, how many run, CPU time, and two times with their buckets. */
const FUNCTION_NUMBERS = 3 + OUTCOMES.length + 2 * (1 + BUCKETS)

/** A connection to a fleet, as far as its queues of durable jobs and runs are concerned. */
export interface JobQueues {
  /** The queues, as `Fleet.queues` returns them. */
  queues(): Promise<readonly JobQueue[]>
}

/** One queue of durable jobs, or of runs. */
export interface JobQueue {
  /** What waits in it. */
  readonly kind: 'jobs' | 'runs'
  /** Whose jobs they are, or the name of the definition. */
  readonly zone: string
  /** Those that no host has had yet. */
  readonly waiting: number
  /** Those that run, and those that wait: for a delay, a schedule, another attempt, a signal. */
  readonly taken: number
  /** Dead letters. */
  readonly dead: number
  /** How long the oldest of the waiting ones has waited, in ms. */
  readonly waitedMs: number
}

/**
 * All instruments, with the figures of this moment; valid until this thread collects again.
 * @param queues Of fleets.
 */
export function collect(queues: readonly JobQueue[] = []): Family[] {
  const collected = counted()
  countEnds(collected)
  const ages = { jobs: new Map<string, number>(), runs: new Map<string, number>() }
  for (const { kind, zone, waiting, taken, dead, waitedMs } of queues) {
    collected.put(kind, waiting, zone, 'waiting')
    collected.put(kind, taken, zone, 'taken')
    if (kind === 'jobs') collected.put(kind, dead, zone, 'dead')
    // Of several fleets the oldest one.
    const age = ages[kind]
    age.set(zone, Math.max(age.get(zone) ?? 0, waitedMs))
  }
  for (const [zone, waitedMs] of ages.jobs) collected.put('jobsAge', waitedMs / 1000, zone)
  for (const [name, waitedMs] of ages.runs) collected.put('runsAge', waitedMs / 1000, name)
  zones(collected)
  stores(collected)
  locks(collected)
  own(collected)
  const families = collected.families()
  collected.forgetOthers()
  return families
}

/** What the sheets contain. */
export function counted(): Collected {
  look()
  const collected = new Collected()
  for (const reading of readSheets()) {
    const { instrument, values, cells, exemplars } = reading
    const point = (reading.point = pointOf(instrument, values, reading.point))
    if (exemplars === undefined)
      collected.add(instrument, point, (reading.copy = copied(reading.copy, cells, 0, cells.length)))
    else collected.addExemplars(point, exemplars)
  }
  return collected
}

/** A request that has ended is counted by its duration, and one that has not by the difference. */
function countEnds(collected: Collected): void {
  const active = unended(requestsOf(collected))
  for (const point of collected.points('activeRequests')) point.cells = [0]
  for (const { values, count } of active) collected.put('activeRequests', Math.max(0, count), ...values)
  for (const point of collected.points('requestSeconds')) {
    point.counterpart = pointOf(REQUESTS, point.values, point.counterpart)
    collected.add(REQUESTS, point.counterpart, [sumOf(point.cells)])
  }
}

const REQUESTS = numberOf('requests')

function* requestsOf(collected: Collected): Generator<Counted> {
  for (const key of ['activeRequests', 'requestSeconds', 'requests'] as const)
    for (const { values, cells } of collected.points(key)) yield { instrument: numberOf(key), values, cells }
}

/** What the core has counted of tasks. */
export function zoneFigures(): Collected {
  const collected = new Collected()
  zones(collected)
  return collected
}

function zones(collected: Collected): void {
  thisBridge()
  const found: typeof functionsKnown = new Map()
  for (const zone of native.zoneIds().split('\0')) {
    const handle = zone === '' ? -1 : native.zoneOpen(zone)
    // It has ended meanwhile.
    if (handle < 0) continue
    const numbers = new Float64Array(native.zoneFunctions(handle, new Uint8Array(BOUNDS_NS.buffer)).buffer)
    native.zoneDrop(handle)
    for (const [index, key] of ZONE.entries()) collected.put(key, numbers[index], zone)
    for (const [index, reason] of REFUSALS.entries()) {
      const count = numbers[ZONE.length + index]
      if (count > 0) collected.put('tasksRefused', count, zone, reason)
    }
    const known = functionsKnown.get(zone) ?? new Map<number, FunctionFigures>()
    found.set(zone, known)
    for (let at = ZONE.length + REFUSALS.length; at < numbers.length; at += FUNCTION_NUMBERS) {
      const number = numbers[at]
      let own = known.get(number)
      if (own === undefined) known.set(number, (own = new FunctionFigures(zone, number)))
      own.collect(collected, numbers, at + 1)
    }
  }
  functionsKnown = found
}

/** A function: its series, and what they were in the last collection. */
class FunctionFigures {
  readonly #values: readonly Point['values'][]
  readonly #points: (Point | undefined)[] = []
  #numbers: readonly number[] = []
  #cells: readonly (readonly number[])[] = []

  constructor(zone: string, number: number) {
    const own = [zone, nameOf(number)]
    this.#values = FUNCTION.map((_, index) => (index < OUTCOMES.length ? [...own, OUTCOMES[index]] : own))
  }

  /** @param from Where the function's numbers begin, among those of the core. */
  collect(collected: Collected, numbers: Float64Array, from: number): void {
    const now = copied(this.#numbers, numbers, from, FUNCTION_NUMBERS - 1)
    if (now !== this.#numbers) {
      this.#numbers = now
      this.#cells = cellsOf(now)
    }
    for (let index = 0; index < FUNCTION.length; index++) {
      const instrument = FUNCTION[index]
      const point = pointOf(instrument, this.#values[index], this.#points[index])
      this.#points[index] = point
      collected.add(instrument, point, this.#cells[index])
    }
  }
}

/** The cells of a function's series, of its numbers. */
function cellsOf(numbers: readonly number[]): number[][] {
  const counts = OUTCOMES.length + 1
  const [cpuNs, ...times] = numbers.slice(counts)
  const cells = [...numbers.slice(0, counts).map((count) => [count]), [cpuNs / 1e9]]
  for (let at = 0; at < times.length; at += 1 + BUCKETS)
    cells.push([times[at] / 1e9, ...times.slice(at + 1, at + 1 + BUCKETS)])
  return cells
}

/** The instruments of a function, in the order of its numbers; the first one for each outcome. */
const FUNCTION = [
  ...OUTCOMES.map(() => 'tasks' as const),
  ...(['tasksRunning', 'taskCpu', 'taskWait', 'taskSeconds'] as const),
].map(numberOf)

/** By zone and number, of the zones that the last collection found. */
let functionsKnown = new Map<string, Map<number, FunctionFigures>>()

/** What people call the function of a number: its name, or where it is written. */
function nameOf(number: number): string {
  const key = native.interned(Table.functions, number)
  if (key === undefined) return 'others'
  const { name, file, line } = labelOfKey(key)
  return name === '' ? `${file.slice(file.lastIndexOf('/') + 1)}:${line}` : name
}

function stores(collected: Collected): void {
  thisScratch()
  const numbers = new Float64Array(Counts.numbers)
  for (const id of native.storeNames(NAMES_MAX)) {
    const handle = native.storeOpen(native.storeNumber(id))
    if (handle < 0) continue
    native.storeStats(handle, new Uint8Array(numbers.buffer))
    native.storeDrop(handle)
    collected.put('storeEntries', numbers[Counts.entries], id)
    collected.put('storeBytes', numbers[Counts.bytes], id)
    collected.put('storeReads', numbers[Counts.hits], id, 'hit')
    collected.put('storeReads', numbers[Counts.misses], id, 'miss')
    collected.put('storeRemovals', numbers[Counts.evictions], id, 'eviction')
    collected.put('storeRemovals', numbers[Counts.expirations], id, 'expiration')
    collected.put('storeSyncs', numbers[Counts.syncs], id)
  }
}

function locks(collected: Collected): void {
  for (const kind of LOCK_KINDS)
    for (const name of native.syncNames(Kind[kind], NAMES_MAX)) {
      const handle = native.syncOpen(native.syncNumber(Kind[kind], name))
      if (handle < 0) continue
      collected.put('lockFree', native.semaphoreCounts(handle, false), name, kind)
      collected.put('lockWaiting', native.semaphoreCounts(handle, true), name, kind)
      native.syncDrop(handle)
    }
}

/** How many stores and locks there are beyond those that are read: `stores`, `locks`; absent if none. */
export function unread(): Record<string, number> {
  const beyond = (names: readonly string[]): number => Math.max(0, names.length - NAMES_MAX)
  const stores = beyond(native.storeNames(ALL))
  const locks = LOCK_KINDS.reduce((sum, kind) => sum + beyond(native.syncNames(Kind[kind], ALL)), 0)
  return { ...(stores > 0 ? { stores } : {}), ...(locks > 0 ? { locks } : {}) }
}

const ALL = 2 ** 31 - 1

function own(collected: Collected): void {
  const { user, system } = process.cpuUsage()
  collected.put('processCpu', user / 1e6, 'user')
  collected.put('processCpu', system / 1e6, 'system')
  collected.put('processMemory', process.memoryUsage.rss())
  collected.put('uptime', process.uptime())
  collected.put('threads', countedThreads())
}
