/**
 * Tasks and requests that took far longer than others of their kind, and what they have waited for.
 *
 * The core keeps the last ones of the process (crates/bridge/src/slow.rs), so any thread can read them, also
 * while others are stuck. The thread that ran one adds its pauses by collections of garbage, which
 * Node reports later. The main thread publishes each on the channel `corespun:slow`, within some seconds.
 */
import { channel } from 'node:diagnostics_channel'
import { pausedMs, threads } from '../base/index.ts'
import { here } from '../zone/internal.ts'
import { Slow, Table, native } from '../native/index.ts'
import { labelOfKey } from '../transport/internal.ts'

/** A slow task or request: a message on the diagnostics channel `corespun:slow`. */
export interface SlowEvent {
  /** What was slow. */
  readonly kind: 'task' | 'request'
  /** The name of the function, or the method and the route: `GET /user/:id`. */
  readonly name: string
  /** Where the function is written, as far as is known: `file:///app/tasks.ts:12`; empty for requests. */
  readonly source: string
  /** The zone of a task; empty for requests. */
  readonly zone: string
  /** The worker, `web/0`, or `main`. */
  readonly thread: string
  /** The status of the response; 0 for tasks. */
  readonly status: number
  /** When it ended, ISO 8601. */
  readonly time: string
  /** What it took, ms: a task from its acceptance, a request from its head, to the end. */
  readonly ms: number
  /** What 99 of 100 like it take at most, as that thread has estimated it, ms. */
  readonly usualMs: number
  /** What it has waited for, ms. What is not known is absent. */
  readonly waits: SlowWaits
}

/** What a slow task or request has waited for, ms. Parts that overlap are in each of theirs. */
export interface SlowWaits {
  /** A task: until a worker began it. A request that is measured: its tasks. */
  readonly queueMs?: number
  /** Until the caller's thread had read the result; of a request that is measured, the ways of its tasks. */
  readonly hopMs?: number
  /** CPU time: of the worker in a zone of one task per worker; of a request that is measured. */
  readonly cpuMs?: number
  /** A request: how long its thread was busy meanwhile, with it and with others. */
  readonly loopMs?: number
  /** How long its thread collected garbage meanwhile. */
  readonly gcMs?: number
}

/** One, by its number in the process. */
export interface SlowRecord extends SlowEvent {
  readonly number: number
}

const WAITS = { queueMs: Slow.queue, hopMs: Slow.hop, cpuMs: Slow.cpu, loopMs: Slow.loop, gcMs: Slow.gc }
const events = channel('corespun:slow')
/** How old one is before it is published: its thread may have to add something. */
const COMPLETE_MS = 2000
/** Until Node has reported a pause, where the thread returns to its event loop. */
const REPORT_MS = 100

function rowsAfter(after: number): Float64Array[] {
  const numbers = new Float64Array(native.slowNumbers(after).buffer)
  const rows: Float64Array[] = []
  for (let at = 0; at < numbers.length; at += Slow.numbers) rows.push(numbers.subarray(at, at + Slow.numbers))
  return rows
}

/** The last ones, the oldest first; at most 128 are kept. */
export function slowRecords(): SlowRecord[] {
  return rowsAfter(0).flatMap((row) => recordOf(row) ?? [])
}

function recordOf(row: Float64Array): SlowRecord | undefined {
  const text = native.slowText(row[Slow.number])
  if (text === undefined) return undefined // dropped meanwhile
  const known = Object.entries(WAITS).filter(([, index]) => row[index] >= 0)
  const times = {
    number: row[Slow.number],
    time: new Date(row[Slow.ended]).toISOString(),
    ms: rounded(row[Slow.total]),
    usualMs: rounded(row[Slow.usual]),
    waits: Object.fromEntries(known.map(([name, index]) => [name, rounded(row[index])])) as SlowWaits,
  }
  if (row[Slow.kind] === 1) {
    const [thread = '', name = ''] = text.split('\n', 2)
    return { kind: 'request', name, source: '', zone: '', thread, status: row[Slow.what], ...times }
  }
  const { name, file, line } = labelOfKey(native.interned(Table.functions, row[Slow.what]) ?? UNNAMED)
  const source = line === undefined ? file : `${file}:${line}`
  const thread = `${text}/${row[Slow.slot]}`
  return {
    kind: 'task',
    name: name || 'an anonymous function',
    source,
    zone: text,
    thread,
    status: 0,
    ...times,
  }
}

/** The key of a function without a name. */
const UNNAMED = 'm["",""]'

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

/** A request of this thread was slow. */
export function addSlowRequest(
  name: string,
  { status, ms, usualMs, waits }: Pick<SlowEvent, 'status' | 'ms' | 'usualMs' | 'waits'>,
): void {
  const row = new Float64Array(Slow.numbers).fill(-1)
  row[Slow.kind] = 1
  row[Slow.total] = ms
  row[Slow.usual] = usualMs
  row[Slow.what] = status
  row[Slow.slot] = 0
  for (const [key, index] of Object.entries(WAITS)) row[index] = waits[key as keyof SlowWaits] ?? -1
  native.slowAdd(new Uint8Array(row.buffer), `${threadName()}\n${name}`)
}

/** The name of this thread: that of its worker, if it is one. */
export function threadName(): string {
  const { isMainThread, threadId } = threads()
  return here.worker ?? (isMainThread ? 'main' : `thread ${threadId}`)
}

let seen = 0
let published = 0

/** Once a second: adds the pauses of this thread, and in the main thread publishes what is complete. */
export function lookAtSlow(): void {
  const last = native.slowLast()
  if (last > seen) addPauses()
  if (!threads().isMainThread || last === published) return
  if (!events.hasSubscribers) published = last
  const completeMs = Date.now() - COMPLETE_MS
  for (const row of rowsAfter(published)) {
    if (row[Slow.ended] > completeMs) return
    published = row[Slow.number]
    const record = recordOf(row)
    if (record === undefined) continue
    const { number: _, ...event } = record
    events.publish(event satisfies SlowEvent)
  }
}

function addPauses(): void {
  const thread = native.slowThread()
  const reportedMs = Date.now() - REPORT_MS
  for (const row of rowsAfter(seen)) {
    if (row[Slow.ended] > reportedMs) return
    seen = row[Slow.number]
    if (row[Slow.thread] !== thread) continue
    const toMs = row[Slow.ended] - performance.timeOrigin
    const ranMs = row[Slow.total] - (row[Slow.kind] === 0 ? Math.max(0, row[Slow.queue]) : 0)
    const gcMs = pausedMs(toMs - ranMs, toMs)
    if (gcMs !== undefined) native.slowGc(seen, gcMs)
  }
}
