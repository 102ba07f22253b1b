/**
 * The service: the pipeline behind a page for people and an API for programs, on every core.
 *
 *   npx corespun serve examples/service/app.ts --port 8080
 *
 * Each worker of `corespun serve` runs this module. The workers share scores, history and counts in stores;
 * expensive work runs in a zone (heavy.ts), so a worker that serves is never busy for long.
 */
import { readFileSync } from 'node:fs'
import { threadId } from 'node:worker_threads'
import {
  bodyLimit,
  events,
  files,
  readForm,
  type HttpRequest,
  type Middleware,
  rateLimit,
  requestId,
  type ServerEvent,
  StatusError,
  use,
} from 'corespun/http'
import { store } from 'corespun/store'
import { cancelled, code, heavyZone, plan, scoreOf, scores, warmUp } from './heavy.ts'

/** Limit of a text and of a file. */
const TEXT_BYTES_MAX = 1024 * 1024
/** A form or JSON sends each line end as two characters. */
const SENT_BYTES_MAX = 2 * TEXT_BYTES_MAX
/** Limit of the rest of a body: the framing of a form, other fields. */
const FRAME_BYTES_MAX = 64 * 1024
const FORM_LIMITS = { fieldCharsMax: SENT_BYTES_MAX, fileBytesMax: TEXT_BYTES_MAX }
const FORMS = ['multipart/form-data', 'application/x-www-form-urlencoded']
const NAME_CHARS_MAX = 200
const TIMEOUT_MS = 5000
const HISTORY_MAX = 50
const LIVE_MS = 1000

/** One line of the history. */
interface Done {
  readonly at: string
  readonly name: string
  readonly grade: string
  readonly maintainability: number | null
  readonly ms: number
  readonly cached: boolean
}

const history = store.getOrCreate<readonly Done[]>('service.history')
const requests = store.getOrCreate<number>('service.requests')
const closing = new AbortController()
const report = new URL('../../bench/dist/report/report.html', import.meta.url)
const noReport = new URL('./page/no-report.html', import.meta.url)

const SECURE = {
  'content-security-policy': "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
  'referrer-policy': 'no-referrer',
}
const page = files(new URL('./page/', import.meta.url), { headers: SECURE })

const counted: Middleware = (_, next) => {
  requests.increment(String(threadId))
  return next()
}

/** Read the text to score from JSON, a form with a file or a text, or a plain body. */
async function readInput(request: HttpRequest): Promise<{ name: string; text: string; timeoutMs: number }> {
  const type = (request.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  let [name, text, limit]: unknown[] = [new URL(request.url).searchParams.get('name'), undefined, undefined]
  if (type === 'application/json') {
    const body: unknown = await request.json()
    if (body === null || typeof body !== 'object') throw bad('the body must be {"text": "..."}')
    ;({ name, text, timeoutMs: limit } = body as Record<string, unknown>)
  } else if (FORMS.includes(type)) {
    const { fields, files } = await readForm(request, FORM_LIMITS)
    // Without a chosen file, browsers send a part with an empty name, which readForm leaves out.
    const file = files['file']
    if (file?.size === 0) throw bad(`the file ${file.name} is empty`)
    text = file !== undefined ? await file.text() : fields['text']?.replaceAll('\r\n', '\n')
    name = file !== undefined ? file.name : fields['name']
    limit = fields['timeoutMs'] === undefined || fields['timeoutMs'] === '' ? undefined : +fields['timeoutMs']
  } else text = await request.text()
  if (typeof text !== 'string' || text === '') throw bad('there is no text to score')
  if (Buffer.byteLength(text) > TEXT_BYTES_MAX)
    throw new StatusError(413, 'the text is longer than 1 MiB', { code: 'BODY_TOO_LARGE' })
  const label = typeof name === 'string' && name !== '' ? name.slice(0, NAME_CHARS_MAX) : 'pasted.js'
  const timeoutMs = limit ?? TIMEOUT_MS
  const isWhole = typeof timeoutMs === 'number' && Number.isInteger(timeoutMs)
  if (!isWhole || timeoutMs < 1 || timeoutMs > TIMEOUT_MS)
    throw bad(`timeoutMs must be a whole number from 1 to ${TIMEOUT_MS}`)
  return { name: label, text, timeoutMs }
}

function bad(reason: string): StatusError {
  return new StatusError(400, reason, { code: 'BAD_INPUT' })
}

async function score(request: HttpRequest): Promise<object> {
  const { name, text, timeoutMs } = await readInput(request)
  const scored = await scoreOf(name, text, { timeoutMs, client: request.signal })
  const { score, cached } = scored
  const ms = Math.round(scored.ms * 100) / 100
  const [grade, maintainability] = score.parsed ? [score.grade, score.maintainability] : ['–', null]
  const done: Done = { at: new Date().toISOString(), name, grade, maintainability, ms, cached }
  history.update('all', (old = []) => [done, ...old].slice(0, HISTORY_MAX))
  return { score, cached, ms, worker: threadId }
}

/** The current numbers of all workers. */
function stats(): object {
  const zone = heavyZone()
  return {
    zone: { name: zone.id, ...zone.stats() },
    store: { name: scores.id, ...scores.stats() },
    requests: Object.fromEntries(requests),
    cancelled: { late: cancelled.get('late') ?? 0, disconnected: cancelled.get('disconnected') ?? 0 },
    worker: threadId,
    memoryMb: Math.round(process.memoryUsage.rss() / 2 ** 20),
    plan: plan(),
  }
}

/** Send the numbers every second, and the history at first and after each change. */
async function* live(signal: AbortSignal): AsyncGenerator<ServerEvent> {
  let sent: string | undefined
  while (!signal.aborted) {
    yield { event: 'stats', data: stats(), retryMs: 1000 }
    const all = JSON.stringify(history.get('all') ?? [])
    if (all !== sent) yield { event: 'history', data: all }
    sent = all
    await new Promise((resolve) => setTimeout(resolve, LIVE_MS))
  }
}

/** The report if it was built, else a page that explains how to build it. */
function showReport(): Response {
  const type = { 'content-type': 'text/html;charset=UTF-8' }
  try {
    return new Response(readFileSync(report, 'utf8'), { headers: type })
  } catch {
    return new Response(readFileSync(noReport), { status: 404, headers: { ...type, ...SECURE } })
  }
}

// If this fails, the first request that needs the zone reports the error.
warmUp().catch(() => {})

const api = {
  '/api/score': { POST: score },
  '/api/history': { GET: () => history.get('all') ?? [] },
  '/api/stats': { GET: stats },
  '/api/plan': { GET: plan },
  '/api/code': { GET: code },
  '/api/events': { GET: () => events(live, { signal: closing.signal }) },
}
const bodyBytesMax = SENT_BYTES_MAX + FRAME_BYTES_MAX
const limits = [requestId(), counted, rateLimit({ requestsMax: 6000 }), bodyLimit(bodyBytesMax)]

export default {
  routes: {
    ...use(api, ...limits),
    ...use({ '/report': { GET: showReport }, '/': page, '/page/*': page }, requestId(), counted),
    '/hello': 'hello',
  },
  close: () => closing.abort(),
}
