/**
 * `dashboard()`: what `corespun top` shows, as a page that a server has on a route.
 *
 * One document without anything from elsewhere. It asks for snapshots by the same URL, and any thread of the
 * process can respond. Who may see it is decided by the middleware before it.
 */
import type { Handler, HttpRequest } from '../../http/index.ts'
import { type Kind, flag, isPlainObject, messageOf, oneLine, optionsOf, refuser } from '../../base/index.ts'
import { connectedThreads, startMetrics } from '../../metrics/internal.ts'
import { ObserveError } from '../errors.ts'
import {
  FLEETS,
  type ObservedFleet,
  RecentLook,
  lookAt,
  lookConnected,
  retryConnected,
  retryJob,
} from '../figures/fleets.ts'
import { type ObservedRuns, RUNS, lookAtRuns } from '../figures/runs.ts'
import { nameOf } from '../sockets.ts'

/** Options of {@link dashboard}. */
export interface DashboardOptions {
  /** How the page calls the process. Default: the file that it runs, without its ending. */
  readonly name?: string
  /** Connections whose hosts, queues and dead jobs are shown. Default: those of all threads. */
  readonly fleets?: readonly ObservedFleet[]
  /** Durable runs that are shown, with their steps as a time line. Default: none. */
  readonly runs?: readonly ObservedRuns[]
  /** Whether the page has a button that runs a dead job again. Default: false. */
  readonly control?: boolean
}

const wrong = refuser((facts) => new ObserveError('OBSERVE_ARGUMENT', facts))
const NAME: Kind<string | undefined> = {
  expected: 'a string of 1 to 100 characters',
  accepts: (name) => typeof name === 'string' && name.length >= 1 && name.length <= 100,
  default: undefined,
}
/** Of each response. */
const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}
const JSON_TYPE = 'application/json; charset=utf-8'

/**
 * A handler that responds with a page about this process, all of its threads, and its fleets: what runs,
 * queues, functions, routes, stores, what was refused, dead jobs with their errors, durable runs with their
 * steps. It is the route for all methods: GET has the page, GET with `?snapshot` the figures as JSON, POST
 * runs a dead job anew.
 *
 * Everyone who reaches the route sees it, so put authentication before it. The call starts metrics, as
 * `startMetrics()` of corespun/metrics does.
 * @param options.control Without it the page has no buttons, and POST is refused. Requests that a page of
 *   another origin causes are refused, by `Sec-Fetch-Site` or `Origin`.
 * @throws {ObserveError} `OBSERVE_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { createApp } from 'corespun/http'
 * import { dashboard } from 'corespun/observe'
 *
 * const app = createApp({ routes: { '/dashboard': dashboard() } })
 * const page = await app.inject('/dashboard')
 * assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'/)
 * const snapshot = await app.inject('/dashboard?snapshot')
 * const { routes } = JSON.parse(await snapshot.text())
 * assert.equal(routes[0].route, '/dashboard')
 * ```
 */
export function dashboard(options?: DashboardOptions): Handler {
  const kinds = { name: NAME, fleets: FLEETS, runs: RUNS, control: flag(false) }
  const {
    name = nameOf(process.argv[1] ?? '', 'node'),
    fleets,
    runs,
    control,
  } = optionsOf(options, kinds, wrong, 'dashboard()')
  startMetrics()
  const isConnected = (): boolean => (fleets ?? connectedThreads()).length > 0
  const recent = new RecentLook(fleets === undefined ? lookConnected : () => lookAt(fleets))
  const snapshot = async (url: string): Promise<string> => {
    const { snapshotOf } = await import('../figures/snapshot.ts')
    // The page adds its own parameters behind those of its URL.
    const asked = new URLSearchParams(url.slice(url.indexOf('?')))
    const [definition, key] = ['runs', 'run'].map((parameter) => asked.getAll(parameter).at(-1))
    const looked = runs.length > 0 ? lookAtRuns(runs, definition, key) : undefined
    const hasFleets = isConnected()
    const actions = control && hasFleets ? ['retry'] : []
    const [fleet, open] = await Promise.all([hasFleets ? recent.read() : undefined, looked])
    return JSON.stringify({ ...snapshotOf({ name, actions }), fleet, runs: open })
  }
  return async (request) => {
    const { Response } = await import('../../http/index.ts')
    const respond = (status: number, body: string, headers: Readonly<Record<string, string>>) =>
      new Response(body, { status, headers: { ...HEADERS, ...headers } })
    const json = (status: number, value: object) =>
      respond(status, JSON.stringify(value), { 'content-type': JSON_TYPE })
    if (request.method === 'GET' || request.method === 'HEAD') {
      if (/\?(?:.*&)?snapshot(?:[=&]|$)/.test(request.url))
        return respond(200, await snapshot(request.url), { 'content-type': JSON_TYPE })
      const { html, policy } = await (await import('./page.ts')).pageOf()
      return respond(200, html, {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': policy,
      })
    }
    if (request.method !== 'POST')
      return respond(405, '', { allow: control ? 'GET, HEAD, POST' : 'GET, HEAD' })
    if (!control || !isConnected())
      return json(403, { error: 'this dashboard changes nothing: see its option control' })
    if (!isOfThisOrigin(request)) return json(403, { error: 'the request does not come from this page' })
    const asked = await asJob(request)
    if (asked === undefined) return json(400, { error: 'expected {"action":"retry","zone":"…","key":"…"}' })
    try {
      const { zone, key } = asked
      const done = await (fleets ? retryJob(fleets, zone, key) : retryConnected(zone, key))
      return json(200, { done })
    } catch (error) {
      return json(502, { error: oneLine(messageOf(error)) })
    }
  }
}

/**
 * Whether the page itself has caused the request: browsers state so, and no page can set these headers.
 * Where they send no `Sec-Fetch-Site`, since the page has no https, they send `Origin` with each POST.
 */
function isOfThisOrigin({ headers }: HttpRequest): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  const origin = headers.get('origin')
  return origin !== null && URL.canParse(origin) && new URL(origin).host === headers.get('host')
}

async function asJob(request: HttpRequest): Promise<{ zone: string; key: string } | undefined> {
  if (request.headers.get('content-type') !== 'application/json') return undefined
  const value: unknown = await request.json().catch(() => undefined)
  if (!isPlainObject(value)) return undefined
  const { action, zone, key } = value
  return action === 'retry' && typeof zone === 'string' && typeof key === 'string' ? { zone, key } : undefined
}
