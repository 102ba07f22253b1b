/**
 * The figures of the whole process, from any of its threads: what the threads have counted, and what is
 * found in the core and in the process.
 *
 * Reading neither waits for another thread nor interrupts one.
 */
import { Counts, Kind, thisBridge, thisScratch } from '../bridge/index.ts'
import { COUNTS, Table, native } from '../native/index.ts'
import { labelOfKey } from '../transport/internal.ts'
import { type Exemplar, readExemplars } from './exemplars.ts'
import { type Instrument, type InstrumentKey, LISTED, TASK_SECONDS, numberOf } from './instruments.ts'
import { countedThreads, readSheets, sumOf, unended } from './sheet.ts'
import { look } from './thread.ts'

/** One series of an instrument. */
export interface Point {
  /** That of its values among those of the instrument. */
  readonly key: string
  /** In the order of the instrument's attributes; absent ones are ''. */
  readonly values: readonly (string | number)[]
  /** The value; of a histogram the sum, and the count of each bucket. */
  readonly cells: number[]
  /** Of buckets of a histogram; `undefined` where none has one. */
  exemplars: (Exemplar | undefined)[] | undefined
}

/** An instrument and its series. */
export interface Family {
  readonly instrument: Instrument
  readonly points: readonly Point[]
}

/** The most stores that are read, and the most locks of each kind: those first by name. */
const NAMES_MAX = 1000
const LOCK_KINDS = ['lock', 'rwLock', 'semaphore'] as const
/** Zones, in the order of the core: why a call was not accepted. */
const REFUSALS = ['full', 'bytes', 'too-large', 'closed', 'broadcasts', 'too-deep', 'deadlock', 'tenant']
const OUTCOMES = ['done', 'failed', 'died', 'withdrawn']
const BOUNDS_NS = Float64Array.from(TASK_SECONDS, (seconds) => seconds * 1e9)
const BUCKETS = TASK_SECONDS.length + 1
/** Numbers of a function: itself, its outcomes, how many run, CPU time, and two times with their buckets. */
const FUNCTION_NUMBERS = 3 + OUTCOMES.length + 2 * (1 + BUCKETS)

/** Figures that do not add up. */
const LONGEST = new Set((['Mean', 'P50', 'P99', 'Max'] as const).map((key) => numberOf(`loopDelay${key}`)))

class Collected {
  readonly #points = LISTED.map(() => new Map<string, Point>())
  readonly #exemplars: { readonly point: readonly [number, string]; readonly found: Point['exemplars'] }[] =
    []

  /**
   * Adds cells that are the caller's: they become the point's.
   * @param key That of the values, where the caller has it from the last time.
   */
  add(instrument: number, values: Point['values'], cells: number[], key = keyOf(values)): void {
    const points = this.#points[instrument]
    const point = points.get(key)
    if (point === undefined) points.set(key, { key, values, cells, exemplars: undefined })
    // A worker that leaves, and the one that has its name now.
    else if (LONGEST.has(instrument)) point.cells[0] = Math.max(point.cells[0], cells[0])
    else for (let index = 0; index < cells.length; index++) point.cells[index] += cells[index]
  }

  put(key: InstrumentKey, value: number, ...values: Point['values']): void {
    this.add(numberOf(key), values, [value])
  }

  addExemplars(instrument: number, values: Point['values'], words: Int32Array): void {
    this.#exemplars.push({ point: [instrument, values.join('\0')], found: readExemplars(words) })
  }

  points(key: InstrumentKey): Point[] {
    return [...this.#points[numberOf(key)].values()]
  }

  families(): Family[] {
    for (const { point, found } of this.#exemplars.splice(0))
      this.#show(this.#points[point[0]].get(point[1]), found)
    return LISTED.map((instrument, number) => ({ instrument, points: [...this.#points[number].values()] }))
  }

  /** Of several threads the latest ones. */
  #show(point: Point | undefined, found: Point['exemplars'] = []): void {
    if (point === undefined) return
    const before = point.exemplars ?? []
    point.exemplars = found.map((one, bucket) => {
      const other = before[bucket]
      return one === undefined || (other !== undefined && other.atS > one.atS) ? other : one
    })
  }
}

/** Series without any value, and those that did not fit, are shown as the same. */
function keyOf(values: Point['values']): string {
  return values[0] === '' && values.every((value) => value === '') ? '' : values.join('\0')
}

/** A copy of some numbers, as an array: making a typed one takes several times as long. */
function cellsAt(numbers: Float64Array, at: number, count: number): number[] {
  const cells: number[] = []
  for (let index = at; index < at + count; index++) cells.push(numbers[index])
  return cells
}

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
 * All instruments, with the figures of this moment.
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
  return collected.families()
}

/** What the sheets contain. */
export function counted(): Collected {
  look()
  const collected = new Collected()
  for (const reading of readSheets()) {
    const { instrument, values, cells, exemplars } = reading
    if (exemplars === undefined)
      collected.add(instrument, values, cellsAt(cells, 0, cells.length), (reading.key ??= keyOf(values)))
    else collected.addExemplars(instrument, values, exemplars)
  }
  return collected
}

/** A request that has ended is counted by its duration, and one that has not by the difference. */
function countEnds(collected: Collected): void {
  const readings = (['activeRequests', 'requestSeconds', 'requests'] as const).flatMap((key) =>
    collected.points(key).map(({ values, cells }) => ({ instrument: numberOf(key), values, cells })),
  )
  const active = unended(readings)
  for (const { cells } of collected.points('activeRequests')) cells[0] = 0
  for (const { values, count } of active) collected.put('activeRequests', Math.max(0, count), ...values)
  for (const { values, cells } of collected.points('requestSeconds'))
    collected.put('requests', sumOf(cells), ...values)
}

/** What the core has counted of tasks. */
export function zoneFigures(): Collected {
  const collected = new Collected()
  zones(collected)
  return collected
}

function zones(collected: Collected): void {
  thisBridge()
  const counts = new Float64Array(COUNTS)
  const found: typeof labels = new Map()
  for (const zone of native.zoneIds().split('\0')) {
    const handle = zone === '' ? -1 : native.zoneOpen(zone)
    // It has ended meanwhile.
    if (handle < 0) continue
    native.zoneCounts(handle, new Uint8Array(counts.buffer))
    const functions = new Float64Array(native.zoneFunctions(handle, new Uint8Array(BOUNDS_NS.buffer)).buffer)
    native.zoneDrop(handle)
    const [waiting, waitingBytes, , , , , workers, asleep, , , errors] = counts as unknown as number[]
    collected.put('tasksWaiting', waiting, zone)
    collected.put('tasksWaitingBytes', waitingBytes, zone)
    collected.put('workers', workers, zone)
    collected.put('workersAsleep', asleep, zone)
    collected.put('zoneErrors', errors, zone)
    for (const [index, reason] of REFUSALS.entries())
      if (functions[index] > 0) collected.put('tasksRefused', functions[index], zone, reason)
    const known = labels.get(zone) ?? new Map<number, FunctionLabels>()
    found.set(zone, known)
    for (let at = REFUSALS.length; at < functions.length; at += FUNCTION_NUMBERS) {
      const number = functions[at]
      let own = known.get(number)
      if (own === undefined) known.set(number, (own = new FunctionLabels(zone, number)))
      own.collect(collected, functions, at + 1)
    }
  }
  labels = found
}

/** The attributes of a function's series, which are the same in each collection. */
class FunctionLabels {
  readonly #own: Labelled
  readonly #outcomes: readonly Labelled[]

  constructor(zone: string, number: number) {
    const name = nameOf(number)
    this.#own = labelled([zone, name])
    this.#outcomes = OUTCOMES.map((outcome) => labelled([zone, name, outcome]))
  }

  /** @param from Where the function's numbers begin, among those of the core. */
  collect(collected: Collected, numbers: Float64Array, from: number): void {
    let at = from
    for (const { values, key } of this.#outcomes) collected.add(TASKS, values, [numbers[at++]], key)
    const { values, key } = this.#own
    collected.add(RUNNING, values, [numbers[at++]], key)
    collected.add(TASK_CPU, values, [numbers[at++] / 1e9], key)
    for (const instrument of TASK_TIMES) {
      const cells = cellsAt(numbers, at, 1 + BUCKETS)
      cells[0] /= 1e9
      collected.add(instrument, values, cells, key)
      at += 1 + BUCKETS
    }
  }
}

interface Labelled {
  readonly values: Point['values']
  readonly key: string
}

function labelled(values: Point['values']): Labelled {
  return { values, key: keyOf(values) }
}

const [TASKS, RUNNING, TASK_CPU] = (['tasks', 'tasksRunning', 'taskCpu'] as const).map(numberOf)
const TASK_TIMES = (['taskWait', 'taskSeconds'] as const).map(numberOf)

/** By zone and number, of the zones that the last collection found. */
let labels = new Map<string, Map<number, FunctionLabels>>()

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
