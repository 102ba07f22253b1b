/**
 * Counts the requests of this thread by route and status.
 *
 * A request is counted once when it begins, and once by the bucket of its duration when its response is
 * complete or given up; one whose client has left before the response has no status. What has begun and not
 * ended is active, or has died with its thread. Responses that end within the batch in which their requests
 * have begun leave together at its end, so the clock is read twice for a batch, and nothing else is asked of
 * Node: after each wait the code of such calls has left the caches. The series of a route are looked up once
 * for each status.
 */
import { type Counted, type Moment, type RequestCount, meters } from '../base/index.ts'
import { waitsOf } from '../zone/internal.ts'
import type { Exemplars } from './exemplars.ts'
import type { Series, Sheet } from './sheet.ts'
import { addSlowRequest } from './slow.ts'
import { Usual } from './usual.ts'

const METHODS = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'QUERY',
])

/** Instead of a status: it was given up before it had one. */
const GIVEN_UP = 1
/** A power of two: 32 bits are six days, and rounding cancels out in sums. */
const TICKS_PER_MS = 8

/** Of the global object it is an accessor. */
const clock = performance

/** The time in ticks, as a small integer, which takes no memory. */
function ticks(): number {
  return (clock.now() * TICKS_PER_MS) | 0
}

/** For how long this thread has been idle, in the same. */
function idleTicks(): number {
  return (clock.nodeTiming.idleTime * TICKS_PER_MS) | 0
}

function secondsFrom(from: number, to: number): number {
  return ((to - from) >>> 0) / (TICKS_PER_MS * 1000)
}

/** The series of one status of a route. */
class Ended {
  readonly route: Route
  readonly key: number
  readonly seconds: Series
  readonly bytes: Series
  /** How many have ended in this batch. */
  inBatch = 0
  readonly #makeExemplars: () => Exemplars
  #exemplars: Exemplars | undefined

  constructor(route: Route, key: number, sheet: Sheet, values: readonly (string | number)[]) {
    this.route = route
    this.key = key
    this.seconds = sheet.series('requestSeconds', ...values)
    this.bytes = sheet.series('bodyBytes', ...values)
    this.#makeExemplars = () => sheet.exemplars('requestSeconds', ...values)
  }

  get exemplars(): Exemplars {
    return (this.#exemplars ??= this.#makeExemplars())
  }
}

class Begun implements Moment {
  ticks: number
  idle: number

  constructor(ticks: number, idle: number) {
    this.ticks = ticks
    this.idle = idle
  }
}

class Batch {
  /** Whether a request has begun in the batch that is passed to the app now. */
  hasBegun = false
  /** When; requests that are open when their batch ends keep it, and the next batch has another one. */
  #begun = new Begun(0, 0)
  #openCount = 0
  readonly #ended: Ended[] = []
  #endedCount = 0

  /** Set when a request begins. */
  begun(request: Pick<Counted, 'begun'>): void {
    if (!meters.isInBatch) return void (request.begun = new Begun(ticks(), idleTicks()))
    if (!this.hasBegun) {
      this.hasBegun = true
      this.#begun.ticks = ticks()
    }
    request.begun = this.#begun
    this.#openCount++
  }

  /** Whether it has begun in this batch, at whose end it is counted. */
  ended(one: Ended, begun: Moment | undefined): boolean {
    if (!this.hasBegun || begun !== this.#begun) return false
    this.#openCount--
    // The array keeps its memory.
    if (one.inBatch++ === 0) this.#ended[this.#endedCount++] = one
    return true
  }

  readonly end = (): void => {
    this.hasBegun = false
    const begun = this.#begun
    const seconds = secondsFrom(begun.ticks, ticks())
    if (this.#openCount > 0) {
      // The thread was not idle since.
      begun.idle = idleTicks()
      this.#begun = new Begun(0, 0)
      this.#openCount = 0
    }
    const count = this.#endedCount
    this.#endedCount = 0
    for (let index = 0; index < count; index++) {
      const one = this.#ended[index]
      one.seconds.record(seconds, one.inBatch)
      one.inBatch = 0
      one.route.passed(seconds * 1000, one.key)
    }
  }
}

class Route implements RequestCount {
  readonly method: string
  readonly pattern: string | undefined
  readonly begun: Series
  readonly #sheet: Sheet
  readonly #batch: Batch
  readonly #labels: readonly [method: string, route: string]
  readonly #isHead: boolean
  readonly #ended = new Map<number, Ended>()
  #lastKey = 0
  #last: Ended | undefined
  #cpu: Series | undefined
  readonly #usual = new Usual()
  /** What is measured of the request that ends. */
  used: { readonly cpuMs: number } | undefined

  constructor(sheet: Sheet, batch: Batch, method: string, pattern: string | undefined) {
    this.#sheet = sheet
    this.#batch = batch
    this.method = method
    this.pattern = pattern
    this.#labels = [method, pattern ?? '']
    this.#isHead = method === 'HEAD'
    this.begun = sheet.series('activeRequests', ...this.#labels)
  }

  ended(status: number, bytes: number, { begun }: Pick<Counted, 'begun'>, isAborted: boolean): void {
    const key = isAborted ? -(status || GIVEN_UP) : status
    const ended = this.#last !== undefined && key === this.#lastKey ? this.#last : this.find(key)
    ended.bytes.record(this.#isHead ? 0 : bytes)
    if (this.#batch.ended(ended, begun)) return
    const seconds = secondsFrom(begun!.ticks, ticks())
    ended.seconds.record(seconds)
    this.passed(seconds * 1000, key, begun)
  }

  /**
   * One has taken so long, or all of a batch together.
   * @param begun Of one that its batch did not end.
   */
  passed(ms: number, key: number, begun?: Moment): void {
    const usualMs = this.#usual.passed(ms)
    if (usualMs === 0) return
    const { used } = this
    const idleMs = begun === undefined ? 0 : secondsFrom(begun.idle, idleTicks()) * 1000
    const measured = used === undefined ? {} : { ...waitsOf(used), cpuMs: used.cpuMs }
    const status = Math.abs(key) === GIVEN_UP ? 0 : Math.abs(key)
    const name = `${this.method} ${this.pattern ?? 'without a route'}`
    addSlowRequest(name, { status, ms, usualMs, waits: { ...measured, loopMs: Math.max(0, ms - idleMs) } })
  }

  traced(traceId: string, spanId: string): RequestCount {
    return new Traced(this, this, traceId, spanId)
  }

  measured(used: { readonly cpuMs: number }): RequestCount {
    return new Measured(this, this, used)
  }

  addCpu(ms: number): void {
    this.#cpu ??= this.#sheet.series('requestCpu', ...this.#labels)
    this.#cpu.add(ms / 1000)
  }

  /** @param key The status; below 0: of a response that was given up. */
  find(key: number): Ended {
    let ended = this.#ended.get(key)
    if (ended === undefined) {
      const status = Math.abs(key) === GIVEN_UP ? '' : Math.abs(key)
      const error = key < 0 ? 'aborted' : key >= 500 ? `${key}` : ''
      ended = new Ended(this, key, this.#sheet, [...this.#labels, status, error])
      this.#ended.set(key, ended)
    }
    this.#lastKey = key
    this.#last = ended
    return ended
  }
}

/** A request that is part of a trace. */
class Traced implements RequestCount {
  readonly #inner: RequestCount
  readonly #route: Route
  readonly #ids: readonly [traceId: string, spanId: string]

  constructor(inner: RequestCount, route: Route, traceId: string, spanId: string) {
    this.#inner = inner
    this.#route = route
    this.#ids = [traceId, spanId]
  }

  ended(status: number, bytes: number, request: Counted, isAborted: boolean): void {
    // Measured before it is counted: an exemplar moves up to the next bucket that is not empty, never down.
    const seconds = secondsFrom(request.begun!.ticks, ticks())
    this.#inner.ended(status, bytes, request, isAborted)
    const key = isAborted ? -(status || GIVEN_UP) : status
    this.#route.find(key).exemplars.put(seconds, ...this.#ids)
  }

  traced(traceId: string, spanId: string): RequestCount {
    return new Traced(this.#inner, this.#route, traceId, spanId)
  }

  measured(used: { readonly cpuMs: number }): RequestCount {
    return new Measured(this, this.#route, used)
  }
}

/** A request whose CPU time is known. */
class Measured implements RequestCount {
  readonly #inner: RequestCount
  readonly #route: Route
  readonly #used: { readonly cpuMs: number }

  constructor(inner: RequestCount, route: Route, used: { readonly cpuMs: number }) {
    this.#inner = inner
    this.#route = route
    this.#used = used
  }

  ended(status: number, bytes: number, request: Counted, isAborted: boolean): void {
    const route = this.#route
    route.used = this.#used
    this.#inner.ended(status, bytes, request, isAborted)
    route.used = undefined
    route.addCpu(this.#used.cpuMs)
  }

  traced(traceId: string, spanId: string): RequestCount {
    return new Traced(this, this.#route, traceId, spanId)
  }

  measured(): RequestCount {
    return this
  }
}

/** Count the requests of this thread from now on. */
export function countRequests(sheet: Sheet): void {
  const batch = new Batch()
  const byMethod = new Map<string, Map<string | undefined, Route>>()
  let last: Route | undefined
  const routeOf = (method: string, pattern: string | undefined): Route => {
    // Of any text that a client sends the first of a kind would have a series.
    const known = METHODS.has(method) ? method : '_OTHER'
    let routes = byMethod.get(known)
    if (routes === undefined) byMethod.set(known, (routes = new Map()))
    let found = routes.get(pattern)
    if (found === undefined) routes.set(pattern, (found = new Route(sheet, batch, known, pattern)))
    return (last = found)
  }
  meters.request = (request: Counted, pattern) => {
    const { method } = request
    const isLast = last !== undefined && pattern === last.pattern && method === last.method
    const route = isLast ? last! : routeOf(method, pattern)
    route.begun.add(1)
    batch.begun(request)
    // Its client had left before it began.
    if (request.aborted) route.ended(0, 0, request, true)
    else request.count = route
  }
  meters.batchEnded = () => {
    if (batch.hasBegun) batch.end()
  }
}
