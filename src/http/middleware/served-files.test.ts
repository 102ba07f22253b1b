/**
 * Files that change, move and disappear while a server sends them, and middleware that looks at such
 * responses. Rules that are the same for every path are in files.test.ts and crates/http/src/files/tests.rs.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { rename, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { until } from '../../base/wait.test.support.ts'
import { createApp } from '../server.ts'
import { onCores, onServer } from '../cores.test.support.ts'
import { connect, converse } from '../raw.test.support.ts'
import { files } from './files.ts'

const top = mkdtempSync(join(tmpdir(), 'corespun-served-'))
after(() => rmSync(top, { recursive: true }))
const folder = join(top, 'public')
mkdirSync(join(folder, 'sub'), { recursive: true })
writeFileSync(join(top, 'secret.txt'), 'secret')
writeFileSync(join(folder, 'sub', 'index.html'), '<p>')
const LARGE = Buffer.from(Uint8Array.from({ length: 300_000 }, (_, at) => at * 7 + at / 251))
writeFileSync(join(folder, 'large.bin'), LARGE)

const seen = async (url: string): Promise<string | number> => {
  const response = await fetch(url)
  const text = await response.text()
  return response.ok ? text : response.status
}

onCores('the next request sees a file that was changed, replaced, deleted or created', async (start) => {
  const { url } = await start({ routes: { '/*': files(folder) } })
  const [path, at] = [join(folder, 'a.txt'), `${url}/a.txt`]
  assert.equal(await seen(at), 404)
  const etags = new Set<string | null>()
  for (const text of ['one', 'two', 'longer', '']) {
    writeFileSync(path, text)
    const response = await fetch(at)
    etags.add(response.headers.get('etag'))
    assert.deepEqual(
      [response.headers.get('content-length'), await response.text()],
      [`${text.length}`, text],
    )
  }
  writeFileSync(`${path}.new`, 'replaced')
  renameSync(`${path}.new`, path)
  assert.equal(await seen(at), 'replaced')
  rmSync(path)
  assert.equal(await seen(at), 404)
  mkdirSync(path)
  assert.equal(await seen(at), 404)
  writeFileSync(join(path, 'index.html'), 'index')
  assert.equal(await seen(at), 'index')
  rmSync(path, { recursive: true })
  assert.ok(etags.size >= 3, [...etags].join())
})

onCores('two versions of one second never share a date', async (start, _core, t) => {
  const { url } = await start({ routes: { '/*': files(folder) } })
  const [path, second] = [join(folder, 'twice.txt'), 1_700_000_000]
  const date = new Date(second * 1000).toUTCString()
  let nowMs = 0
  t.mock.method(Date, 'now', () => nowMs)
  const write = (text: string, seconds: number): void => {
    writeFileSync(path, text)
    utimesSync(path, seconds, seconds)
  }
  const get = async (after: number): Promise<unknown[]> => {
    nowMs = (second + after) * 1000
    const whole = await fetch(`${url}/twice.txt`)
    await whole.text()
    const part = await fetch(`${url}/twice.txt`, { headers: { range: 'bytes=1-2', 'if-range': date } })
    await part.text()
    return [whole.headers.get('last-modified'), part.headers.get('last-modified'), part.status]
  }
  const [young, settled] = [
    [null, null, 200],
    [date, date, 206],
  ]
  write('first', second + 0.25)
  assert.deepEqual(await get(-60), young, 'its time is in the future')
  assert.deepEqual(await get(0.5), young)
  write('other', second + 0.75)
  assert.deepEqual(await get(1), young)
  assert.deepEqual(await get(2.5), young)
  assert.deepEqual(await get(2.75), settled)
  assert.deepEqual(await get(1000), settled)
  // The tag is that of one version from the start.
  write('third', second + 2000)
  nowMs = (second + 2000) * 1000
  const etag = (await fetch(`${url}/twice.txt`)).headers.get('etag')!
  const part = await fetch(`${url}/twice.txt`, { headers: { range: 'bytes=1-2', 'if-range': etag } })
  assert.deepEqual([part.status, await part.text()], [206, 'hi'])
})

onCores('the URL of a folder without its slash redirects to the one with it, at this host', async (start) => {
  for (const name of ['evil.example', 'ä b', 'empty']) mkdirSync(join(folder, name), { recursive: true })
  for (const name of ['evil.example', 'ä b']) writeFileSync(join(folder, name, 'index.html'), name)
  const read = files(folder)
  const { port, url } = await start({
    routes: {
      '/*': read,
      '/assets/*': read,
      '/root': files(join(folder, 'sub')),
      '/chosen/': (request) => read(Object.assign(request, { params: { '*': 'sub' } })),
    },
  })
  const ask = async (target: string, method = 'GET', more = ''): Promise<[number, string?]> => {
    const head = `${method} ${target} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
    const { responses } = await converse(port, [head], { responses: 1, methods: [method] })
    return [responses[0].status, responses[0].headers.location]
  }
  for (const [target, location] of [
    ['/sub', './sub/'],
    ['/assets/sub', './sub/'],
    ['/assets//sub', './sub/'],
    ['/assets/sub?a=%2F&b=//x/', './sub/?a=%2F&b=//x/'],
    ['/assets/%C3%A4%20b?', './%C3%A4%20b/'],
    ['/assets/%65vil.example', './%65vil.example/'],
    ['//evil.example', './evil.example/'],
    ['///evil.example?//', './evil.example/?//'],
    ['/.//evil.example', './evil.example/'],
    ['/sub/..//evil.example', './evil.example/'],
    ['http://x//evil.example', './evil.example/'],
    ['/%2Fevil.example', './%2Fevil.example/'],
  ]) {
    assert.deepEqual(await ask(target), [301, location], target)
    assert.deepEqual(await ask(target, 'HEAD', 'If-None-Match: *\r\n'), [301, location], target)
  }
  // node:http accepts the first, which is a slash in URLs.
  for (const target of ['/\\evil.example', '/%5Cevil.example', '/\t/evil.example']) {
    const [status, location] = await ask(target)
    assert.ok([400, 404].includes(status) || location === './evil.example/', `${target}: ${location}`)
  }
  for (const target of ['/assets/sub/', '/assets/', '/root', '/chosen/', '/sub/index.html']) {
    const expected = target === '/assets/' ? 404 : 200
    assert.deepEqual(await ask(target), [expected, undefined], target)
  }
  assert.deepEqual(
    [await ask('/empty'), await ask('/empty/')],
    [
      [404, undefined],
      [404, undefined],
    ],
  )
  assert.equal(await seen(`${url}/assets/sub`), '<p>')
})

onCores('a folder that is a link may be switched to another one', async (start) => {
  const [one, two, live] = ['one', 'two', 'live'].map((name) => join(top, name)) as [string, string, string]
  for (const [path, text] of [
    [one, '1'],
    [two, '2'],
  ] as const) {
    mkdirSync(path, { recursive: true })
    writeFileSync(join(path, 'a.txt'), text)
  }
  rmSync(live, { force: true })
  symlinkSync(one, live)
  const { url } = await start({ routes: { '/*': files(live) } })
  assert.equal(await seen(`${url}/a.txt`), '1')
  symlinkSync(two, `${live}.new`)
  renameSync(`${live}.new`, live)
  assert.equal(await seen(`${url}/a.txt`), '2')
})

onServer('links that change all the time never show what lies outside', async (start) => {
  const server = await start({ routes: { '/*': files(folder) } })
  const { url } = server
  writeFileSync(join(folder, 'inside.txt'), 'inside')
  mkdirSync(join(folder, 'real'))
  writeFileSync(join(folder, 'real', 'secret.txt'), 'inside')
  const targets = [join(top, 'secret.txt'), join(folder, 'inside.txt'), '../secret.txt', 'inside.txt']
  const folders = [top, join(folder, 'real'), '..', 'real']
  let isOver = false
  const turn = async (name: string, among: readonly string[]): Promise<void> => {
    const path = join(folder, name)
    for (let turned = 0; !isOver; turned += 1) {
      await symlink(among[turned % among.length], `${path}.new`)
      await rename(`${path}.new`, path)
    }
  }
  const turning = Promise.all([turn('link.txt', targets), turn('linked', folders)])
  const found = new Set<string | number>()
  for (let asked = 0; asked < 100; asked += 1) {
    found.add(await seen(`${url}/link.txt`))
    found.add(await seen(`${url}/linked/secret.txt`))
  }
  isOver = true
  await turning
  found.delete(404)
  assert.deepEqual([...found], ['inside'])
  assert.ok(server.stats().openFiles <= 2)
})

onCores('pipes and folders are not files, and nobody waits for them', async (start) => {
  const { url } = await start({ routes: { '/*': files(folder, { index: '' }) } })
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  assert.deepEqual([await seen(`${url}/pipe`), await seen(`${url}/sub`), await seen(url)], [404, 404, 404])
  rmSync(pipe)
})

onServer(
  'files of a pipeline come in the order of their requests, parts and HEAD among them',
  async (start) => {
    const server = await start({ routes: { '/*': files(folder), '/text': () => 'text' } })
    const get = (path: string, more = '', method = 'GET'): string =>
      `${method} ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
    const requests = [
      get('/large.bin'),
      get('/text'),
      get('/large.bin', 'Range: bytes=1000-250000\r\n'),
      get('/large.bin', '', 'HEAD'),
      get('/nothing'),
      get('/sub/', 'Connection: close\r\n'),
    ]
    const methods = ['GET', 'GET', 'GET', 'HEAD', 'GET', 'GET']
    const { responses, closed } = await converse(server.port, [requests.join('')], { methods, responses: 6 })
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 200, 206, 200, 404, 200],
    )
    const bodies = responses.map(({ body }) => Buffer.from(body, 'latin1'))
    assert.ok(bodies[0].equals(LARGE) && bodies[2].equals(LARGE.subarray(1000, 250_001)))
    assert.equal(responses[3].headers['content-length'], '300000')
    assert.deepEqual([bodies[1].toString(), bodies[3].length, bodies[5].toString()], ['text', 0, '<p>'])
    assert.ok(closed)
  },
)

onServer(
  'a file that becomes shorter while it is sent cuts the connection and is reported',
  async (start) => {
    const path = join(folder, 'shrinks.bin')
    writeFileSync(path, '')
    truncateSync(path, 64 * 1024 * 1024)
    const server = await start({ routes: { '/*': files(folder) } })
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    const socket = await connect(server.port)
    socket.write('GET /shrinks.bin HTTP/1.1\r\nHost: x\r\n\r\n')
    await new Promise((resolve) => socket.once('readable', resolve))
    truncateSync(path, 10)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('readable', () => socket.read())
    socket.once('error', () => {}).once('end', () => socket.destroy())
    await closed
    assert.match((await warned).message, /became shorter/)
    assert.equal(await seen(`${server.url}/sub/`), '<p>')
  },
)

/** Most files that a worker keeps open. */
const OPEN_FILES = 256
/** More files than that. */
const MANY = Array.from({ length: OPEN_FILES + 4 }, (_, index) => `many-${index}.txt`)

onServer('open files are bounded and counted', async (start) => {
  const server = await start({ routes: { '/*': files(folder) } })
  for (let round = 0; round < 2; round += 1) {
    for (const name of MANY) {
      writeFileSync(join(folder, name), name.repeat(round + 1))
      assert.equal(await seen(`${server.url}/${name}`), name.repeat(round + 1))
      assert.ok(server.stats().openFiles <= OPEN_FILES)
    }
  }
})

onCores('a response with a file can be changed, read and sent by another handler', async (start) => {
  const read = files(folder)
  const server = await start({
    routes: {
      '/headers/*': async (request) => {
        const response = await read(request)
        response.headers.set('x-more', response.headers.get('content-length') ?? '')
        return response
      },
      '/copied/*': async (request) => {
        const response = await read(request)
        return new Response(response.body, { status: 203, headers: response.headers })
      },
      '/cloned/*': async (request) => (await read(request)).clone(),
      '/length/*': async (request) => `${(await (await read(request)).bytes()).length}`,
      // Other files replace it among the open ones before it is sent.
      '/evicted/*': async (request) => {
        const response = await read(request)
        for (const name of MANY) {
          writeFileSync(join(folder, name), name)
          await seen(`${server.url}/plain/${name}`)
        }
        return response
      },
      '/plain/*': read,
    },
  })
  const bytes = async (path: string, status = 200): Promise<[Response, Buffer]> => {
    const response = await fetch(`${server.url}${path}/large.bin`)
    assert.equal(response.status, status)
    return [response, Buffer.from(await response.arrayBuffer())]
  }
  const [changed, whole] = await bytes('/headers')
  assert.deepEqual([changed.headers.get('x-more'), whole.equals(LARGE)], ['300000', true])
  for (const [path, status] of [
    ['/copied', 203],
    ['/cloned', 200],
    ['/evicted', 200],
  ] as const) {
    assert.ok((await bytes(path, status))[1].equals(LARGE), path)
  }
  assert.equal((await bytes('/length'))[1].toString(), '300000')
})

test('a handler may read the body of a file twice, by a clone', async () => {
  const app = createApp({
    routes: {
      '/*': async (request) => {
        const response = await files(folder)(request)
        const copy = response.clone()
        return `${(await copy.bytes()).length + (await response.bytes()).length}`
      },
    },
  })
  assert.equal(await (await app.inject('/large.bin')).text(), '600000')
})

test('a response that nobody reads has no file open, nor has one cancelled while it is opened', async () => {
  const opens = (): string[] =>
    readdirSync('/proc/self/fd')
      .map((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`)
        } catch {
          return '' // that of the folder itself
        }
      })
      .filter((path) => path.endsWith('large.bin'))
  const dropped: Response[] = []
  const app = createApp({
    routes: {
      '/*': async (request) => {
        dropped.push(await files(folder)(request))
        return 'another'
      },
    },
  })
  assert.equal(await (await app.inject('/large.bin')).text(), 'another')
  assert.deepEqual(opens(), [])
  const reader = dropped[0].body!.getReader()
  const read = reader.read()
  await reader.cancel()
  await read.catch(() => {})
  await until(() => opens().length === 0)
})
