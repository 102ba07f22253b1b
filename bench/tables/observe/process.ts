/**
 * The process of table `observe`: empty calls with or without metrics, and the figures of a large program.
 *
 * All answers are checked: those of the calls, and that the text contains what was counted.
 */
import { once } from 'node:events'
import { Session } from 'node:inspector'
import { Worker } from 'node:worker_threads'
import { createApp, serve } from 'corespun/http'
import { zone } from 'corespun/zone'
import { checkAnswer } from '../../harness/errors.ts'
import { serveOrders } from '../../harness/orders.ts'
import { summary } from '../../harness/stats.ts'

/** Bursts of empty calls to one worker. */
export interface Calls {
  readonly what: 'calls'
  readonly isObserved: boolean
  readonly calls: number
  readonly bursts: number
}

/** Figures of a program with so many routes, zones and functions in each zone. */
export interface Scrapes {
  readonly what: 'scrapes'
  readonly routes: number
  readonly zones: number
  readonly functions: number
  readonly scrapes: number
}

/** What a scrape takes, ms of CPU: of the thread that responds, and of the worker that it takes most of. */
export interface Scraped {
  readonly ms: number
  /** `undefined`: the system has no such figure. */
  readonly otherMs: number | undefined
}

/** What a program loads that has zones and an app and imports nothing that looks at them. */
export interface Unused {
  readonly what: 'unused'
}

serveOrders((order: Calls | Scrapes | Unused) => {
  if (order.what === 'unused') return unused()
  return order.what === 'calls' ? calls(order) : scrapes(order)
})

/** How many modules of corespun/metrics, corespun/observe and corespun/telemetry are loaded. */
async function unused(): Promise<number> {
  const own = zone.create('unused', { workers: 1 })
  check('a call', await own.run((n: number) => n, 1), 1)
  check('a response', await (await createApp({ routes: { '/': 'text' } }).inject('/')).text(), 'text')
  const before = loaded()
  await observed()
  const after = loaded()
  check('whether a module is noticed', after > before, true)
  await own.close()
  return before
}

function loaded(): number {
  const session = new Session()
  session.connect()
  let count = 0
  session.on('Debugger.scriptParsed', ({ params: { url } }) => {
    if (/\/lib\/(chunks\/)?(metrics|observe|telemetry)[^/]*(\/.*)?\.js$/.test(url)) count += 1
  })
  session.post('Debugger.enable')
  session.disconnect()
  return count
}

/** CPU of both threads and time of a call, ns. */
async function calls(order: Calls): Promise<{ ns: number; cpuNs: number }> {
  if (order.isObserved) await observed()
  const own = zone.create('observe', { workers: 1, tasksMax: order.calls + 10 })
  const burst = async (): Promise<{ ns: number; cpuNs: number }> => {
    const [begunMs, cpu] = [performance.now(), process.cpuUsage()]
    const answers: Promise<number>[] = []
    for (let call = 0; call < order.calls; call += 1) answers.push(own.run((n: number) => n, call))
    let sum = 0
    for (const answer of answers) sum += await answer
    const { user, system } = process.cpuUsage(cpu)
    const ns = ((performance.now() - begunMs) * 1e6) / order.calls
    check('a burst of calls', sum, (order.calls * (order.calls - 1)) / 2)
    return { ns, cpuNs: ((user + system) * 1000) / order.calls }
  }
  await burst()
  await burst()
  const found: Awaited<ReturnType<typeof burst>>[] = []
  while (found.length < order.bursts) found.push(await burst())
  await own.close()
  const median = (figure: 'ns' | 'cpuNs'): number => summary(found.map((one) => one[figure])).median
  return { ns: median('ns'), cpuNs: median('cpuNs') }
}

/** All that a program can turn on. */
async function observed(): Promise<void> {
  const [{ startMetrics }, { observe }] = await Promise.all([
    import('corespun/metrics'),
    import('corespun/observe'),
  ])
  startMetrics()
  await observe()
}

async function scrapes({ routes, zones, functions, scrapes }: Scrapes): Promise<Scraped> {
  const { metrics } = await import('corespun/metrics')
  const paths = Array.from({ length: routes }, (_, route) => `/route/${route}`)
  const own = Object.fromEntries(paths.map((path) => [path, () => path]))
  const server = await serve({ host: '127.0.0.1', port: 0, routes: { ...own, '/metrics': metrics() } })
  const fetched = clientOf(`http://127.0.0.1:${server.port}`)
  for (const path of paths) check('a response', (await fetched(path)).toString(), path)
  const all = Array.from({ length: zones }, (_, at) => zone.create(`zone ${at}`, { workers: 1 }))
  for (const each of all)
    for (let number = 0; number < functions; number += 1) {
      // A call site of its own each, as in a large program.
      const named = new Function(`return function f${number}() { return ${number} }`)() as () => number
      check('a call', await each.run(named), number)
    }
  const before = await Promise.all(all.map((each) => each.run(threadNs)))
  const between = await Promise.all(all.map((each) => each.run(threadNs)))
  const clock = threadNs() < 0 ? () => performance.now() * 1e6 : threadNs
  let [ns, late] = [0, 0]
  for (let scrape = 0; scrape < scrapes; scrape += 1) {
    const begunNs = clock()
    const bytes = await fetched('/metrics')
    // The system counts a thread's time by the tick, so one scrape is too short to be measured.
    if (scrape >= scrapes / 2) [ns, late] = [ns + clock() - begunNs, late + 1]
    const text = bytes.toString()
    const tasks = text.match(/^corespun_zone_tasks_total\{.*code_function_name="f\d+".*"done"\} 1$/gm) ?? []
    check('the functions in the text', tasks.length, zones * functions)
    const counted = text.match(/^corespun_http_server_requests_total\{.*http_route="\/route\//gm) ?? []
    check('the routes in the text', counted.length, routes)
  }
  const after = await Promise.all(all.map((each) => each.run(threadNs)))
  await Promise.all([...all.map((each) => each.close()), server.close(), fetched('')])
  const ms = ns / late / 1e6
  const others = after.map((ns, at) => {
    const asking = between[at] - before[at]
    return Math.max(0, ns - between[at] - asking) / scrapes / 1e6
  })
  return { ms, otherMs: after.includes(-1) ? undefined : Math.max(...others) }
}

/** A client in a thread of its own, which ends with the path ''. */
function clientOf(url: string): (path: string) => Promise<Buffer> {
  const client = new Worker(
    `const { parentPort } = require('node:worker_threads')
    parentPort.on('message', async (path) => {
      const bytes = path === '' ? new ArrayBuffer() : await (await fetch('${url}' + path)).arrayBuffer()
      parentPort.postMessage(bytes, [bytes])
      if (path === '') parentPort.close()
    })`,
    { eval: true },
  )
  return async (path) => {
    client.postMessage(path)
    const [bytes] = (await once(client, 'message')) as [ArrayBuffer]
    return Buffer.from(bytes)
  }
}

/** CPU time of the calling thread, ns, as Linux counts it; -1 elsewhere. */
function threadNs(): number {
  const { readFileSync, existsSync } = process.getBuiltinModule('node:fs')
  const path = '/proc/thread-self/schedstat'
  return existsSync(path) ? Number(readFileSync(path, 'utf8').split(' ')[0]) : -1
}

function check(work: string, got: unknown, expected: unknown): void {
  checkAnswer({ contender: 'corespun', work, got, expected })
}
