/**
 * What happens in a process that serves or hosts, as lines for who runs it: rare events, few of each kind per
 * second, and of more how many there were.
 *
 * The events are those of `corespun:*` on `node:diagnostics_channel`. Each line begins with its subject.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { messageOf, oneLine, stackOf } from '../base/index.ts'
import type { JobDeadEvent } from '../fleet/index.ts'
import type { HttpRefusal } from '../http/index.ts'
import type { WorkerEvent, ZoneReloadedEvent } from '../zone/index.ts'

/** Lines of a kind in a span, which begins with the first of them. */
const LINES_MAX = 5
const SPAN_MS = 1000

interface Span {
  lines: number
  leftOut: number
}

/** Prints lines, few of a kind at a time. */
export class EventLines {
  readonly #print: (line: string) => void
  readonly #after: (ms: number, act: () => void) => void
  readonly #spans = new Map<string, Span>()

  /** @param after Calls `act` later; a parameter for tests. */
  constructor(
    print: (line: string) => void,
    after = (ms: number, act: () => void): void => void setTimeout(act, ms).unref(),
  ) {
    this.#print = print
    this.#after = after
  }

  /**
   * Print a line, or count it.
   * @param kind What there are more of, such as `refusals`.
   * @param count How many it is about.
   */
  line(kind: string, text: string, count = 1): void {
    let span = this.#spans.get(kind)
    if (span === undefined) {
      this.#spans.set(kind, (span = { lines: 0, leftOut: 0 }))
      this.#after(SPAN_MS, () => this.#over(kind))
    }
    if (span.lines === LINES_MAX) {
      span.leftOut += count
      return
    }
    span.lines += 1
    span.leftOut += count - 1
    this.#print(`corespun: ${text}\n`)
  }

  #over(kind: string): void {
    const { leftOut = 0 } = this.#spans.get(kind) ?? {}
    this.#spans.delete(kind)
    if (leftOut > 0)
      this.#print(`corespun: ${leftOut.toLocaleString('en-US')} more ${kind} in the last second\n`)
  }
}

/** Subscribes; the returned function ends that. */
function listen<Event>(name: string, act: (event: Event) => void): () => void {
  const listener = (event: unknown): void => act(event as Event)
  subscribe(name, listener)
  return () => void unsubscribe(name, listener)
}

/**
 * Print what happens to the workers of a zone: that one has died, that they were replaced by a reload.
 * @param died Called when one has died.
 */
export function printWorkers(lines: EventLines, zone: string, died?: (reason: string) => void): () => void {
  const ends = [
    listen<WorkerEvent>('corespun:worker:ended', ({ worker, reason = '', error }) => {
      if (!worker.startsWith(`${zone}/`)) return
      const why = error === undefined ? reason : stackOf(error)
      lines.line('ends of workers', `a worker has ended and is replaced: ${why}`)
      died?.(reason)
    }),
    listen<ZoneReloadedEvent>('corespun:zone:reloaded', (event) => {
      if (event.zone !== zone) return
      const { workers, ms, error } = event
      const replaced = `reload: ${workers === 1 ? '1 worker was' : `${workers} workers were`} replaced in`
      const failed =
        error === undefined ? '' : `; the others continue with the old code: ${oneLine(messageOf(error))}`
      lines.line('reloads', `${replaced} ${Math.round(ms)} ms${failed}`)
    }),
  ]
  return () => ends.forEach((end) => end())
}

/** Print jobs that have failed for good. */
export function printDeadJobs(lines: EventLines): () => void {
  return listen<JobDeadEvent>('corespun:job:dead', ({ key, name, failures, hostsLost, error }) => {
    const lost = hostsLost === 0 ? '' : `, hosts lost: ${hostsLost}`
    const what = `job ${JSON.stringify(key)}${name === '' ? '' : ` (${name})`} is dead`
    lines.line('dead jobs', `${what}, attempts failed: ${failures}${lost}; ${oneLine(messageOf(error))}`)
  })
}

/** Print what the servers of this thread refuse. */
export function printRefusals(lines: EventLines): () => void {
  return listen<HttpRefusal>('corespun:http:refused', (refusal) => {
    const { what, reason, status, remoteAddress, detail, leftOut } = refusal
    const from = remoteAddress === '' ? '' : `, from ${remoteAddress}`
    const more = detail === '' ? '' : `: ${oneLine(detail)}`
    const answer = status === 0 ? '' : `, ${status}`
    lines.line('refusals', `refused: ${what}, ${reason}${answer}${from}${more}`, 1 + leftOut)
  })
}
