/**
 * What is counted agrees with what the callers and clients have seen, under load, kills and reloads: each
 * task and each request has exactly one outcome, whichever thread is asked.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { until } from '../base/wait.test.support.ts'
import { createApp, serve, serverTiming, traceContext, use } from '../http/index.ts'
import { native } from '../native/index.ts'
import { store } from '../store/index.ts'
import { Semaphore } from '../sync/index.ts'
import { zone } from '../zone/index.ts'
import { metrics, metricsText } from './index.ts'
import { type Samples, read, sum } from './reading.test.support.ts'

metrics()

const APP = new URL('./app.test.support.js', import.meta.url)
const now = (): Samples => read(metricsText(), false)
const requests = (samples: Samples, route: string, labels: Readonly<Record<string, string>> = {}): number =>
  sum(samples, 'corespun_http_server_requests_total', { http_route: route, ...labels })

function fine(n: number): number {
  return n + 1
}

function fails(): never {
  throw new Error('on purpose')
}

function endless(): never {
  for (;;);
}

test('each task has one outcome, with workers that die, calls that are refused, and a reload', async () => {
  const own = zone.create('outcomes', { workers: 2, tasksMax: 20, graceMs: 0 })
  const seen = { done: 0, failed: 0, ended: 0, refused: 0 }
  const outcome = async (call: Promise<unknown>): Promise<void> => {
    try {
      await call
      seen.done++
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      if (code === 'ZONE_FULL') seen.refused++
      else if (message === 'on purpose') seen.failed++
      else seen.ended++
    }
  }
  for (let round = 0; round < 4; round++) {
    const aborts = new AbortController()
    const limited = own.with({ signal: aborts.signal })
    const calls: Promise<void>[] = []
    for (let n = 0; n < 12; n++) {
      calls.push(outcome(own.run(fine, n)), outcome(own.run(fails)))
      // Some of them begin, and end with their worker; the others are withdrawn.
      if (n % 4 === 0) calls.push(outcome(limited.run(endless)))
    }
    if (round === 1) calls.push(own.reload())
    setTimeout(() => aborts.abort(), 30)
    await Promise.all(calls)
  }
  const ended = (samples: Samples, outcome?: string): number =>
    sum(samples, 'corespun_zone_tasks_total', {
      corespun_zone: 'outcomes',
      ...(outcome === undefined ? {} : { corespun_outcome: outcome }),
    })
  await until(() => ended(now()) === seen.done + seen.failed + seen.ended)
  const samples = now()
  assert.ok(seen.done > 0 && seen.failed > 0 && seen.ended > 0 && seen.refused > 0, JSON.stringify(seen))
  assert.equal(ended(samples, 'done'), seen.done)
  assert.equal(ended(samples, 'failed'), seen.failed)
  assert.equal(ended(samples, 'died') + ended(samples, 'withdrawn'), seen.ended)
  assert.ok(ended(samples, 'died') > 0)
  const of = { corespun_zone: 'outcomes', code_function_name: 'fine' }
  assert.equal(sum(samples, 'corespun_zone_tasks_total', { ...of, corespun_outcome: 'done' }), seen.done)
  assert.equal(sum(samples, 'corespun_zone_task_duration_seconds_count', of), seen.done)
  assert.equal(sum(samples, 'corespun_zone_task_wait_seconds_count', of), seen.done)
  assert.equal(
    sum(samples, 'corespun_zone_tasks_refused_total', { corespun_zone: 'outcomes', corespun_reason: 'full' }),
    seen.refused,
  )
  const { died } = own.stats()
  assert.equal(ended(samples, 'died'), died)
  await until(
    () =>
      sum(now(), 'corespun_zone_worker_ends_total', {
        corespun_zone: 'outcomes',
        corespun_reason: 'overdue',
      }) > 0,
  )
  await own.close()
})

test('what runs and what waits is shown while it does', async () => {
  const own = zone.create('busy', { workers: 1, graceMs: 0 })
  const aborts = new AbortController()
  const limited = own.with({ signal: aborts.signal })
  const calls = [limited.run(endless), limited.run(endless), limited.run(fine, 1)]
  const of = { corespun_zone: 'busy' }
  await until(() => sum(now(), 'corespun_zone_tasks_running', { ...of, code_function_name: 'endless' }) === 1)
  assert.equal(sum(now(), 'corespun_zone_tasks_waiting', of), 2)
  assert.equal(sum(now(), 'corespun_zone_workers', of), 1)
  aborts.abort()
  await Promise.allSettled(calls)
  await own.close()
})

test('the CPU time of tasks is that of their work', async () => {
  const own = zone.create('work', { workers: 1 })
  // As much on every machine: a time would be less work on a busy one.
  const work = (): number => {
    let sum = 0
    for (let n = 0; n < 2e7; n++) sum = (sum + n * n) % 1_000_003
    return sum
  }
  const idle = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  const begunMs = performance.now()
  for (let n = 0; n < 3; n++) await Promise.all([own.run(work), own.run(idle, 40)])
  const wall = (performance.now() - begunMs) / 1000
  const cpu = (name: string): number =>
    sum(now(), 'corespun_zone_task_cpu_time_seconds_total', {
      corespun_zone: 'work',
      code_function_name: name,
    })
  assert.ok(cpu('work') > 0 && cpu('work') < wall, `${cpu('work')} s of ${wall}`)
  assert.ok(cpu('idle') < cpu('work') / 2, `${cpu('idle')} s of waiting, ${cpu('work')} s of work`)
  await own.close()
})

test('counts outlive their threads, and sheets are as many as threads at a time', async () => {
  const own = zone.create('mortal', { workers: 2 })
  const sheets = (): number => native.sheetsAll().length / 8
  const counted = async (): Promise<void> => {
    const { createApp } = await import('../http/index.ts')
    await createApp({ routes: { '/mortal': () => 'counted' } }).inject('/mortal')
    process.exit(1)
  }
  const isObserved = (): Promise<boolean> =>
    own.run(async () => (await import('../base/index.ts')).meters.request !== undefined)
  await until(isObserved)
  let most = 0
  for (let n = 0; n < 12; n++) {
    await assert.rejects(own.run(counted), { code: 'WORKER_DIED' })
    await until(isObserved)
    await until(() => own.stats().workers === 2)
    if (n === 2) most = sheets()
  }
  assert.ok(sheets() <= most + 2, `${sheets()} sheets, ${most} before`)
  const samples = now()
  assert.ok(requests(samples, '/mortal') > 0)
  assert.equal(
    requests(samples, '/mortal'),
    sum(samples, 'http_server_request_duration_seconds_count', { http_route: '/mortal' }),
  )
  await own.close()
})

test('what workers count that are processes is shown, after their end too', async () => {
  const own = zone.create('apart', { workers: 1, isolation: 'process' })
  const counted = async (): Promise<boolean> => {
    const { createApp } = await import('../http/index.ts')
    const { meters } = await import('../base/index.ts')
    if (meters.request === undefined) return false
    await createApp({ routes: { '/apart': () => 'counted' } }).inject('/apart')
    return true
  }
  await until(() => own.run(counted))
  await until(() => requests(now(), '/apart') === 1)
  const of = { corespun_zone: 'apart' }
  await until(() => sum(now(), 'corespun_zone_task_cpu_time_seconds_total', of) > 0)
  const heap = (): number => sum(now(), 'corespun_thread_heap_used_bytes', { thread_name: 'apart/0' })
  await until(() => heap() > 0)
  await assert.rejects(
    own.run(() => process.exit(1)),
    { code: 'WORKER_DIED' },
  )
  assert.equal(heap(), 0)
  assert.equal(requests(now(), '/apart'), 1)
  await own.close()
})

/** By the paths of requests: has their clients leave. */
const leaving = new Map<string, () => void>()

/** A request, and its status; 0: it got no response. */
function ask(url: string, path: string, method = 'GET'): Promise<number> {
  return new Promise((resolve) => {
    const request = http.request(url + path, { method, agent: false }, (response) => {
      response.resume().once('close', () => resolve(response.statusCode!))
    })
    request.once('error', () => resolve(0)).end()
    leaving.set(path, () => request.socket!.resetAndDestroy())
  })
}

for (const core of ['native', 'node'] as const)
  test(`each request has one status, on the ${core} core`, async () => {
    const before = now()
    const server = await serve({
      port: 0,
      core,
      quiet: true,
      error: () => undefined,
      routes: {
        '/constant': 'constant',
        '/user/:id': ({ params }) => ({ id: params['id'] }),
        '/later': async () => new Response('later', { status: 202 }),
        '/fails': fails,
        '/stream': () => new Response(new Blob(['x'.repeat(1000)]).stream()),
        '/never/:n': ({ url }) => {
          leaving.get(new URL(url).pathname)!()
          return new Promise(() => {})
        },
        '/post': { POST: () => null },
      },
    })
    const asked: Record<string, number> = {}
    const all: Promise<void>[] = []
    const some = (path: string, route: string, method?: string): void => {
      all.push(
        ask(server.url, path, method).then((status) => {
          const key = `${method ?? 'GET'} ${route} ${status === 0 ? '' : status}`
          asked[key] = (asked[key] ?? 0) + 1
        }),
      )
    }
    for (let n = 0; n < 20; n++) {
      some('/constant', '/constant')
      some(`/user/${n}`, '/user/:id')
      some('/user/1', '/user/:id', 'HEAD')
      some('/later', '/later')
      some('/fails', '/fails')
      some('/stream', '/stream')
      some('/missing', '')
      some('/post', '/post')
      if (n % 5 === 0) some(`/never/${n}`, '/never/:n')
    }
    await Promise.all(all)
    await server.close({ timeoutMs: 0 })
    const counted = (samples: Samples): Record<string, number> => {
      const rows: Record<string, number> = {}
      for (const [key, count] of samples) {
        const [, labels] = /^corespun_http_server_requests_total\{(.*)\}$/.exec(key) ?? []
        if (labels === undefined) continue
        const label = (name: string): string => new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? ''
        const status = label('http_response_status_code')
        const row = `${label('http_request_method')} ${label('http_route')} ${status}`
        rows[row] = (rows[row] ?? 0) + count
      }
      return rows
    }
    const earlier = counted(before)
    const difference = (): Record<string, number> =>
      Object.fromEntries(
        Object.entries(counted(now()))
          .map(([row, count]) => [row, count - (earlier[row] ?? 0)] as const)
          .filter(([, count]) => count > 0),
      )
    await until(() => Object.keys(difference()).length >= Object.keys(asked).length)
    assert.deepEqual(difference(), asked)
    const samples = now()
    assert.equal(sum(samples, 'http_server_active_requests'), 0)
    assert.ok(sum(samples, 'http_server_response_body_size_bytes_sum', { http_route: '/stream' }) >= 20_000)
  })

test('all threads of a server return the same figures, and those of workers that were replaced', async () => {
  const own = zone.create('served', { workers: 2, closeMs: 1000 })
  const server = await serve({ zone: own, app: APP, host: '127.0.0.1', port: 0, quiet: true, core: 'native' })
  let asked = 0
  for (let n = 0; n < 200; n++) {
    if ((await ask(server.url, '/counted')) === 200) asked++
    if (n === 100) await own.reload()
  }
  // A connection for each, since a worker that leaves closes its own.
  const shown = async (): Promise<number> => {
    const headers = { accept: 'application/openmetrics-text' }
    const [response] = await once(http.get(`${server.url}/metrics`, { agent: false, headers }), 'response')
    return requests(read(await text(response), true), '/counted')
  }
  for (let n = 0; n < 8; n++) assert.equal(await shown(), asked)
  assert.equal(requests(now(), '/counted'), asked)
  await until(() => sum(now(), 'corespun_thread_cpu_time_seconds_total', { thread_name: 'served/1' }) > 0)
  await server.close({ timeoutMs: 0 })
  await own.close()
})

test('refusals, stores, locks and threads have their figures', async () => {
  const server = await serve({ port: 0, quiet: true, routes: { '/': 'Hello' } })
  const socket = http.request(server.url, { agent: false }).once('error', () => {})
  socket.on('socket', (raw) => raw.write('NONSENSE\r\n\r\n'))
  socket.flushHeaders()
  const shop = store.create<number>('shop')
  shop.set('a', 1)
  shop.get('a')
  shop.get('b')
  const permits = Semaphore.create('permits of a test', { permits: 2 })
  await until(() => sum(now(), 'corespun_http_server_refusals_total', { corespun_refusal: 'request' }) > 0)
  await until(() => sum(now(), 'nodejs_eventloop_time_seconds_total', { thread_name: 'main' }) > 0)
  const samples = now()
  assert.equal(sum(samples, 'corespun_store_entries', { corespun_store: 'shop' }), 1)
  assert.equal(
    sum(samples, 'corespun_store_reads_total', { corespun_store: 'shop', corespun_outcome: 'hit' }),
    1,
  )
  assert.equal(
    sum(samples, 'corespun_store_reads_total', { corespun_store: 'shop', corespun_outcome: 'miss' }),
    1,
  )
  assert.equal(
    sum(samples, 'corespun_lock_free', {
      corespun_lock: 'permits of a test',
      corespun_lock_kind: 'semaphore',
    }),
    2,
  )
  assert.ok(sum(samples, 'process_memory_usage_bytes') > 1e6)
  assert.ok(sum(samples, 'corespun_thread_heap_used_bytes', { thread_name: 'main' }) > 1e5)
  permits[Symbol.dispose]()
  shop.close()
  socket.destroy()
  await server.close({ timeoutMs: 0 })
})

test('a client gets the format that it asks for, and names are escaped', async () => {
  const app = createApp({ routes: { '/metrics': metrics() } })
  const odd = store.create('a"\\\nb')
  const plain = await app.inject('/metrics')
  assert.match(plain.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  const samples = read(await plain.text(), false)
  assert.equal(samples.get(String.raw`corespun_store_entries{corespun_store="a\"\\\nb"}`), 0)
  odd.close()
  const open = await app.inject('/metrics', {
    headers: { accept: 'application/openmetrics-text; version=1.0.0' },
  })
  assert.match(open.headers.get('content-type') ?? '', /^application\/openmetrics-text/)
  read(await open.text(), true)
})

test('what was traced is an exemplar of its bucket, in OpenMetrics', async () => {
  const app = createApp({
    routes: use({ '/traced': () => 'traced', '/metrics': metrics() }, traceContext(), serverTiming()),
  })
  const ids = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
  await app.inject('/traced', { headers: { traceparent: `00-${ids.join('-')}-01` } })
  // It was not sampled, so nobody can look at it.
  await app.inject('/traced', { headers: { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-00` } })
  const open = metricsText('openmetrics')
  read(open, true)
  const line = open.split('\n').filter((each) => each.includes('trace_id') && each.includes('/traced'))
  assert.equal(line.length, 1)
  assert.match(
    line[0],
    /_bucket\{.*"\/traced".*\} \d # \{trace_id="0af7\w+319c",span_id="b7ad\w+3331"\} [\d.]+ [\d.]+$/,
  )
  assert.ok(!metricsText().includes('trace_id'))
  const cpu = sum(now(), 'corespun_http_server_request_cpu_time_seconds_total', { http_route: '/traced' })
  assert.ok(cpu > 0 && cpu < 1, `${cpu} s`)
})

test('a store with a file counts what the file has received', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-metrics-'))
  const filed = store.create<number>('filed', { file: join(folder, 'file') })
  const syncs = (): number => sum(now(), 'corespun_store_syncs_total', { corespun_store: 'filed' })
  assert.equal(syncs(), 0)
  filed.set('a', 1)
  await filed.flush()
  assert.equal(syncs(), 1)
  filed.close()
  rmSync(folder, { recursive: true })
})

test('what a worker that is a process had begun has died with it', async () => {
  const own = zone.create('short-lived', { workers: 1, isolation: 'process' })
  const begin = async (): Promise<boolean> => {
    const { createApp } = await import('../http/index.ts')
    const { meters } = await import('../base/index.ts')
    if (meters.request === undefined) return false
    void createApp({ routes: { '/unended': () => new Promise(() => {}) } }).inject('/unended')
    return true
  }
  await until(() => own.run(begin))
  const active = (): number => sum(now(), 'http_server_active_requests', { http_route: '/unended' })
  await until(() => active() === 1)
  await assert.rejects(
    own.run(() => process.exit(1)),
    { code: 'WORKER_DIED' },
  )
  await until(() => active() === 0)
  assert.equal(requests(now(), '/unended', { error_type: 'died' }), 1)
  await own.close()
})
