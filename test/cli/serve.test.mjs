/**
 * `corespun serve` as its users meet it: the line it prints, answers from every worker, its end by signals,
 * and one clear line for everything that keeps it from serving.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { hearing, program, signalled, corespun, skipOf, start, until, withoutNotices } from './corespun.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-serve-'))
after(() => rmSync(folder, { recursive: true }))

/** A module in a file of its own. */
function module(name, text) {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

const app = module(
  'app.ts',
  `import { threadId } from 'node:worker_threads'
  import { writeSync } from 'node:fs'
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  const report = (): void => void writeSync(2, 'asked\\n')
  export default {
    routes: {
      '/': (): string => String(threadId),
      '/slow': async (): Promise<string> => { report(); await pause(700); return 'slow' },
      '/slower': async (): Promise<string> => { report(); await pause(20_000); return 'slower' },
      '/dies': (): string => { setImmediate(() => { throw new Error('on purpose') }); return 'dying' },
      '/exits': (): string => { setImmediate(() => process.exit(3)); return 'leaving' },
    },
    close: (): void => void writeSync(2, 'closed\\n'),
  }`,
)

/** Serve and wait for the line with the address. */
async function serving(words, env = {}) {
  const started = start(['serve', ...words, '--port', '0'], { env })
  started.child.stdin.end()
  await until(started.child.stdout, () => started.out.includes('\n'))
  const url = /http:\S+/.exec(started.out)[0]
  return { ...started, started, url }
}

/** Resolves when a handler that takes its time runs. */
const asked = (started) => until(started.child.stderr, () => started.err.includes('asked\n'))

const get = async (url) => (await fetch(url, { headers: { connection: 'close' } })).text()

test('an app module with a zone of its own serves with several workers', { timeout: 60_000 }, async () => {
  const core = JSON.stringify(import.meta.resolve('corespun'))
  const text = `import { zone } from ${core}
    const heavy = zone.getOrCreate('heavy', { workers: 1 })
    const where = async () => 'from ' + (await import(${core})).zone.current.id
    export const routes = { '/': () => heavy.run(where) }`
  const { url, child, ended } = await serving([module('zone.mjs', text), '--workers', '3'])
  for (let count = 0; count < 20; count += 1) assert.equal(await get(url), 'from heavy')
  child.kill('SIGTERM')
  await ended
})

for (const signal of ['SIGINT', 'SIGTERM']) {
  test(`every worker answers, and ${signal} finishes what is open`, { timeout: 60_000 }, async () => {
    const { url, child, ended, started } = await serving([app, '--workers', '2'])
    assert.match(
      started.out,
      /^corespun: serving http:\/\/127\.0\.0\.1:\d+ with 2 workers \((native|node) core\)\n$/,
    )
    const threads = new Set()
    for (let count = 0; count < 400 && threads.size < 2; count += 1) threads.add(await get(url))
    assert.equal(threads.size, 2)
    const slow = get(`${url}/slow`)
    await asked(started)
    child.kill(signal)
    assert.equal(await slow, 'slow')
    const end = await ended
    assert.deepEqual([end.code, end.err], [0, 'asked\nclosed\nclosed\n'])
    await assert.rejects(get(url))
  })
}

test('--access-log prints a line of JSON for each request', { timeout: 60_000 }, async () => {
  const text = `export const routes = { '/': () => 'route' }
    export const fetch = (request, connection) => new Response(connection.requestIP(request).address)`
  const { url, child, ended, started } = await serving([
    module('logged.mjs', text),
    '--workers',
    '1',
    '--access-log',
  ])
  assert.deepEqual([await get(url), await get(`${url}/other`)], ['route', '127.0.0.1'])
  await until(started.child.stdout, () => started.out.split('\n').length > 3)
  const [, ...lines] = started.out.trim().split('\n')
  const records = lines.map((line) => JSON.parse(line))
  assert.deepEqual(
    records.map(({ method, path, status, bytes, remoteAddress }) => [
      method,
      path,
      status,
      bytes,
      remoteAddress,
    ]),
    [
      ['GET', '/', 200, 5, '127.0.0.1'],
      ['GET', '/other', 200, 9, '127.0.0.1'],
    ],
  )
  child.kill('SIGTERM')
  await ended
})

test(
  'the log has the id that a client receives; what is refused is a line, unless --quiet',
  { timeout: 60_000 },
  async () => {
    const text = `export const routes = { '/': () => 'route' }`
    for (const isQuiet of [false, true]) {
      const words = [module('refuses.mjs', text), '-w', '1', '--access-log', ...(isQuiet ? ['--quiet'] : [])]
      const { url, child, ended, started } = isQuiet ? await quietly(words) : await serving(words)
      const response = await fetch(url, { headers: { 'x-request-id': 'not trusted' } })
      const id = response.headers.get('x-request-id')
      assert.equal(await response.text(), 'route')
      for (let count = 0; count < 8; count += 1) await sendNonsense(new URL(url).port)
      await fetch(url, { headers: { connection: 'close' } })
      await until(started.child.stdout, () => started.out.split('"path"').length > 2)
      if (!isQuiet) await until(started.child.stderr, () => started.err.includes('more refusals'))
      const records = started.out.split('\n').filter((line) => line.startsWith('{'))
      assert.ok(records.some((line) => JSON.parse(line).requestId === id))
      child.kill('SIGTERM')
      const { code, err } = await ended
      assert.equal(code, 0)
      const lines = 'corespun: refused: request, malformed, 400, from 127.0.0.1'
      if (isQuiet) assert.equal(err, '')
      else assert.match(err, new RegExp(`^(${lines}.*\n){5}corespun: 3 more refusals in the last second\n`))
    }
  },
)

/** As `serving`, without its line: a port that was free. */
async function quietly(words) {
  const probe = createServer().listen(0)
  await once(probe, 'listening')
  const { port } = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  const started = start(['serve', ...words, '--port', String(port)])
  const url = `http://127.0.0.1:${port}`
  while (
    !(await fetch(url).then(
      () => true,
      () => false,
    ))
  )
    await pause(20)
  return { ...started, started, url }
}

/** Send what is not a request, and wait for the end of the response. */
async function sendNonsense(port) {
  const client = connect(port, '127.0.0.1').resume()
  client.end('nonsense\r\n\r\n')
  await once(client, 'close')
}

test('a signal before all workers have started costs no request', { timeout: 120_000 }, async () => {
  const first = join(folder, 'first')
  const early = module(
    'early.mjs',
    `import { mkdirSync, writeSync } from 'node:fs'
    const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    try { mkdirSync(${JSON.stringify(first)}) } catch { await pause(3000) }
    export const fetch = async () => (writeSync(2, 'asked\\n'), await pause(1000), new Response('slow'))`,
  )
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise((done) => probe.once('listening', done))
  const { port } = probe.address()
  await new Promise((done) => probe.close(done))
  const started = start(['serve', early, '--workers', '2', '--port', `${port}`])
  started.child.stdin.end()
  const url = `http://127.0.0.1:${port}`
  // As a readiness probe does: the port answers before the line with the address is printed.
  const late = Date.now() + 60_000
  for (;;) {
    const found = await get(url).catch(() => undefined)
    if (found !== undefined) break
    assert.ok(Date.now() < late, `nobody answers: ${started.err}`)
    await new Promise((done) => setTimeout(done, 20))
  }
  assert.equal(started.out, '')
  const slow = Promise.all(Array.from({ length: 6 }, () => get(url)))
  await until(started.child.stderr, () => started.err.split('asked').length - 1 === 7)
  started.child.kill('SIGTERM')
  assert.deepEqual(new Set(await slow), new Set(['slow']))
  const end = await started.ended
  assert.deepEqual([end.code, end.out], [0, ''])
})

test('its workers collect young objects alone, unless --parallel-gc', { timeout: 120_000 }, async () => {
  const env = { NODE_OPTIONS: `--import=${new URL('flags.mjs', import.meta.url).href}` }
  const flagsOf = async (words) => {
    const { url, child, ended } = await serving([app, '--workers', '1', ...words], env)
    assert.match(await get(url), /^\d+$/)
    child.kill('SIGTERM')
    return (await ended).err.split('\n').filter((line) => line.startsWith('flags: '))
  }
  assert.deepEqual(await flagsOf([]), ['flags: --no-parallel-scavenge before 0 workers'])
  assert.deepEqual(await flagsOf(['--parallel-gc']), [])
  const run = await corespun(['run', 'node:path#basename', '-'], 'a/b\n', { env })
  assert.deepEqual([run.code, run.out, /flags: /.test(run.err)], [0, '"b"\n', false])
})

test('a stop that cuts a request ends with the code of its signal', { timeout: 60_000 }, async () => {
  const { url, child, ended, started } = await serving([app, '--workers', '2', '--drain', '1s'])
  const slower = get(`${url}/slower`)
  slower.catch(() => {})
  await asked(started)
  child.kill('SIGTERM')
  assert.equal((await ended).code, 143)
  await assert.rejects(slower)
})

test('a second signal stops at once', { timeout: 60_000 }, async () => {
  const { url, child, ended, started } = await serving([app, '--workers', '1'], hearing())
  const slow = get(`${url}/slower`)
  slow.catch(() => {})
  await asked(started)
  await signalled(started, 'SIGINT') // what comes before that would be an echo of the first
  child.kill('SIGINT')
  assert.equal((await ended).code, 130)
  await assert.rejects(slow)
})

test('a signal that npm hands on as well is one signal', { timeout: 60_000 }, async () => {
  const { url, child, ended, started } = await serving([app, '--workers', '1'], hearing({ twice: true }))
  const slow = get(`${url}/slow`)
  await asked(started)
  child.kill('SIGINT')
  assert.equal(await slow, 'slow')
  const { code, err } = await ended
  assert.deepEqual([code, err.split('received SIGINT').length], [0, 3], err)
})

const deaths = [
  ['dies', /^corespun: a worker has ended and is replaced: Error: on purpose\n +at /],
  ['exits', /^corespun: a worker has ended and is replaced: it exited with code 3\nclosed\n$/],
]
for (const [path, expected] of deaths) {
  const name = `a worker that ${path} is reported and replaced, and the replacement serves`
  test(name, { timeout: 60_000 }, async () => {
    const { url, child, ended } = await serving([app, '--workers', '1'])
    const first = await get(url)
    await get(`${url}/${path}`).catch(() => {})
    let next = first
    while (next === first) {
      await new Promise((done) => setTimeout(done, 50))
      next = await get(url).catch(() => first)
    }
    child.kill('SIGINT')
    assert.match((await ended).err, expected)
  })
}

test('when no worker can be replaced any more it reports that and ends', { timeout: 60_000 }, async () => {
  const text = `import { existsSync, writeFileSync } from 'node:fs'
    const seen = import.meta.filename + '.seen'
    if (existsSync(seen)) process.exit(4)
    writeFileSync(seen, '')
    export default () => (setImmediate(() => process.exit(3)), new Response('leaving'))`
  const { url, ended } = await serving([module('once.mjs', text), '--workers', '1'])
  await get(url).catch(() => {})
  const { code, err } = await ended
  assert.equal(code, 2, err)
  assert.match(err, /\ncorespun: no worker is left to serve: it exited with code 4\n$/)
})

test('it ends when who replaces the last worker cannot load the app', { timeout: 60_000 }, async () => {
  const text = `import { existsSync, writeFileSync } from 'node:fs'
    const seen = import.meta.filename + '.seen'
    if (existsSync(seen)) throw new Error('the app was deleted')
    export default (request) => {
      writeFileSync(seen, '')
      setImmediate(() => process.exit(3))
      return new Response('leaving')
    }`
  const { url, ended } = await serving([module('deleted.mjs', text), '--workers', '2'])
  let isOver = false
  const end = ended.finally(() => (isOver = true))
  while (!isOver) {
    await get(url).catch(() => {}) // ends a worker whose replacement fails, as long as one serves
    await new Promise((done) => setTimeout(done, 50))
  }
  const { code, err } = await end
  assert.equal(code, 2, err)
  assert.match(err, /Warning: corespun serve\/[01] does not serve: .*failed to load: the app was deleted/)
  assert.match(err, /\ncorespun: no worker is left to serve: .*failed to load: the app was deleted .*\n$/)
})

test("an app's close that fails is reported", { timeout: 60_000 }, async () => {
  const text = `export default { routes: {}, close() { throw new Error('cannot') } }`
  const { child, ended } = await serving([module('close.mjs', text), '--workers', '1'])
  child.kill('SIGTERM')
  const { code, err } = await ended
  assert.equal(code, 143)
  assert.match(err, /^corespun: [^:]*close\.mjs: close\(\) failed: cannot\n$/)
})

const served = [
  ['a function', `export default (request) => new Response('fn ' + new URL(request.url).pathname)`, 'fn /x'],
  ['an export called app', `export const app = { fetch: () => new Response('app') }`, 'app'],
  ['a module with fetch', `export function fetch() { return new Response('module') }`, 'module'],
  [
    'an object of a class',
    `class A { fetch() { return new Response('class') } }\nexport default new A()`,
    'class',
  ],
  ['an app for node:http', `export default (req, res) => res.end('node ' + req.url)`, 'node /x'],
  [
    'errors are answers',
    `export default { routes: { '/x': () => { throw new Error('hidden') } } }`,
    /"error"/,
  ],
]
for (const [index, [name, text, answer]] of served.entries()) {
  test(`served: ${name}`, { timeout: 60_000, skip: skipOf(index) }, async () => {
    const { url, child, ended } = await serving([module(`served-${index}.mjs`, text), '--workers', '1'])
    const received = await get(`${url}/x`)
    if (typeof answer === 'string') assert.equal(received, answer)
    else assert.match(received, answer)
    child.kill('SIGINT')
    await ended
  })
}

// The notice comes after ten seconds, on one Node only.
const loading = { timeout: 60_000, skip: skipOf(1) }
const second = `import { openSync } from 'node:fs'
try { openSync(new URL('second.taken', import.meta.url), 'wx') } catch { await new Promise(() => {}) }
export default () => 'ok'`
for (const [file, waitsFor, drain = '10m', code = 0] of [
  ['modules/never-loads.mjs', 'its code, or an await at its top level, has not ended'],
  [module('pending.mjs', 'export default new Promise(() => {})'), 'the promise of its app has not settled'],
  [module('second.mjs', second), 'not all workers have loaded it', '1ms', 143],
])
  test(`${waitsFor}: that is reported, and one signal ends it at once`, loading, async () => {
    const started = start(['serve', file, '--port', '0', '--workers', '2', '--drain', drain])
    const notice = `corespun: still loading ${file}: ${waitsFor}; press Ctrl-C to stop\n`
    await until(started.child.stderr, () => started.err === notice)
    started.child.kill('SIGTERM')
    assert.deepEqual(await started.ended, { code, signal: null, out: '', err: '' })
  })

test('node:http serves with one worker', { timeout: 60_000 }, async () => {
  const { url, child, ended, started } = await serving([app, '--core', 'node'])
  assert.match(started.out, /with 1 worker \(node core\)/)
  assert.match(await get(url), /^\d+$/)
  child.kill('SIGINT')
  assert.equal((await ended).code, 0)
})

const how = '(corespun serve --help shows how)'
const HTTP = import.meta.resolve('corespun/http')
const RUNS = `{ port: 0, quiet: true, fetch: () => 'x' }`
const refused = [
  [['serve'], `name the module whose app to serve ${how}`],
  [['serve', 'a', 'b'], `one module is served, not also b ${how}`],
  [['serve', app, '--port', 'x'], `--port takes a whole number from 0 to 65535, not "x" ${how}`],
  [['serve', app, '--wrong'], `Unknown option '--wrong' ${how}`],
  [['serve', app, '--core', 'bun'], `--core (or CORESPUN_HTTP_CORE) takes native or node, not "bun" ${how}`],
  [['serve', 'nothing.ts'], 'nothing.ts: no such module, neither a file here nor an installed package'],
  [
    ['serve', app, '--core', 'node', '-w', '2'],
    /^the core on node:http serves a port in one thread: --workers 1/,
  ],
  [['serve', `${app}#other`], /: export "other" is not an app: export `routes`.*; it exports default$/],
  [
    ['serve', module('running.mjs', `import { serve } from '${HTTP}'\nexport default await serve(${RUNS})`)],
    /: default export is a running server: export the options that you pass to serve\(\)$/,
  ],
  [['serve', module('empty.mjs', '')], /: default export is not an app: .*; it exports nothing$/],
  [
    ['serve', module('throws.mjs', 'throw new TypeError("at load")')],
    /: failed to load: TypeError: at load \(\/.*throws\.mjs:1:7\)$/,
  ],
  [
    ['serve', module('core.mjs', `export default { core: 'node', fetch: () => new Response() }`), '-w', '2'],
    /^the core on node:http serves a port in one thread: --workers 1, not 2/,
  ],
  [['serve', module('syntax.mjs', '\nlet let')], /: failed to load: SyntaxError: .* \(\/.*syntax\.mjs:2\)$/],
  [
    ['serve', module('bad.mjs', `export default { routes: { x: 'y' } }`)],
    /bad\.mjs: invalid route 'x': it must begin with '\/'/,
  ],
  [
    ['serve', module('prot.mjs', `export default { routes: {}, prot: 1 }`)],
    /prot\.mjs: serve\(\): unknown option "prot"; did you mean "port"\?$/,
  ],
]
for (const [row, [words, line]] of refused.entries()) {
  test(
    `refused: ${words.slice(1).join(' ').replace(folder, '') || 'nothing'}`,
    { timeout: 60_000, skip: skipOf(row) },
    async () => {
      const { code, out, err } = await corespun(words)
      assert.deepEqual([code, out], [2, ''])
      assert.equal(err.split('\n').length, 2, err)
      const text = err.slice('corespun: '.length, -1)
      if (typeof line === 'string') assert.equal(text, line)
      else assert.match(text, line)
    },
  )
}

/** npm and the shell between, as they end by SIGTERM: without a word to what they have started. */
const NPM = `
  const [program, ...words] = process.argv.slice(1)
  const { spawn } = require('node:child_process')
  spawn(process.execPath, [program, ...words], { stdio: 'inherit' })`

test('the end of the npm that has started it is SIGTERM', { timeout: 60_000 }, async () => {
  const words = ['serve', app, '--port', '0', '--workers', '1']
  const env = { ...process.env, npm_command: 'exec' }
  const npm = spawn(process.execPath, ['-e', NPM, '--', program, ...words], { env, stdio: 'pipe' })
  const started = { out: '', err: '' }
  npm.stdout.setEncoding('utf8').on('data', (text) => (started.out += text))
  npm.stderr.setEncoding('utf8').on('data', (text) => (started.err += text))
  await until(npm.stdout, () => started.out.includes('\n'))
  const [url] = /http:\S+/.exec(started.out)
  const slow = get(`${url}/slow`)
  await until(npm.stderr, () => started.err.includes('asked\n'))
  const ended = once(npm, 'close') // its output is also that of the server
  npm.kill('SIGTERM')
  assert.equal(await slow, 'slow')
  await ended
  assert.equal(withoutNotices(started.err), 'asked\nclosed\n')
})

test('a native core that does not load is one line, with what runs', { timeout: 60_000 }, async () => {
  const env = { CORESPUN_NATIVE_PATH: join(folder, 'missing.node') }
  for (const words of [
    ['serve', app, '--port', '0'],
    ['serve', app, '--core', 'node'],
    ['run', 'modules/items.mjs'],
  ]) {
    const { code, out, err } = await corespun(words, '', { env })
    assert.deepEqual([code, out], [2, ''], err)
    assert.match(
      err,
      /^corespun: corespun could not load its native core \/.*missing\.node: .*function serve of .*\n$/,
    )
  }
  assert.equal((await corespun(['--help'], '', { env })).code, 0)
})

test('a taken port is one line', { timeout: 60_000 }, async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await new Promise((done) => other.once('listening', done))
  const { port } = other.address()
  const { code, err } = await corespun(['serve', app, '--port', String(port)])
  other.close()
  const remedy = 'stop the other server, or pass another port (0 selects a free one)'
  assert.deepEqual([code, err], [2, `corespun: address already in use: 127.0.0.1:${port}; ${remedy}\n`])
})
