/**
 * Static files and streamed responses: a table of conditions and ranges, and paths that try to leave the
 * folder.
 */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { rename, symlink, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { pathToFileURL } from 'node:url'
import { runInNewContext } from 'node:vm'
import { until } from '../../base/wait.test.support.ts'
import { onServer } from '../cores.test.support.ts'
import { connect } from '../raw.test.support.ts'
import { events, ndjson, chunks } from '../app/events.ts'
import { files } from './files.ts'
import type { HttpError } from '../errors.ts'
import { decide } from './ranges.ts'
import { jsonErrors } from '../app/status-error.ts'

const top = mkdtempSync(join(tmpdir(), 'corespun-files-'))
after(() => rmSync(top, { recursive: true }))
const folder = join(top, 'public')
mkdirSync(join(folder, 'sub'), { recursive: true })
mkdirSync(join(folder, '.git'))
writeFileSync(join(top, 'secret.txt'), 'secret')
writeFileSync(join(folder, 'a.txt'), '0123456789')
writeFileSync(join(folder, '.env'), 'secret')
writeFileSync(join(folder, '.git', 'config'), 'secret')
writeFileSync(join(folder, 'sub', 'index.html'), '<p>')
writeFileSync(join(folder, 'ä b.css'), 'p {}')
writeFileSync(join(folder, 'large.bin'), Buffer.alloc(300_000, 7))
symlinkSync(join(top, 'secret.txt'), join(folder, 'link.txt'))
symlinkSync(join(folder, '.env'), join(folder, 'env.txt'))
symlinkSync(join(folder, 'a.txt'), join(folder, 'inside.txt'))
utimesSync(join(folder, 'a.txt'), 1_700_000_000, 1_700_000_000)

/** With the path as it is written: `fetch` would tidy it up. */
function rawGet(port: number, path: string): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const request = http.request({ port, host: '127.0.0.1', path, agent: false }, (response) => {
      let text = ''
      response.setEncoding('latin1').on('data', (piece: string) => (text += piece))
      response.on('end', () => resolve([response.statusCode!, text]))
    })
    request.on('error', reject).end()
  })
}

onServer('files: what is there, what is not, and nothing outside', async (start) => {
  const server = await start({
    routes: { '/f/*': files(folder), '/': files(folder) },
    error: jsonErrors(),
  })
  const seen = async (path: string): Promise<unknown> => {
    const [status, text] = await rawGet(server.port, path)
    return status === 200 ? text : status
  }
  assert.equal(await seen('/f/a.txt'), '0123456789')
  assert.equal(await seen('/f/sub/'), '<p>')
  assert.equal(await seen('/f/sub'), 301)
  assert.equal(await seen('/f/%C3%A4%20b.css'), 'p {}')
  assert.equal(await seen('/f/inside.txt'), '0123456789')
  assert.equal(await seen('/f/large.bin'), '\x07'.repeat(300_000))
  const refused = [
    ...['/f/', '/', '/f/nothing', '/f/a.txt/', '/f/a.txt/x', '/f/.env', '/f/.git/config', '/f/sub/.hidden'],
    ...['/f/link.txt', '/f/env.txt', '/f/%2e%2e/secret.txt', '/f/..%2fsecret.txt', '/f/..%5csecret.txt'],
    ...['/f/%00', '/f/a.txt%00.html', '/f//etc/passwd', '/f/%2fetc/passwd', `/f/${'x'.repeat(300)}`],
  ]
  for (const path of refused) assert.equal(await seen(path), 404, path)
  assert.notEqual((await rawGet(server.port, '/f/../../secret.txt'))[1], 'secret')
  assert.equal((await fetch(`${server.url}/f/a.txt`, { method: 'POST' })).status, 405)
})

onServer('files: the last name of the pattern is the path, whatever precedes it', async (start) => {
  const server = await start({ routes: { '/t/:tenant/*': files(folder), '/v/:a/:b/*rest': files(folder) } })
  const seen = async (path: string): Promise<[number, string]> => rawGet(server.port, path)
  assert.deepEqual(await seen('/t/acme/a.txt'), [200, '0123456789'])
  assert.deepEqual(await seen('/v/a.txt/large.bin/sub/index.html'), [200, '<p>'])
  assert.equal((await seen('/t/a.txt/zzz'))[0], 404)
})

test('files: a folder that cannot be served is refused before the first request, by its name', () => {
  const table: [string | URL, string][] = [
    [join(top, 'none'), 'it does not exist'],
    [join(folder, 'a.txt', 'sub'), ''],
    [join(folder, 'a.txt'), 'it is not a folder'],
    [`${folder}\0`, 'null bytes'],
  ]
  for (const [given, reason] of table)
    assert.throws(
      () => files(given),
      (error: HttpError<'HTTP_FILES_FOLDER'>) =>
        error.code === 'HTTP_FILES_FOLDER' &&
        error.facts.folder === given &&
        error.facts.reason.includes(reason),
    )
  files(pathToFileURL(folder))
})

test('files: a link that changes all the time never shows what lies outside', async () => {
  const [outside, inside, name] = [join(top, 'secret.txt'), join(folder, 'a.txt'), join(folder, 'turns.txt')]
  const read = files(folder)
  const seen = async (path: string): Promise<string> => {
    const request = { method: 'GET', params: { '*': path }, headers: new Headers() }
    try {
      return await (await read(request as never)).text()
    } catch (error) {
      assert.equal((error as { status?: number }).status, 404)
      return 'none'
    }
  }
  let isOver = false
  const turn = async (): Promise<void> => {
    for (let turned = 0; !isOver; turned += 1) {
      await symlink(turned % 2 === 0 ? outside : inside, `${name}.new`)
      await rename(`${name}.new`, name)
      await writeFile(join(folder, 'deployed.new'), 'whole')
      await rename(join(folder, 'deployed.new'), join(folder, 'deployed.txt'))
    }
  }
  symlinkSync(inside, name)
  writeFileSync(join(folder, 'deployed.txt'), 'whole')
  const turning = turn()
  const found = new Set<string>()
  for (let asked = 0; asked < 1500; asked += 1) found.add(await seen('turns.txt'))
  const deployed = new Set<string>()
  for (let asked = 0; asked < 300; asked += 1) deployed.add(await seen('deployed.txt'))
  isOver = true
  await turning
  assert.ok(!found.has('secret'), 'a file outside was shown')
  assert.ok(found.has('0123456789'))
  assert.ok(deployed.has('whole'))
})

onServer('files: HEAD, ranges and conditions', async (start) => {
  const server = await start({
    routes: { '/*': files(folder, { cacheControl: 'max-age=9' }) },
  })
  const get = (headers: Record<string, string>, method = 'GET'): Promise<Response> =>
    fetch(`${server.url}/a.txt`, { headers, method })
  const first = await get({})
  const named = ['content-type', 'content-length', 'last-modified', 'cache-control', 'accept-ranges']
  assert.deepEqual(
    named.map((name) => first.headers.get(name)),
    ['text/plain;charset=UTF-8', '10', 'Tue, 14 Nov 2023 22:13:20 GMT', 'max-age=9', 'bytes'],
  )
  await first.text()
  const head = await get({}, 'HEAD')
  assert.deepEqual([head.headers.get('content-length'), await head.text()], ['10', ''])
  const part = await get({ range: 'bytes=2-4' })
  assert.deepEqual(
    [part.status, part.headers.get('content-range'), await part.text()],
    [206, 'bytes 2-4/10', '234'],
  )
  const none = await get({ range: 'bytes=10-' })
  assert.deepEqual([none.status, none.headers.get('content-range')], [416, 'bytes */10'])
  const same = await get({ 'if-none-match': first.headers.get('etag')! })
  assert.deepEqual([same.status, same.headers.get('etag')], [304, first.headers.get('etag')])
  const large = await fetch(`${server.url}/large.bin`, {
    headers: { range: 'bytes=-200000' },
  })
  assert.deepEqual([large.status, (await large.arrayBuffer()).byteLength], [206, 200_000])
})

const there = { etag: '"x"', modifiedMs: 1_700_000_000_500, isDateStrong: true, bytes: 10 }
const date = new Date(there.modifiedMs).toUTCString()
const before = new Date(there.modifiedMs - 5000).toUTCString()
const rows: [Record<string, string>, ...(number | undefined)[]][] = [
  [{}, 200],
  [{ range: 'bytes=0-0' }, 206, 0, 1],
  [{ range: 'bytes=5-' }, 206, 5, 10],
  [{ range: 'bytes=5-99' }, 206, 5, 10],
  [{ range: 'bytes=0-99999999999999999999' }, 206, 0, 10],
  [{ range: `bytes=-${'9'.repeat(400)}` }, 206, 0, 10],
  [{ range: 'bytes=99999999999999999999-' }, 416],
  [{ range: 'bytes=-3' }, 206, 7, 10],
  [{ range: 'bytes=-99' }, 206, 0, 10],
  [{ range: 'bytes=-0' }, 416],
  [{ range: 'bytes=10-' }, 416],
  [{ range: 'bytes=5-2' }, 200],
  [{ range: 'bytes=0-1,3-4' }, 200],
  [{ range: 'lines=1-2' }, 200],
  [{ range: 'bytes=a-b' }, 200],
  [{ range: 'bytes=1-2', 'if-range': '"x"' }, 206, 1, 3],
  [{ range: 'bytes=1-2', 'if-range': '"y"' }, 200],
  [{ range: 'bytes=1-2', 'if-range': 'W/"x"' }, 200],
  [{ range: 'bytes=1-2', 'if-range': date }, 206, 1, 3],
  [{ range: 'bytes=1-2', 'if-range': before }, 200],
  [{ 'if-none-match': '"x"' }, 304],
  [{ 'if-none-match': 'W/"x"' }, 304],
  [{ 'if-none-match': '"a", "x"' }, 304],
  [{ 'if-none-match': '*' }, 304],
  [{ 'if-none-match': '"a"', 'if-modified-since': date }, 200],
  [{ 'if-modified-since': date }, 304],
  [{ 'if-modified-since': before }, 200],
  [{ 'if-modified-since': 'yesterday' }, 200],
  [{ 'if-match': '"x"' }, 200],
  [{ 'if-match': 'W/"x"' }, 412],
  [{ 'if-match': '"a"' }, 412],
  [{ 'if-match': '*' }, 200],
  [{ 'if-unmodified-since': before }, 412],
  [{ 'if-unmodified-since': date }, 200],
]
for (const [fields, status, from, to] of rows) {
  test(`${JSON.stringify(fields)} has the status ${status}`, () => {
    const found = decide('GET', (name) => fields[name] ?? null, there)
    assert.deepEqual(found, status === 206 ? { status, start: from, end: to } : { status })
  })
}

test('HEAD has no ranges', () => {
  assert.deepEqual(
    decide('HEAD', (name) => (name === 'range' ? 'bytes=1-' : null), there),
    { status: 200 },
  )
})

onServer('server-sent events: fields, lines, heartbeats, and an end that is seen', async (start) => {
  let closed = 0
  const stop = new AbortController()
  const server = await start({
    routes: {
      '/some': () =>
        events([
          'two\nlines',
          { data: { a: 1 }, event: 'tick', id: '7', retryMs: 50 },
          { data: 1, other: 2 },
        ]),
      '/slow': () =>
        events(
          async function* (signal) {
            try {
              yield 1
              await new Promise((resolve) => signal.addEventListener('abort', resolve))
            } finally {
              closed += 1
            }
          },
          { heartbeatMs: 20, signal: stop.signal },
        ),
      '/bad': () => events([{ data: 1, event: 'a\nb' }]),
    },
  })
  const some = await fetch(`${server.url}/some`)
  assert.equal(some.headers.get('content-type'), 'text/event-stream')
  assert.equal(
    await some.text(),
    ':\n\ndata: two\ndata: lines\n\nevent: tick\nid: 7\nretry: 50\ndata: {"a":1}\n\n' +
      'data: {"data":1,"other":2}\n\n',
  )
  const socket = await connect(server.port)
  let text = ''
  socket.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => (text.match(/:\n\n/g)?.length ?? 0) >= 3)
  assert.match(text, /data: 1\n\n/)
  socket.destroy()
  await until(() => closed >= 1)
  const { body } = await fetch(`${server.url}/slow`)
  let whole = ''
  for await (const piece of body!) {
    whole += Buffer.from(piece).toString()
    if (whole.includes('data: 1\n\n')) stop.abort()
  }
  assert.match(whole, /^:\n\ndata: 1\n\n/)
  await until(() => closed >= 2)
  await assert.rejects(fetch(`${server.url}/bad`).then((response) => response.text()))
})

onServer('lines of JSON and pieces, at the reader’s pace', async (start) => {
  let made = 0
  const server = await start({
    routes: {
      '/lines': () => ndjson([{ a: 1 }, null, 'ü']),
      '/pieces': () => chunks(['a', new Uint8Array([98]), 'ü']),
      '/endless': () =>
        ndjson(
          (function* () {
            for (;;) {
              made += 1
              yield 'x'.repeat(10_000)
            }
          })(),
        ),
      '/wrong': () => ndjson([undefined]),
    },
  })
  const lines = await fetch(`${server.url}/lines`)
  assert.equal(lines.headers.get('content-type'), 'application/x-ndjson')
  assert.equal(await lines.text(), '{"a":1}\nnull\n"ü"\n')
  assert.equal(await (await fetch(`${server.url}/pieces`)).text(), 'abü')
  const socket = await connect(server.port)
  socket.write('GET /endless HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => made > 0)
  let last = -1
  while (last !== made) {
    last = made
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.ok(made < 2000, `${made} lines for a client that reads nothing`)
  socket.destroy()
  assert.equal((await fetch(`${server.url}/wrong`)).status, 500)
  assert.throws(() => ndjson(7 as never), { code: 'HTTP_ARGUMENT' })
})

/** Lets the garbage collector run until none of these is there, or `tries` runs out; how many are there. */
async function kept(values: readonly WeakRef<object>[], tries = 50): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const alive = (): number => values.filter((value) => value.deref() !== undefined).length
  for (let tried = 0; tried < tries && alive() > 0; tried += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  return alive()
}

for (const end of ['cancelled', 'done', 'failed']) {
  test(`a signal that outlives a response does not retain it: ${end}`, async () => {
    const { signal } = new AbortController()
    const sent: WeakRef<object>[] = []
    let closed = 0
    async function* values(): AsyncGenerator<object> {
      try {
        for (let at = 0; at < 200; at += 1) {
          const value = { at }
          sent.push(new WeakRef(value))
          yield value
        }
        if (end === 'failed') throw new Error('on purpose')
        if (end === 'cancelled') await new Promise(() => {})
      } finally {
        closed += 1
      }
    }
    const reader = events(values, { signal, heartbeatMs: 5 }).body!.getReader()
    while (sent.length < 200) await reader.read()
    assert.equal(getEventListeners(signal, 'abort').length, 1)
    // The last ones may still be on their way.
    assert.ok((await kept(sent.slice(0, 190))) === 0, 'while it goes on')
    if (end === 'cancelled') await reader.cancel()
    else {
      const rest = async (): Promise<void> => {
        while (!(await reader.read()).done);
      }
      if (end === 'failed') await assert.rejects(rest(), { message: 'on purpose' })
      else await rest()
    }
    assert.equal(getEventListeners(signal, 'abort').length, 0)
    if (end !== 'cancelled') assert.equal(closed, 1)
    assert.equal(await kept(sent), 0)
  })
}

test('a value that cannot be sent closes its source', async () => {
  let closed = 0
  function* values(): Generator<unknown> {
    try {
      yield undefined
    } finally {
      closed += 1
    }
  }
  await assert.rejects(ndjson(values).text(), TypeError)
  assert.equal(closed, 1)
})

test('a signal that is already aborted ends a response at its start and closes its source', async () => {
  let asked = 0
  const source = { next: () => ({ done: false, value: (asked += 1) }), [Symbol.iterator]: () => source }
  const signal = AbortSignal.abort()
  assert.equal(await events(source, { signal }).text(), ':\n\n')
  assert.equal(await ndjson(source, { signal }).text(), '')
  assert.deepEqual([asked, getEventListeners(signal, 'abort').length], [0, 0])
})
