/**
 * A snapshot as tables of text: what `corespun top` draws in a terminal, and the dashboard in a page.
 *
 * Pure: two snapshots in, tables out. The page receives these functions as their source, so they use nothing
 * but each other and the language, and none of them is more than a declaration. What a process sends is not
 * trusted: names are the program's, and any field may be missing.
 *
 * Over 400 lines: in a bundle the functions of one module have the names by which its own code calls them,
 * and those of other modules may have others.
 */
import type { Durations, EndedFigures, ReasonFigures, Snapshot } from './snapshot.ts'

/** What may be done about a row. */
export interface RowAction {
  readonly action: string
  readonly params: Readonly<Record<string, string>>
  /** What is done, as a question to who does it; empty: nothing is, and the page shows what `params` name. */
  readonly question: string
}

/** One row, with a cell for each column. */
export interface ViewRow {
  readonly cells: readonly string[]
  readonly act?: RowAction
  /** What has no room in the cells. */
  readonly details?: readonly string[]
  /** Where it begins and ends on a line of time, from 0 to 1: a bar in the last cell. */
  readonly span?: readonly [from: number, to: number]
}

/** One column; a name that begins with a space is that of a number. */
export type ViewColumn = string

export interface ViewTable {
  readonly id: string
  readonly columns: readonly ViewColumn[]
  readonly rows: readonly ViewRow[]
  /** Rows that the snapshot does not have. */
  readonly leftOut: number
}

/** All of it. */
export interface View {
  readonly title: string
  /** Of the whole process. */
  readonly facts: readonly string[]
  readonly problems: readonly string[]
  readonly tables: readonly ViewTable[]
}

/** How often something happens between two looks, and its totals where there was only one. */
interface Pace {
  readonly before: Snapshot | undefined
  readonly seconds: number
}

/**
 * The tables of `now`.
 * @param before An earlier snapshot of the same process: without it there are no rates.
 */
export function viewOf(now: Snapshot, before?: Snapshot): View {
  const isSame = before !== undefined && before.pid === now.pid && before.upMs < now.upMs
  const pace: Pace = isSame
    ? { before, seconds: (now.upMs - before.upMs) / 1000 }
    : { before: undefined, seconds: 0 }
  const { fleet, runs } = now
  const found = [...rowsOf(now.problems), ...rowsOf(fleet?.problems), ...rowsOf(runs?.problems)]
  const problems = found.map((each) => textOf(each, 300))
  if (fleet !== undefined && fleet.ageMs > 10_000)
    problems.push(`the fleet was read ${timeOf(fleet.ageMs)} ago`)
  return {
    title: `${textOf(now.name, 40)} (${textOf(now.pid)}) on ${textOf(now.host, 60)}`,
    facts: factsOf(now, pace),
    problems,
    tables: tablesOf(now, pace).filter(({ rows }) => rows.length > 0),
  }
}

function tablesOf(now: Snapshot, pace: Pace): ViewTable[] {
  const left: Record<string, number> = { ...now.leftOut, steps: now.runs?.stepsLeftOut ?? 0 }
  return [
    tableOf('steps', ['STEP', 'STATE', ' AFTER', ' TOOK', ' FAILED', 'TIME LINE'], stepRows(now), left),
    tableOf('listed', ['RUN', 'STATE', ' STARTED', ' TOOK'], runRows(now), left),
    tableOf('running', ['WORKER', 'FUNCTION', ' FOR', 'CALLED BY', 'STATE'], runningRows(now), left),
    tableOf(
      'zones',
      ['ZONE', ' WORKERS', ' RUN', ' WAIT', ' HIGH', ' LOW', ' TENANTS', ' ERRORS'],
      zoneRows(now),
      left,
    ),
    tableOf('tenants', ['TENANT', 'ZONE', ' WAIT'], tenantRows(now), left),
    tableOf(
      'functions',
      ['FUNCTION', 'ZONE', ' /S', ' P50', ' P99', ' WAIT P99', ' CPU %', ' FAILED', ' DIED'],
      functionRows(now, pace),
      left,
    ),
    tableOf(
      'routes',
      ['ROUTE', ' /S', ' P50', ' P99', ' CPU %', ' OPEN', ' 4XX', ' 5XX', ' ABORTED', ' BYTES'],
      routeRows(now, pace),
      left,
    ),
    tableOf(
      'slow',
      ['SLOW', 'THREAD', ' AGO', ' TOOK', ' USUAL', ' QUEUE', ' CPU', ' LOOP', ' GC', ' HOP'],
      slowRows(now),
      left,
    ),
    tableOf('queues', ['JOBS OF', ' WAIT', ' TAKEN', ' DEAD', ' OLDEST'], queueRows(now, 'jobs'), left),
    tableOf('runs', ['RUNS OF', ' WAIT', ' TAKEN', ' DEAD', ' OLDEST'], definitionRows(now), left),
    tableOf('dead', ['DEAD JOB', 'ZONE', 'FUNCTION', ' FAILED', 'ERROR'], deadRows(now), left),
    tableOf(
      'hosts',
      ['HOST', 'ZONE', 'VERSION', ' PID', ' CALLS', ' JOBS', ' UP', 'STATE'],
      hostRows(now),
      left,
    ),
    tableOf('ended', ['ENDED', 'OF', ' /S', ' DONE', ' FAILED', ' CANCELLED'], endedRows(now, pace), left),
    tableOf('stages', ['STAGE', 'ARROW', ' CALLS', ' MEAN'], stageRows(now), left),
    tableOf(
      'stores',
      ['STORE', ' ENTRIES', ' BYTES', ' READS/S', ' HIT %', ' EVICTED'],
      storeRows(now, pace),
      left,
    ),
    tableOf('locks', ['LOCK', 'KIND', ' FREE', ' WAIT'], lockRows(now), left),
    tableOf(
      'threads',
      ['THREAD', ' CPU %', ' LOOP %', ' DELAY P99', ' GC %', ' HEAP', ' FIBERS'],
      threadRows(now, pace),
      left,
    ),
    tableOf(
      'refusals',
      ['REFUSED BY', 'REASON', ' COUNT', ' /S'],
      reasonRows(now.refusals, 'refusals', pace),
      left,
    ),
    tableOf('ends', ['WORKERS ENDED', 'REASON', ' COUNT', ' /S'], reasonRows(now.ends, 'ends', pace), left),
  ]
}

function factsOf(now: Snapshot, pace: Pace): string[] {
  const { before } = pace
  const cpu = before === undefined ? now.cpuMs / now.upMs : (now.cpuMs - before.cpuMs) / (pace.seconds * 1000)
  const sent =
    before === undefined ? '' : `, ${bytesOf((now.sentBytes - before.sentBytes) / pace.seconds)}/s sent`
  return [
    `up ${timeOf(now.upMs)}`,
    `CPU ${percentOf(cpu)} %`,
    `memory ${bytesOf(now.memoryBytes)}`,
    `threads ${countOf(rowsOf(now.threads).length)}`,
    ...(now.accepted > 0 ? [`connections ${countOf(now.connections)}${sent}`] : []),
    `Corespun ${textOf(now.corespun, 20)}, Node ${textOf(now.node, 20)}`,
  ]
}

function tableOf(
  id: string,
  columns: readonly string[],
  rows: readonly ViewRow[],
  leftOut: Readonly<Record<string, number>>,
): ViewTable {
  return { id, columns, rows, leftOut: leftOut[id] ?? 0 }
}

function runningRows({ running }: Snapshot): ViewRow[] {
  return rowsOf(running).map(({ worker, name, source, ageMs, caller, isCancelled }) => ({
    cells: [textOf(worker), textOf(name), timeOf(ageMs), textOf(caller), isCancelled ? 'cancelled' : 'runs'],
    details: [textOf(source, 300)],
  }))
}

function zoneRows({ zones, running, actions }: Snapshot): ViewRow[] {
  const mayReload = rowsOf(actions).includes('reload')
  return rowsOf(zones).map((each) => {
    const { zone, workers, waiting, high, low, tenants, errors } = each
    const runs = rowsOf(running).filter((task) => task.zone === zone).length
    const counts = [workers, runs, waiting, high, low, tenants, errors].map(countOf)
    const question = `replace the workers of the zone ${textOf(zone)}?`
    const act = { action: 'reload', params: { zone: String(zone) }, question }
    return { cells: [textOf(zone), ...counts], ...(mayReload ? { act } : {}) }
  })
}

function tenantRows({ zones }: Snapshot): ViewRow[] {
  const rows = rowsOf(zones).flatMap(({ zone, byTenant }) =>
    rowsOf(byTenant).map(({ tenant, waiting }) => ({ tenant, zone, waiting })),
  )
  return rows
    .sort((a, b) => b.waiting - a.waiting)
    .map(({ tenant, zone, waiting }) => ({ cells: [textOf(tenant), textOf(zone), countOf(waiting)] }))
}

function functionRows({ functions, boundsMs }: Snapshot, pace: Pace): ViewRow[] {
  const earlier = new Map(rowsOf(pace.before?.functions).map((each) => [`${each.zone}\0${each.name}`, each]))
  const rows = rowsOf(functions).map((each) => {
    const { zone, name, done, failed, died, cpuMs } = each
    const old = earlier.get(`${zone}\0${name}`)
    const duration = sinceOf(each.duration, old?.duration)
    const wait = sinceOf(each.wait, old?.wait)
    const rate = rateOf(done + failed, (old?.done ?? 0) + (old?.failed ?? 0), pace)
    const cpu = pace.before === undefined ? NaN : (cpuMs - (old?.cpuMs ?? 0)) / (pace.seconds * 1000)
    const times = [quantileOf(duration, boundsMs.tasks, 0.5), quantileOf(duration, boundsMs.tasks, 0.99)]
    const cells = [
      textOf(name),
      textOf(zone),
      numberOf(rate),
      ...times,
      quantileOf(wait, boundsMs.tasks, 0.99),
      percentOf(cpu),
      countOf(failed),
      countOf(died),
    ]
    return { cells, cpu: cpu || 0, rate: rate || 0 }
  })
  return rows.sort((a, b) => b.cpu - a.cpu || b.rate - a.rate).map(({ cells }) => ({ cells }))
}

function routeRows({ routes, boundsMs }: Snapshot, pace: Pace): ViewRow[] {
  const keyOf = ({ method, route }: { method: string; route: string }): string => `${method} ${route}`
  const earlier = new Map(rowsOf(pace.before?.routes).map((each) => [keyOf(each), each]))
  const rows = rowsOf(routes).map((each) => {
    const old = earlier.get(keyOf(each))
    const duration = sinceOf(each.duration, old?.duration)
    const rate = rateOf(each.requests, old?.requests ?? 0, pace)
    const bounds = boundsMs.requests
    const isMeasured = each.cpuMs > 0 && pace.before !== undefined
    const cpu = isMeasured ? (each.cpuMs - (old?.cpuMs ?? 0)) / (pace.seconds * 1000) : NaN
    const cells = [
      routeOf(each),
      numberOf(rate),
      quantileOf(duration, bounds, 0.5),
      quantileOf(duration, bounds, 0.99),
      percentOf(cpu),
      countOf(each.active),
      countOf(each.clientErrors),
      countOf(each.serverErrors),
      countOf(each.aborted),
      bytesOf(each.bytes),
    ]
    return { cells, rate: rate || 0 }
  })
  return rows.sort((a, b) => b.rate - a.rate).map(({ cells }) => ({ cells }))
}

/** A thread has room for a number of routes, and counts others together. */
function routeOf({ method, route }: { readonly method: string; readonly route: string }): string {
  if (method === '') return '(others)'
  return `${textOf(method, 10)} ${route === '' ? '(no route)' : textOf(route)}`
}

function slowRows({ slow, atMs }: Snapshot): ViewRow[] {
  return rowsOf(slow).map(({ name, source, thread, status, time, ms, usualMs, waits }) => {
    const { queueMs = NaN, cpuMs = NaN, loopMs = NaN, gcMs = NaN, hopMs = NaN } = waits ?? {}
    const agoMs = Math.max(0, atMs - Date.parse(time))
    return {
      cells: [
        textOf(name),
        textOf(thread),
        ...[agoMs, ms, usualMs, queueMs, cpuMs, loopMs, gcMs, hopMs].map(timeOf),
      ],
      details: [status > 0 ? `status ${countOf(status)}` : textOf(source, 300), `ended ${textOf(time, 40)}`],
    }
  })
}

function queueRows({ fleet }: Snapshot, of: string): ViewRow[] {
  const queues = rowsOf(fleet?.queues).filter(({ kind }) => kind === of)
  return queues.map(({ zone, waiting, taken, dead, waitedMs }) => {
    const oldest = waiting > 0 ? timeOf(waitedMs) : '-'
    return { cells: [textOf(zone), countOf(waiting), countOf(taken), countOf(dead), oldest] }
  })
}

/** The queues of durable runs; those of which the page can show the runs have buttons. */
function definitionRows(now: Snapshot): ViewRow[] {
  const rows = queueRows(now, 'runs')
  const { runs, fleet } = now
  const queues = rowsOf(fleet?.queues).filter(({ kind }) => kind === 'runs')
  const missing = rowsOf(runs?.names).filter((name) => !queues.some(({ zone }) => zone === name))
  for (const name of missing) rows.push({ cells: [textOf(name), '-', '-', '-', '-'] })
  const names = [...queues.map(({ zone }) => zone), ...missing]
  return rows.map((row, index) => {
    const name = names[index]
    if (!rowsOf(runs?.names).includes(name)) return row
    const isOpen = name === runs?.name
    const params: Record<string, string> = isOpen ? {} : { name }
    return { ...row, act: { action: isOpen ? 'hide' : 'show', params, question: '' } }
  })
}

function runRows({ runs, atMs }: Snapshot): ViewRow[] {
  return rowsOf(runs?.list).map(({ key, status, startedMs, untilMs }) => {
    const params = { name: String(runs?.name), key: String(key) }
    const times = [`${timeOf(Math.max(0, atMs - startedMs))} ago`, timeOf(untilMs - startedMs)]
    return { cells: [textOf(key), textOf(status), ...times], act: { action: 'show', params, question: '' } }
  })
}

/** The run that is open, and its steps. */
function stepRows({ runs }: Snapshot): ViewRow[] {
  const run = runs?.run
  if (run === undefined) return []
  const wholeMs = Math.max(1, run.untilMs - run.startedMs)
  const shareOf = (ms: number): number => Math.min(1, Math.max(0, (ms - run.startedMs) / wholeMs)) || 0
  const rows = rowsOf(run.steps).map(
    ({ key, status, startedMs, untilMs, failures, dueMs, error }): ViewRow => {
      const times = [timeOf(Math.max(0, startedMs - run.startedMs)), timeOf(Math.max(0, untilMs - startedMs))]
      const due = dueMs === undefined ? '' : `due ${textOf(new Date(dueMs).toJSON())}`
      return {
        cells: [textOf(key), textOf(status), ...times, failures > 0 ? countOf(failures) : '-', ''],
        details: [textOf(error, 300), due],
        span: [shareOf(startedMs), shareOf(untilMs)],
      }
    },
  )
  const details = [
    textOf(run.error, 300),
    run.resumedCount > 0 ? `times resumed: ${countOf(run.resumedCount)}` : '',
    run.holder === undefined ? '' : `at ${textOf(run.holder)}`,
  ]
  const name = `${textOf(runs?.name)} ${textOf(run.key)}`
  const act = { action: 'hide', params: { name: String(runs?.name) }, question: '' }
  const cells = [name, textOf(run.status), '-', timeOf(wholeMs), '-', '']
  return [{ cells, details, span: [0, 1], act }, ...rows]
}

function endedRows({ ended }: Snapshot, pace: Pace): ViewRow[] {
  const keyOf = ({ kind, zone, name }: EndedFigures): string => `${kind} ${zone}\0${name}`
  const sumOf = ({ done, failed, cancelled }: EndedFigures): number => done + failed + cancelled
  const earlier = new Map(rowsOf(pace.before?.ended).map((each) => [keyOf(each), sumOf(each)]))
  return rowsOf(ended).map((each) => {
    const rate = numberOf(rateOf(sumOf(each), earlier.get(keyOf(each)) ?? 0, pace))
    const counts = [each.done, each.failed, each.cancelled].map(countOf)
    return { cells: [textOf(each.name), each.kind === 'runs' ? 'runs' : textOf(each.zone), rate, ...counts] }
  })
}

function deadRows({ fleet, actions }: Snapshot): ViewRow[] {
  const mayRetry = rowsOf(actions).includes('retry')
  return rowsOf(fleet?.dead).map(({ zone, key, name, failures, errors }) => {
    const params = { zone: String(zone), key: String(key) }
    const act = { action: 'retry', params, question: `run the job ${textOf(key)} of ${textOf(zone)} anew?` }
    const lines = rowsOf(errors).map((each) => textOf(each, 300))
    return {
      cells: [textOf(key), textOf(zone), textOf(name), countOf(failures), lines[lines.length - 1] ?? '-'],
      details: lines,
      ...(mayRetry ? { act } : {}),
    }
  })
}

function hostRows({ fleet }: Snapshot): ViewRow[] {
  return rowsOf(fleet?.hosts).map((host) => {
    const calls = `${countOf(host.inFlight)}/${countOf(host.inFlightMax)}`
    const jobs = host.jobsMax > 0 ? `${countOf(host.jobsRunning)}/${countOf(host.jobsMax)}` : '-'
    const texts = [host.machine, host.zone, host.version].map((each) => textOf(each))
    const state = host.isLeaving ? 'leaving' : 'ready'
    return { cells: [...texts, textOf(host.pid), calls, jobs, timeOf(host.upMs), state] }
  })
}

function stageRows({ stages }: Snapshot): ViewRow[] {
  return rowsOf(stages)
    .filter(({ calls }) => calls > 0)
    .sort((a, b) => b.ms / b.calls - a.ms / a.calls)
    .map(({ arrow, stage, calls, ms }) => ({
      cells: [textOf(stage), textOf(arrow), countOf(calls), timeOf(ms / calls)],
    }))
}

function storeRows({ stores }: Snapshot, pace: Pace): ViewRow[] {
  const earlier = new Map(rowsOf(pace.before?.stores).map((each) => [each.store, each]))
  return rowsOf(stores).map(({ store, entries, bytes, hits, misses, evictions }) => {
    const old = earlier.get(store)
    const reads = rateOf(hits + misses, (old?.hits ?? 0) + (old?.misses ?? 0), pace)
    const hit = percentOf(hits / (hits + misses))
    return {
      cells: [textOf(store), countOf(entries), bytesOf(bytes), numberOf(reads), hit, countOf(evictions)],
    }
  })
}

function lockRows({ locks }: Snapshot): ViewRow[] {
  return rowsOf(locks).map(({ lock, kind, free, waiting }) => ({
    cells: [textOf(lock), textOf(kind), countOf(free), countOf(waiting)],
  }))
}

function threadRows({ threads }: Snapshot, pace: Pace): ViewRow[] {
  const earlier = new Map(rowsOf(pace.before?.threads).map((each) => [each.thread, each]))
  return rowsOf(threads).map((each) => {
    const old = earlier.get(each.thread)
    // A thread brings its own figures up to date, and one that is busy for long has not. CPU time is the
    // total since it began, also before it was looked at.
    const isUnknown = old === undefined || each.activeMs + each.idleMs === old.activeMs + old.idleMs
    const share = (ms: number, oldMs = 0): string =>
      percentOf(isUnknown ? NaN : (ms - oldMs) / (pace.seconds * 1000))
    return {
      cells: [
        textOf(each.thread),
        share(each.cpuMs, old?.cpuMs),
        share(each.activeMs, old?.activeMs),
        each.delayMaxMs > 0 ? timeOf(each.delayP99Ms) : '-',
        share(each.gcMs, old?.gcMs),
        bytesOf(each.heapBytes),
        countOf(each.fibers),
      ],
    }
  })
}

function reasonRows(list: readonly ReasonFigures[], name: 'refusals' | 'ends', pace: Pace): ViewRow[] {
  const keyOf = ({ what, reason }: ReasonFigures): string => `${what}\0${reason}`
  const earlier = new Map(rowsOf(pace.before?.[name]).map((each) => [keyOf(each), each.count]))
  return rowsOf(list).map((each) => {
    const rate = rateOf(each.count, earlier.get(keyOf(each)) ?? 0, pace)
    const what = each.what === '' ? '(not listed)' : textOf(each.what)
    return { cells: [what, textOf(each.reason), countOf(each.count), numberOf(rate)] }
  })
}

function rateOf(now: number, before: number, { before: known, seconds }: Pace): number {
  return known === undefined ? NaN : Math.max(0, now - before) / seconds
}

/** What another version sends may have no such list. */
function rowsOf<Row>(list: readonly Row[] | undefined): readonly Row[] {
  return Array.isArray(list) ? (list as readonly Row[]) : []
}

/** A name as one line without anything that a terminal or a page would obey, cut in its middle. */
export function textOf(value: unknown, charsMax = 120): string {
  const clean = String(value ?? '').replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\u{FFFD}')
  if (clean.length <= charsMax) return clean
  const half = Math.floor((charsMax - 1) / 2)
  return `${clean.slice(0, half)}…${clean.slice(clean.length - half)}`.replace(/\p{Cs}/gu, '')
}

/** What was added between two looks. */
function sinceOf(now: Durations, before: Durations | undefined): Durations {
  if (before === undefined || before.count > now.count) return now
  return {
    count: now.count - before.count,
    sumMs: now.sumMs - before.sumMs,
    buckets: rowsOf(now.buckets).map((each, index) => each - (before.buckets[index] ?? 0)),
  }
}

/** A quantile by its bucket: within that, values are taken as evenly distributed. */
export function quantileOf({ count, buckets }: Durations, bounds: readonly number[], q: number): string {
  if (!(count > 0)) return '-'
  let left = count * q
  for (let index = 0; index < bounds.length; index++) {
    const inside = buckets[index]
    const low = index === 0 ? 0 : bounds[index - 1]
    if (inside > 0 && left <= inside) return timeOf(low + (bounds[index] - low) * (left / inside))
    left -= inside
  }
  return `>${timeOf(bounds[bounds.length - 1])}`
}

export function countOf(value: number): string {
  return Number.isFinite(value) ? String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',') : '-'
}

function numberOf(value: number): string {
  if (!Number.isFinite(value)) return '-'
  return value > 0 && value < 10 ? value.toFixed(1) : countOf(value)
}

/** A share, of which 1 is all. */
function percentOf(share: number): string {
  return Number.isFinite(share) ? (Math.max(0, share) * 100).toFixed(share < 0.0995 ? 1 : 0) : '-'
}

export function bytesOf(bytes: number): string {
  if (!Number.isFinite(bytes)) return '-'
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let value = Math.max(0, bytes)
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : String(Math.round(value))} ${units[unit]}`
}

export function timeOf(ms: number): string {
  if (!Number.isFinite(ms)) return '-'
  if (ms < 1) return `${Math.round(ms * 1000)} µs`
  if (ms < 9.95) return `${ms.toFixed(1)} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 119_500) return `${Math.round(ms / 1000)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`
}

/** All functions of this file, for a page that receives their source. */
export const VIEW_FUNCTIONS: readonly ((...args: never[]) => unknown)[] = [
  viewOf,
  tablesOf,
  factsOf,
  tableOf,
  runningRows,
  zoneRows,
  tenantRows,
  functionRows,
  routeRows,
  routeOf,
  slowRows,
  queueRows,
  definitionRows,
  runRows,
  stepRows,
  endedRows,
  deadRows,
  hostRows,
  stageRows,
  storeRows,
  lockRows,
  threadRows,
  reasonRows,
  rateOf,
  rowsOf,
  textOf,
  sinceOf,
  quantileOf,
  countOf,
  numberOf,
  percentOf,
  bytesOf,
  timeOf,
]
