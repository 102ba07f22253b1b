/**
 * `corespun serve --watch` as its users meet it: new code answers on the same port, the old finishes open
 * requests, and code that does not load changes nothing. `node --watch` restarts a program with zones.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { leftOut, share } from '../../dist/base/part.test.support.js'
import { corespun, start, until } from './corespun.mjs'

const root = mkdtempSync(join(tmpdir(), 'corespun-watch-'))
after(() => rmSync(root, { recursive: true }))

/** A folder with these files; its function writes one of them. */
function project(name, files) {
  const folder = join(root, name)
  const write = (path, text) => {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  for (const [path, text] of Object.entries(files)) write(path, text)
  return { folder, write }
}

const core = JSON.stringify(import.meta.resolve('corespun'))
const APP = `import { writeSync } from 'node:fs'
  import { zone } from ${core}
  import { version } from './lib/version.ts'
  const tasks = zone.cpu.module(new URL('./tasks.ts', import.meta.url))
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  export const routes = {
    '/': (): string => version,
    '/task': (): Promise<string> => tasks.task(),
    '/slow': async (): Promise<string> => { writeSync(2, 'asked\\n'); await pause(1500); return version },
  }`
const FILES = {
  'package.json': '{ "type": "module" }',
  'app.ts': APP,
  'tasks.ts': "export const task = (): string => 'task 1'\n",
  'lib/version.ts': "export const version: string = 'one'\n",
}

/** What the version is called after each reload of the test with one worker. */
const RELOADS = ['two', 'three', 'four'].slice(0, share(3))

const long = { timeout: 120_000 }

const get = async (url) => (await fetch(url, { headers: { connection: 'close' } })).text()

/** Wait for an answer: for a moment after a change the old version takes connections too. */
async function answers(url, expected) {
  while ((await get(url)) !== expected) await new Promise((done) => setTimeout(done, 10))
}

/** Serve `app.ts` of a folder and wait for the line with the address. */
async function watching(folder, ...words) {
  const started = start(['serve', 'app.ts', '--watch', '--port', '0', ...words], { cwd: folder })
  started.child.stdin.end()
  await until(started.child.stdout, () => started.out.includes('\n'))
  const url = /http:\S+/.exec(started.out)[0]
  const printed = (text) => until(started.child.stderr, () => started.err.includes(text))
  return { ...started, started, url, printed }
}

/** Count of a line on standard error. */
const countOf = (started, text) => started.err.split(text).length - 1

test('a change of an import is served without a refused connection', { timeout: 120_000 }, async () => {
  const { folder, write } = project('change', FILES)
  const { url, child, ended, started, printed } = await watching(folder, '--workers', '2')
  assert.equal(await get(url), 'one')
  let isOver = false
  const found = new Set()
  const asking = (async () => {
    while (!isOver) {
      found.add(await get(url).catch((error) => String(error.cause ?? error)))
      await new Promise((done) => setTimeout(done, 5))
    }
  })()
  write('lib/version.ts', FILES['lib/version.ts']) // saved again, without a change
  write('other.txt', 'not imported')
  const slow = get(`${url}/slow`)
  await printed('asked\n')
  write('lib/version.ts', "export const version: string = 'two'\n")
  await printed('serving the changed app.ts\n')
  assert.equal(await slow, 'one', 'the old code finishes what it has begun')
  write('tasks.ts', "export const task = (): string => 'task 2'\n")
  await until(child.stderr, () => countOf(started, 'serving the changed') === 2)
  await answers(`${url}/task`, 'task 2')
  isOver = true
  await asking
  assert.deepEqual([...found].sort(), ['one', 'two'])
  child.kill('SIGTERM')
  const end = await ended
  assert.deepEqual([end.code, end.out.split('\n').length], [0, 2], end.err)
  assert.equal(countOf(end, 'serving the changed'), 2, 'only changes count')
})

test(
  'code that does not load is reported once, and the old serves',
  { ...long, skip: leftOut(1) },
  async () => {
    const { folder, write } = project('broken', FILES)
    const { url, child, ended, started, printed } = await watching(folder, '--workers', '2')
    write('lib/version.ts', 'export const version: string = \n')
    await printed('the version before continues to serve\n')
    assert.equal(await get(url), 'one')
    write('lib/version.ts', "export const version: string = 'fixed'\n")
    await printed('serving the changed app.ts\n')
    await answers(url, 'fixed')
    assert.equal(countOf(started, 'failed to load'), 1, started.err)
    rmSync(join(folder, 'lib'), { recursive: true }) // as a compiler does
    await until(child.stderr, () => countOf(started, 'continues to serve') === 2)
    write('lib/version.ts', "export const version = 'compiled'\n")
    await until(child.stderr, () => countOf(started, 'serving the changed') === 2)
    await answers(url, 'compiled')
    child.kill('SIGINT')
    assert.equal((await ended).code, 0)
  },
)

test(
  `with one worker ${RELOADS.length} reloads refuse no connection`,
  { ...long, skip: leftOut(2) },
  async () => {
    const { folder, write } = project('single', FILES)
    const { url, child, ended, started } = await watching(folder, '--workers', '1')
    const found = new Map()
    let isOver = false
    const ask = async () => {
      while (!isOver) {
        const answer = await get(url).catch((error) => String(error.cause ?? error))
        found.set(answer, 1 + (found.get(answer) ?? 0))
        await new Promise((done) => setTimeout(done, 5))
      }
    }
    const asking = Promise.all([ask(), ask(), ask()])
    for (const [at, name] of RELOADS.entries()) {
      write('lib/version.ts', `export const version: string = '${name}'\n`)
      await until(child.stderr, () => countOf(started, 'serving the changed') === at + 1)
      await answers(url, name)
    }
    isOver = true
    await asking
    assert.deepEqual(new Set(found.keys()), new Set(['one', ...RELOADS]))
    assert.ok([...found.values()].reduce((sum, count) => sum + count) > 100, 'connections throughout')
    child.kill('SIGTERM')
    assert.equal((await ended).code, 0)
  },
)

test('a port that another server has is refused to the first version', { timeout: 60_000 }, async () => {
  const { folder } = project('taken', FILES)
  const other = createServer()
  await new Promise((done) => other.listen(0, '127.0.0.1', done))
  const { child, ended } = start(
    ['serve', 'app.ts', '--watch', '--workers', '1', '--port', String(other.address().port)],
    { cwd: folder },
  )
  child.stdin.end()
  const { code, err } = await ended
  other.close()
  assert.equal(code, 2, err)
  assert.match(err, /in use/)
})

test(
  "on node:http's core the old version stops when the new one has loaded",
  { ...long, skip: leftOut(2) },
  async () => {
    const { folder, write } = project('alone', FILES)
    const { url, child, ended, printed } = await watching(folder, '--core', 'node')
    write('lib/version.ts', 'export const version = \n')
    await printed('the version before continues to serve\n')
    assert.equal(await get(url), 'one')
    write('lib/version.ts', "export const version = 'two'\n")
    await printed('serving the changed app.ts\n')
    await answers(url, 'two')
    child.kill('SIGTERM')
    assert.equal((await ended).code, 0)
  },
)

test('a server that ends by itself starts again with a change', { timeout: 120_000 }, async () => {
  const text = `import { existsSync, writeFileSync } from 'node:fs'
    const seen = import.meta.filename + '.seen'
    if (existsSync(seen)) process.exit(4)
    export default () => {
      writeFileSync(seen, '')
      setImmediate(() => process.exit(3))
      return new Response('leaving')
    }`
  const { folder, write } = project('ended', { 'package.json': FILES['package.json'], 'app.ts': text })
  const { url, child, ended, printed } = await watching(folder, '--workers', '1')
  await get(url).catch(() => {})
  await printed('the server has ended with code 2; a change starts it again\n')
  write('app.ts', "export default () => new Response('again')\n")
  await printed('serving the changed app.ts\n')
  await answers(url, 'again')
  child.kill('SIGTERM')
  assert.equal((await ended).code, 0)
})

test('the server stops when the process that watches is killed', { timeout: 120_000 }, async () => {
  const { folder } = project('killed', FILES)
  const { url, child, ended } = await watching(folder, '--workers', '2')
  assert.equal(await get(url), 'one')
  child.kill('SIGKILL')
  await ended // the server has the same standard output, which closes with it
  await assert.rejects(get(url))
})

test('a module that cannot be served, or is not a file, ends the command', { timeout: 60_000 }, async () => {
  const { folder } = project('none', { 'app.ts': 'export const x = 1\n' })
  for (const [module, expected] of [
    ['app.ts', /^corespun: app\.ts: default export is not an app/],
    ['data:text/javascript,export default () => 1', /^corespun: --watch takes the module of a file/],
    ['missing.ts', /^corespun: missing\.ts: no such module/],
  ]) {
    const { child, ended } = start(['serve', module, '--watch', '--port', '0'], { cwd: folder })
    child.stdin.end()
    const { code, err } = await ended
    assert.equal(code, 2, err)
    assert.match(err, expected)
  }
})

test('the process of a version is for --watch alone', { timeout: 60_000 }, async () => {
  const { code, err } = await corespun(['serve-version', 'first', '0', 'app.ts'])
  assert.deepEqual([code, err.startsWith('corespun: only serve --watch starts')], [2, true], err)
})

test('node --watch restarts a program with zones and a server', { timeout: 120_000 }, async () => {
  const server = JSON.stringify(import.meta.resolve('corespun/http'))
  const text = `import { serve } from ${server}
    import { zone } from ${core}
    import { version } from './version.mjs'
    const server = await serve({
      port: Number(process.env.PORT ?? 0), quiet: true,
      routes: { '/': () => zone.cpu.run((text) => text + '!', version) },
    })
    console.log('serving', server.url)`
  const version = (text) => `export const version = '${text}'\n`
  const { folder, write } = project('node', { 'main.mjs': text, 'version.mjs': version('one') })
  const child = spawn(process.execPath, ['--watch', 'main.mjs'], { cwd: folder })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (data) => (out += data))
  const ended = new Promise((resolve) => child.on('close', resolve))
  const served = (count) => until(child.stdout, () => out.split('serving ').length > count)
  const answer = () => get(/.*serving (http:\S+)/s.exec(out)[1])
  await served(1)
  assert.equal(await answer(), 'one!')
  write('version.mjs', version('two'))
  await served(2)
  assert.equal(await answer(), 'two!')
  child.kill('SIGTERM')
  await ended
})

test('a version that a signal ends has the exit code of that signal', { timeout: 120_000 }, async () => {
  const text = "process.kill(process.pid, 'SIGKILL')\nawait new Promise(() => {})"
  const { folder } = project('killed', { 'app.mjs': text })
  const { code, out } = await corespun(['serve', 'app.mjs', '--watch', '--port', '0'], '', { cwd: folder })
  assert.deepEqual([code, out], [137, ''])
})
