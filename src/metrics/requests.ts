/**
 * Counts the requests of this thread by route and status.
 *
 * A request is counted once when it begins, and once by the bucket of its duration when its response is
 * complete or given up; one whose client has left before the response has no status. What has begun and not
 * ended is active, or has died with its thread. Responses that end within the batch in which their requests
 * have begun leave together at its end, so the clock is read twice for a batch, and nothing else is asked of
 * Node: after each wait the code of such calls has left the caches. The series of a route are looked up once
 * for each status.
 *
 * CPU time is measured of some requests, each of which counts for those since the one before: all where they
 * are few, otherwise about ten in a second, fewer where they wait for many callbacks. Which one is next is
 * drawn beforehand, whatever it will take.
 */
import { type Counted, type Moment, type RequestCount, meters } from '../base/index.ts'
import type { CpuTime } from '../zone/index.ts'
import { endCpu, maySample, sampleCpu, waitsOf } from '../zone/internal.ts'
import type { Exemplars } from './exemplars.ts'
import type { Series, Sheet } from './sheet.ts'
import { addSlowRequest } from './slow.ts'
import { Usual } from './usual.ts'

const METHODS = new Set('GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT QUERY'.split(' '))

/** Instead of a status: it was given up before it had one. */
const GIVEN_UP = 1
/** A power of two: 32 bits are six days, and rounding cancels out in sums. */
const TICKS_PER_MS = 8

/** From a sample of a route to the next one, and the most requests between them, on the average. */
const SAMPLE_TICKS = 100 * TICKS_PER_MS
/** And of all routes together. */
const SAMPLES_TICKS = 10 * TICKS_PER_MS
const SAMPLE_MAX = 8192
/** Requests until the next try, where none may be a sample now. */
const DEFERRED = 64

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
  readonly #makeCpu: () => Series
  #cpu: Series | undefined

  constructor(route: Route, key: number, sheet: Sheet, values: readonly (string | number)[]) {
    this.route = route
    this.key = key
    this.seconds = sheet.series('requestSeconds', ...values)
    this.bytes = sheet.series('bodyBytes', ...values)
    this.#makeExemplars = () => sheet.exemplars('requestSeconds', ...values)
    this.#makeCpu = () => sheet.series('requestCpu', ...values)
  }

  get cpu(): Series {
    return (this.#cpu ??= this.#makeCpu())
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
  /** How many routes this thread counts. */
  routes = 0
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
  readonly #usual = new Usual()
  /** Requests until the next sample, and since the last one those that nobody has measured. */
  #untilSample = 1
  #unmeasured = 0
  #mean = 1
  #sampledTicks = ticks() - SAMPLE_TICKS
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
    batch.routes++
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

  next(request: Counted): Sample['within'] | undefined {
    this.#unmeasured++
    request.count = this
    return --this.#untilSample > 0 ? undefined : this.#sampled(request)
  }

  /** A sample begins, if it may. */
  #sampled(request: Counted): Sample['within'] | undefined {
    const count = this.#unmeasured
    // Middleware has measured some of those that another sample counts for: no counter goes down.
    if (count < 1) return undefined
    this.#untilSample = DEFERRED
    if (!maySample()) return undefined
    const now = ticks()
    const since = Math.max(1, (now - this.#sampledTicks) >>> 0)
    const mean = Math.round((count * this.#soonTicks) / since)
    this.#mean = Math.max(1, Math.min(mean, 2 * this.#mean, SAMPLE_MAX))
    this.#untilSample = 1 + Math.floor(Math.random() * (2 * this.#mean - 1))
    this.#sampledTicks = now
    this.#unmeasured = 0
    const sample = new Sample(this, count)
    request.count = sample
    return sample.within
  }

  get #soonTicks(): number {
    return Math.max(SAMPLE_TICKS, this.#batch.routes * SAMPLES_TICKS)
  }

  addUnmeasured(count: number): void {
    this.#unmeasured += count
  }

  /** The next request is a sample if the last one was long ago: there may be few from now on. */
  sampleSoon(): void {
    if ((ticks() - this.#sampledTicks) >>> 0 > this.#soonTicks) this.#untilSample = 1
  }

  traced(traceId: string, spanId: string): RequestCount {
    return new Traced(this, this, traceId, spanId)
  }

  measured(used: { readonly cpuMs: number }): RequestCount {
    this.#unmeasured--
    return new Measured(this, used, 1)
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

  traced(...ids: [traceId: string, spanId: string]): RequestCount {
    return new Traced(this.#inner, this.#route, ...ids)
  }

  measured(used: { readonly cpuMs: number }): RequestCount {
    return new Traced(this.#inner.measured(used), this.#route, ...this.#ids)
  }
}

/** A request whose CPU time is known. */
class Measured implements RequestCount {
  readonly #route: Route
  readonly #used: { readonly cpuMs: number }
  readonly #times: number

  /** @param times How many requests it counts for. */
  constructor(route: Route, used: { readonly cpuMs: number }, times: number) {
    this.#route = route
    this.#used = used
    this.#times = times
  }

  ended(status: number, bytes: number, request: Counted, isAborted: boolean): void {
    const route = this.#route
    route.used = this.#used
    route.ended(status, bytes, request, isAborted)
    route.used = undefined
    const key = isAborted ? -(status || GIVEN_UP) : status
    route.find(key).cpu.add((this.#used.cpuMs / 1000) * this.#times)
  }

  traced(...ids: [traceId: string, spanId: string]): RequestCount {
    return new Traced(this, this.#route, ...ids)
  }

  measured(): RequestCount {
    return this
  }
}

/** A request whose CPU time is measured for those since the last one, unless middleware does. */
class Sample implements RequestCount {
  readonly #route: Route
  readonly #times: number
  #used: CpuTime | undefined
  #hasEnded = false

  constructor(route: Route, times: number) {
    this.#route = route
    this.#times = times
  }

  readonly within = (handle: () => void): void =>
    sampleCpu(
      (used) => {
        this.#used = used
        handle()
      },
      () => !this.#hasEnded,
    )

  ended(status: number, bytes: number, request: Counted, isAborted: boolean): void {
    new Measured(this.#route, this.#used!, this.#times).ended(status, bytes, request, isAborted)
    this.#end()
  }

  traced(...ids: [traceId: string, spanId: string]): RequestCount {
    return new Traced(this, this.#route, ...ids)
  }

  measured(used: { readonly cpuMs: number }): RequestCount {
    this.#end()
    this.#route.addUnmeasured(this.#times - 1)
    return new Measured(this.#route, used, 1)
  }

  #end(): void {
    this.#hasEnded = true
    endCpu(this.#used!)
  }
}

/** Count the requests of this thread from now on. Returns what is called once a second. */
export function countRequests(sheet: Sheet): () => void {
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
    if (!request.aborted) return route.next(request)
    route.ended(0, 0, request, true)
    return undefined
  }
  meters.batchEnded = () => {
    if (batch.hasBegun) batch.end()
  }
  return () => {
    for (const routes of byMethod.values()) for (const route of routes.values()) route.sampleSoon()
  }
}
