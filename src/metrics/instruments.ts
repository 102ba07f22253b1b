/**
 * The instruments: what is counted, by which name, in which unit, and which attributes its series differ in.
 *
 * Names, units and attributes are those of OpenTelemetry's semantic conventions where these have any, and
 * begin with `corespun.` otherwise. An instrument's number is its index, the same in all threads, which have
 * the same version of this file. docs/guide/metrics.md is compared with it.
 */

/** What becomes of a value: added up, replaced, or sorted into buckets. */
export type InstrumentKind = 'counter' | 'gauge' | 'histogram'

/** One instrument. */
export interface Instrument {
  readonly name: string
  readonly kind: InstrumentKind
  /** As UCUM has it: `s`, `By`, `1`, or what is counted, in braces. */
  readonly unit: string
  readonly description: string
  readonly attributes: readonly string[]
  /** Upper bounds of the buckets of a histogram. */
  readonly bounds: readonly number[]
}

/** Of HTTP requests, as the semantic conventions advise. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
/** Of tasks, which may be far shorter. */
export const TASK_SECONDS = [
  1e-6, 5e-6, 2.5e-5, 1e-4, 5e-4, 2.5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60,
]
/** Of collections of garbage. */
const GC_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1]
/** Of anything. */
const ANY = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000]
const BODY_BYTES = [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000]

const ROUTE = ['http.request.method', 'http.route']
const REQUEST = [...ROUTE, 'http.response.status_code', 'error.type']
const FUNCTION = ['corespun.zone', 'code.function.name']
const ZONE = ['corespun.zone']
const STORE = ['corespun.store']
const RUN = ['corespun.run.name']
const LOCK = ['corespun.lock', 'corespun.lock.kind']
const THREAD = ['thread.name']
const NAPA = ['napa.section', 'napa.name', 'napa.dimensions']
const STAGE = ['corespun.arrow', 'corespun.arrow.stage']

const counter = (
  name: string,
  unit: string,
  attributes: readonly string[],
  description: string,
): Instrument => ({
  name,
  kind: 'counter',
  unit,
  description,
  attributes,
  bounds: [],
})
const gauge = (
  name: string,
  unit: string,
  attributes: readonly string[],
  description: string,
): Instrument => ({
  ...counter(name, unit, attributes, description),
  kind: 'gauge',
})
const histogram = (
  name: string,
  unit: string,
  attributes: readonly string[],
  bounds: readonly number[],
  description: string,
): Instrument => ({ ...counter(name, unit, attributes, description), kind: 'histogram', bounds })

/** All of them, by the names that this module's code has for them. */
const INSTRUMENTS = {
  // Counted by each thread in its sheet.
  requests: counter(
    'corespun.http.server.requests',
    '{request}',
    REQUEST,
    'Requests whose response has ended.',
  ),
  requestSeconds: histogram(
    'http.server.request.duration',
    's',
    REQUEST,
    SECONDS,
    'From the head of the request to the end of the response; without constant responses.',
  ),
  bodyBytes: histogram(
    'http.server.response.body.size',
    'By',
    REQUEST,
    BODY_BYTES,
    'Bytes of response bodies; without constant responses.',
  ),
  activeRequests: gauge(
    'http.server.active_requests',
    '{request}',
    ROUTE,
    'Requests without a complete response.',
  ),
  requestCpu: counter(
    'corespun.http.server.request.cpu.time',
    's',
    REQUEST,
    'CPU time of requests and their tasks, by samples.',
  ),
  refusals: counter(
    'corespun.http.server.refusals',
    '{refusal}',
    ['corespun.refusal', 'corespun.reason'],
    'Connections, handshakes and requests that a server refused before any handler.',
  ),
  connections: gauge('corespun.http.server.connections', '{connection}', [], 'Open connections.'),
  connectionsTotal: counter(
    'corespun.http.server.connections.accepted',
    '{connection}',
    [],
    'Accepted connections.',
  ),
  bytesIn: counter('corespun.http.server.received', 'By', [], 'Bytes received by servers.'),
  bytesOut: counter('corespun.http.server.sent', 'By', [], 'Bytes sent by servers.'),
  workerEnds: counter(
    'corespun.zone.worker.ends',
    '{worker}',
    ['corespun.zone', 'corespun.reason'],
    'Workers that have ended.',
  ),
  jobsEnded: counter(
    'corespun.jobs.ended',
    '{job}',
    [...FUNCTION, 'corespun.outcome'],
    'Durable jobs that this process has ended: done, dead, cancelled.',
  ),
  runsEnded: counter(
    'corespun.runs.ended',
    '{run}',
    [...RUN, 'corespun.outcome'],
    'Durable runs that this process has ended: done, failed, cancelled.',
  ),
  fibers: gauge('corespun.fibers', '{fiber}', THREAD, 'Fibers that have waited and not ended.'),
  threadCpu: counter('corespun.thread.cpu.time', 's', THREAD, 'CPU time of the thread.'),
  loopTime: counter(
    'nodejs.eventloop.time',
    's',
    [...THREAD, 'nodejs.eventloop.state'],
    'Time in which the event loop was active, or waited.',
  ),
  loopDelayMean: gauge(
    'nodejs.eventloop.delay.mean',
    's',
    THREAD,
    'Mean delay of the event loop; of the last two spans of 15 s the longer one.',
  ),
  loopDelayP50: gauge('nodejs.eventloop.delay.p50', 's', THREAD, 'Median delay of the event loop, likewise.'),
  loopDelayP99: gauge('nodejs.eventloop.delay.p99', 's', THREAD, '99th percentile of that delay, likewise.'),
  loopDelayMax: gauge('nodejs.eventloop.delay.max', 's', THREAD, 'The longest delay, likewise.'),
  gcSeconds: histogram(
    'v8js.gc.duration',
    's',
    [...THREAD, 'v8js.gc.type'],
    GC_SECONDS,
    'Pauses by collections of garbage.',
  ),
  stageCalls: gauge(
    'corespun.arrow.stage.calls',
    '{call}',
    STAGE,
    'Measured calls of a stage, and all ways to a zone; of arrows that have run 256 times and still exist.',
  ),
  stageSeconds: gauge('corespun.arrow.stage.time', 's', STAGE, 'How long those took.'),
  napaNumbers: gauge('corespun.napa.number', '1', NAPA, 'Numbers of `corespun/napa`, all threads together.'),
  napaRates: counter('corespun.napa.rate', '1', NAPA, 'What its rates have counted.'),
  napaPercentiles: histogram('corespun.napa.percentile', '1', NAPA, ANY, 'The values of its percentiles.'),
  heapUsed: gauge('corespun.thread.heap.used', 'By', THREAD, 'Used bytes of the V8 heap.'),
  heapLimit: gauge('corespun.thread.heap.limit', 'By', THREAD, 'The most bytes that the heap may have.'),
  externalBytes: gauge(
    'corespun.thread.external',
    'By',
    THREAD,
    'Bytes outside of the heap that its objects keep.',
  ),
  // Read from the core, or from the process, when somebody asks.
  tasks: counter(
    'corespun.zone.tasks',
    '{task}',
    [...FUNCTION, 'corespun.outcome'],
    'Accepted tasks that have ended: done, failed, died (with their worker), withdrawn (before they began).',
  ),
  tasksRefused: counter(
    'corespun.zone.tasks.refused',
    '{call}',
    [...ZONE, 'corespun.reason'],
    'Calls that the zone did not accept.',
  ),
  tasksWaiting: gauge('corespun.zone.tasks.waiting', '{task}', ZONE, 'Tasks accepted and not begun.'),
  tasksWaitingBytes: gauge('corespun.zone.tasks.waiting.size', 'By', ZONE, 'Bytes of their arguments.'),
  tasksRunning: gauge('corespun.zone.tasks.running', '{task}', FUNCTION, 'Tasks begun and not ended.'),
  taskWait: histogram('corespun.zone.task.wait', 's', FUNCTION, TASK_SECONDS, 'From acceptance to begin.'),
  taskSeconds: histogram('corespun.zone.task.duration', 's', FUNCTION, TASK_SECONDS, 'From begin to end.'),
  taskCpu: counter('corespun.zone.task.cpu.time', 's', FUNCTION, 'CPU time of the worker while it ran them.'),
  workers: gauge('corespun.zone.workers', '{worker}', ZONE, 'Workers, those that start included.'),
  workersAsleep: gauge('corespun.zone.workers.asleep', '{worker}', ZONE, 'Workers that sleep.'),
  zoneErrors: counter('corespun.zone.errors', '{error}', ZONE, 'Errors in workers that no caller received.'),
  storeEntries: gauge('corespun.store.entries', '{entry}', STORE, 'Entries.'),
  storeBytes: gauge('corespun.store.size', 'By', STORE, 'Bytes of keys, values and their records.'),
  storeReads: counter(
    'corespun.store.reads',
    '{read}',
    [...STORE, 'corespun.outcome'],
    'Reads that found a value (hit), or found none (miss).',
  ),
  storeRemovals: counter(
    'corespun.store.removals',
    '{entry}',
    [...STORE, 'corespun.reason'],
    'Entries removed because the store was full (eviction), or too old (expiration).',
  ),
  storeSyncs: counter(
    'corespun.store.syncs',
    '{sync}',
    STORE,
    'Groups of changes that its file has received.',
  ),
  lockFree: gauge('corespun.lock.free', '{permit}', LOCK, 'Free permits of a named lock or semaphore.'),
  lockWaiting: gauge('corespun.lock.waiting', '{call}', LOCK, 'Calls that wait for it.'),
  fleetConnections: gauge(
    'corespun.fleet.connections',
    '{connection}',
    THREAD,
    'Open connections to fleets.',
  ),
  jobs: gauge(
    'corespun.jobs',
    '{job}',
    [...ZONE, 'corespun.job.state'],
    'Durable jobs: waiting, taken by a host, dead; of the fleets that the process is connected to.',
  ),
  jobsAge: gauge('corespun.jobs.age', 's', ZONE, 'How long the oldest of the waiting jobs has waited.'),
  runs: gauge(
    'corespun.runs',
    '{run}',
    [...RUN, 'corespun.run.state'],
    'Durable runs that have not ended: waiting for a process, or taken by one; of the same fleets.',
  ),
  runsAge: gauge('corespun.runs.age', 's', RUN, 'How long the oldest of the waiting runs has waited.'),
  processCpu: counter('process.cpu.time', 's', ['cpu.mode'], 'CPU time of the process.'),
  processMemory: gauge(
    'process.memory.usage',
    'By',
    [],
    'Resident memory of the process, all threads together.',
  ),
  uptime: gauge('process.uptime', 's', [], 'Since the process was started.'),
  threads: gauge('corespun.threads', '{thread}', [], 'Threads that count.'),
} as const satisfies Record<string, Instrument>

/** The name of an instrument here. */
export type InstrumentKey = keyof typeof INSTRUMENTS

/** By number. */
export const LISTED: readonly Instrument[] = Object.values(INSTRUMENTS)

const NUMBERS = new Map(Object.keys(INSTRUMENTS).map((key, number) => [key, number]))

export function numberOf(key: InstrumentKey): number {
  return NUMBERS.get(key)!
}

/** Whether its values mean nothing once their thread has ended. Active requests are counted as they begin. */
export function isOfThread(instrument: Instrument): boolean {
  return instrument.kind === 'gauge' && instrument !== INSTRUMENTS.activeRequests
}

/** Cells of 64 bits that a series has: a value; or a sum, and a count for each bucket. */
export function cellsOf({ kind, bounds }: Instrument): number {
  return kind === 'histogram' ? bounds.length + 2 : 1
}
