/**
 * Counts the requests of this thread by route and status.
 *
 * A request is counted once, when its response is complete or given up; one whose client has left before the
 * response has no status. The series of a route are looked up once for each status.
 */
import { type RequestCount, meters } from '../base/index.ts'
import type { Series, Sheet } from './sheet.ts'

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

/** The series of one status of a route. */
interface Ended {
  readonly count: Series
  readonly seconds: Series
  readonly bytes: Series
}

class Route {
  readonly active: Series
  readonly isHead: boolean
  readonly #sheet: Sheet
  readonly #labels: readonly [method: string, route: string]
  readonly #ended = new Map<number, Ended>()

  constructor(sheet: Sheet, method: string, route: string) {
    this.#sheet = sheet
    this.#labels = [method, route]
    this.isHead = method === 'HEAD'
    this.active = sheet.series('activeRequests', method, route)
  }

  /** @param status Below 0: of a response that was given up. */
  ended(status: number): Ended {
    return this.#ended.get(status) ?? this.#first(status)
  }

  #first(status: number): Ended {
    const shown = Math.abs(status) === GIVEN_UP ? '' : Math.abs(status)
    const error = status < 0 ? 'aborted' : status >= 500 ? `${status}` : ''
    const values = [...this.#labels, shown, error]
    const ended = {
      count: this.#sheet.series('requests', ...values),
      seconds: this.#sheet.series('requestSeconds', ...values),
      bytes: this.#sheet.series('bodyBytes', ...values),
    }
    this.#ended.set(status, ended)
    return ended
  }
}

/** Instead of a status: it was given up before it had one. */
const GIVEN_UP = 1

class Counting implements RequestCount {
  status = 0
  bytes = 0
  readonly #route: Route
  readonly #begunMs = performance.now()

  constructor(route: Route) {
    this.#route = route
    route.active.add(1)
  }

  ended(isAborted: boolean): void {
    const route = this.#route
    const { status } = this
    route.active.add(-1)
    const { count, seconds, bytes } = route.ended(isAborted ? -(status || GIVEN_UP) : status)
    count.add(1)
    seconds.record((performance.now() - this.#begunMs) / 1000)
    bytes.record(route.isHead ? 0 : this.bytes)
  }
}

/** Count the requests of this thread from now on. */
export function countRequests(sheet: Sheet): void {
  const byMethod = new Map<string, Map<string | undefined, Route>>()
  const routeOf = (method: string, route: string | undefined): Route => {
    // Of any text that a client sends the first of a kind would have a series.
    const known = METHODS.has(method) ? method : '_OTHER'
    let routes = byMethod.get(known)
    if (routes === undefined) byMethod.set(known, (routes = new Map()))
    let found = routes.get(route)
    if (found === undefined) routes.set(route, (found = new Route(sheet, known, route ?? '')))
    return found
  }
  meters.request = (method, route) => new Counting(byMethod.get(method)?.get(route) ?? routeOf(method, route))
}
