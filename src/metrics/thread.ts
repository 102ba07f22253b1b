/**
 * What a thread counts once its process counts: requests, events of its workers and servers, and itself.
 *
 * Every thread with a bridge to the core loads this file when counting begins. What cannot be
 * counted as it happens is looked at once a second, by a timer that does not keep the thread alive.
 */
import { subscribe } from 'node:diagnostics_channel'
import { meters, threads, watchPauses } from '../base/index.ts'
import { native } from '../native/index.ts'
import { here } from '../zone/internal.ts'
import { answers } from './questions.ts'
import { countRequests } from './requests.ts'
import { type Series, Sheet } from './sheet.ts'
import { lookAtSlow, threadName } from './slow.ts'

const LOOK_MS = 1000
/** How long delays of the event loop are measured before they are measured anew. */
const DELAYS_MS = 15_000
const DELAY_RESOLUTION_MS = 20
/** Kinds of collections by the flags of V8. */
const GC_KINDS: Readonly<Record<number, string>> = { 1: 'minor', 4: 'major', 8: 'incremental', 16: 'weakcb' }

/** Why a worker has ended, in a word, by how its reason begins. */
const ENDS: readonly (readonly [begins: string, word: string])[] = [
  ['it exited with code 0', 'released'],
  ['it exited', 'exit'],
  ['its heap', 'out-of-memory'],
  ['an error', 'uncaught'],
  ['its task ran on', 'overdue'],
  ['the zone was reloaded', 'overdue'],
  ['it was ended by', 'signal'],
  ['it was replaced', 'replaced'],
  ['it could not be started', 'start'],
]

let mine: Sheet | undefined
let sampleSoon = (): void => {}

/** Count in this thread. Returns its sheet the first time. */
export function countThread(): Sheet | undefined {
  if (mine !== undefined) return undefined
  const sheet = new Sheet()
  mine = sheet
  sampleSoon = countRequests(sheet)
  watchPauses()
  meters.task = (zone, name, ms, traceId, spanId) => {
    if (name !== '') sheet.exemplars('taskSeconds', zone, name).put(ms / 1000, traceId, spanId)
  }
  meters.ended = (key, ...of) => sheet.series(key, ...of).add(1)
  meters.tenant = nameTenant
  meters.napa = (type, act, value, ...of) => {
    if (type === 2) sheet.series('napaPercentiles', ...of).record(value)
    else if (type === 1) sheet.series('napaRates', ...of).add(value)
    else sheet.series('napaNumbers', ...of)[act](value)
  }
  subscribe('corespun:worker:ended', (message) => {
    const { worker, reason = '' } = message as { readonly worker: string; readonly reason?: string }
    const zone = worker.slice(0, worker.lastIndexOf('/'))
    const [, word = 'other'] = ENDS.find(([begins]) => reason.startsWith(begins)) ?? []
    sheet.series('workerEnds', zone, word).add(1)
  })
  subscribe('corespun:http:refused', (message) => {
    const { what, reason, leftOut } = message as Refusal
    sheet.series('refusals', what, reason).add(1)
    // Too many for each to be reported.
    if (leftOut > 0) sheet.series('refusals', '', '').add(leftOut)
  })
  // Not yet: a thread that has just begun may be about to become the worker of a zone.
  setTimeout(() => {
    look()
    setInterval(look, LOOK_MS).unref()
  }, LOOK_MS / 10).unref()
  process.on('exit', () => {
    // The core sends what was responded in the batch that a handler has ended by process.exit().
    meters.batchEnded?.()
    look()
  })
  meters.look = look
  return sheet
}

/** Names of tenants that this thread has passed to the core. */
const tenants = new Set<string>()
const TENANTS_MAX = 4096
const TENANT_CHARS_MAX = 64

function nameTenant(tenant: string, low: number, high: number): void {
  const name = tenant.slice(0, TENANT_CHARS_MAX)
  if (tenants.size >= TENANTS_MAX || tenants.has(name)) return
  tenants.add(name)
  native.nameTenant(low >>> 0, high >>> 0, name)
}

let looking: (() => void) | undefined

/** Bring up to date what this thread counts once a second. */
export function look(): void {
  // One that waits to become a worker has no name yet, and one of its own would stay among the series.
  if (mine === undefined || here.isUnnamed) return
  looking ??= looks(mine)
  looking()
  sampleSoon()
}

interface Refusal {
  readonly what: string
  readonly reason: string
  readonly leftOut: number
}

function looks(sheet: Sheet): () => void {
  const { getHeapStatistics } = process.getBuiltinModule('node:v8')
  const name = threadName()
  const cpu = sheet.series('threadCpu', name)
  const heapUsed = sheet.series('heapUsed', name)
  const heapLimit = sheet.series('heapLimit', name)
  const external = sheet.series('externalBytes', name)
  const active = sheet.series('loopTime', name, 'active')
  const idle = sheet.series('loopTime', name, 'idle')
  const fibers = sheet.series('fibers', name)
  const fleets = sheet.series('fleetConnections', name)
  const listen = answers(name)
  const servers = serverLooks(sheet)
  const delays = delayLooks(sheet, name)
  const stages = stageLooks(sheet)
  let cpuNs = 0
  let before = performance.eventLoopUtilization()
  watchPauses(({ ms, kind }) => {
    sheet.series('gcSeconds', name, GC_KINDS[kind] ?? 'other').record(ms / 1000)
  })
  return () => {
    const nowNs = native.threadCpuNs()
    cpu.add((nowNs - cpuNs) / 1e9)
    cpuNs = nowNs
    const since = performance.eventLoopUtilization()
    active.add((since.active - before.active) / 1000)
    idle.add((since.idle - before.idle) / 1000)
    before = since
    const heap = getHeapStatistics()
    heapUsed.set(heap.used_heap_size)
    heapLimit.set(heap.heap_size_limit)
    external.set(heap.external_memory)
    fibers.set(meters.fibers)
    fleets.set(meters.fleets.size)
    listen()
    servers()
    delays()
    lookAtSlow()
    stages()
  }
}

/** Delays of the event loop, where others wait for it: in the main thread, and where a server listens. */
function delayLooks(sheet: Sheet, name: string): () => void {
  const gauges = (['Mean', 'P50', 'P99', 'Max'] as const).map(
    (key) => () => sheet.series(`loopDelay${key}`, name),
  )
  let delays: ReturnType<typeof import('node:perf_hooks').monitorEventLoopDelay> | undefined
  let before: readonly number[] = [0, 0, 0, 0]
  let endMs = performance.now() + DELAYS_MS
  const figures = (): readonly number[] => {
    const { mean, max, count } = delays!
    // What is measured are intervals of the timer.
    return [mean, delays!.percentile(50), delays!.percentile(99), max].map((ns) =>
      count === 0 ? 0 : Math.max(0, ns / 1e9 - DELAY_RESOLUTION_MS / 1000),
    )
  }
  return () => {
    if (delays === undefined) {
      if (!threads().isMainThread && meters.servers.size === 0) return
      delays = process
        .getBuiltinModule('node:perf_hooks')
        .monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
      delays.enable()
    }
    // Whoever looks each 15 s finds each of them.
    for (const [index, value] of figures().entries()) gauges[index]().set(Math.max(value, before[index]))
    if (performance.now() < endMs) return
    endMs = performance.now() + DELAYS_MS
    // A reset forgets the interval in progress, in which the loop may have been late.
    setTimeout(() => {
      before = figures()
      delays!.reset()
    }, 2 * DELAY_RESOLUTION_MS).unref()
  }
}

/** What the servers of this thread have counted since the last look. */
function serverLooks(sheet: Sheet): () => void {
  const seen = new WeakMap<object, Map<Series, number>>()
  return () => {
    if (meters.servers.size === 0) return
    const open = sheet.series('connections')
    const [accepted, received, sent] = (['connectionsTotal', 'bytesIn', 'bytesOut'] as const).map((key) =>
      sheet.series(key),
    )
    let connections = 0
    for (const figures of meters.servers) {
      const now = figures()
      const last = seen.get(figures) ?? new Map<Series, number>()
      seen.set(figures, last)
      const counted = (series: Series, count: number): void => {
        series.add(count - (last.get(series) ?? 0))
        last.set(series, count)
      }
      counted(accepted, now.connectionsTotal)
      counted(received, now.bytesIn)
      counted(sent, now.bytesOut)
      for (const { method, route, status, count } of now.constants)
        counted(sheet.series('requests', method, route, status, ''), count)
      connections += now.connections
    }
    open.set(connections)
  }
}

/** The stages of arrows that exist now; those of others have had no calls. */
function stageLooks(sheet: Sheet): () => void {
  let before = new Map<Series, number>()
  return () => {
    if (meters.stages === undefined) return
    const now = new Map<Series, number>()
    for (const { arrow, stage, calls, ms } of meters.stages())
      for (const [key, value] of [
        ['stageCalls', calls],
        ['stageSeconds', ms / 1000],
      ] as const) {
        const series = sheet.series(key, arrow, stage)
        now.set(series, (now.get(series) ?? 0) + value)
      }
    for (const series of before.keys()) if (!now.has(series)) series.set(0)
    for (const [series, value] of now) series.set(value)
    before = now
  }
}
