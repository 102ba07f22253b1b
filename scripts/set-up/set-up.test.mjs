/**
 * The set-up's own promises: one sentence per missing tool, nothing done twice, one at a time.
 *
 * The sentences a person sees are checked by starting the real scripts with an empty PATH.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { mustWrite } from './index.mjs'
import { installCopy } from './install.mjs'
import { locked } from './lock.mjs'
import { NODE_RANGE, nodeComplaint } from './node-version.mjs'
import { filesBelow, inRoot, ROOT } from './paths.mjs'
import { run } from './run.mjs'

/** A temporary folder for the length of one test. */
function withFolder(work) {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), 'corespun-set-up-'))
    try {
      await work(folder)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

test('Node: inside the range nothing, outside it one sentence with what to install', () => {
  for (const version of '20.19.0 20.20.2 22.12.0 22.23.3 24.0.0 25.1.0 26.10.0 30.0.0'.split(' '))
    assert.equal(nodeComplaint(version), '', version)
  for (const version of '12.22.12 18.20.8 20.18.3 21.7.3 22.11.0 23.11.0'.split(' '))
    assert.match(nodeComplaint(version), new RegExp(`is ${version}: install Node 24 from https://nodejs.org`))
  assert.equal(NODE_RANGE, JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).engines.node)
})

test(
  'in a fresh clone without cargo, where PATH has node and nothing else, one sentence is printed',
  withFolder((folder) => {
    mkdirSync(join(folder, 'bin'))
    symlinkSync(process.execPath, join(folder, 'bin', 'node'))
    const env = { PATH: join(folder, 'bin'), HOME: folder, TMPDIR: folder }
    cpSync(inRoot('scripts'), join(folder, 'scripts'), { recursive: true })
    const door = [join(folder, 'scripts', 'run.mjs'), 'start']
    const { status, stdout, stderr } = spawnSync('node', door, { env, encoding: 'utf8' })
    assert.equal(status, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /^Corespun compiles its core with Rust and there is no cargo: [^\n]+\n$/)
  }),
)

test(
  'packages are installed again when their lock is newer than what npm has recorded',
  withFolder(async (folder) => {
    const names = ['a/package-lock.json', 'b/node_modules/.package-lock.json']
    for (const [at, path] of names.map((name) => join(folder, name)).entries()) {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, '{}')
      utimesSync(path, 1 + at, 1 + at)
    }
    const copied = () => installCopy('nothing', join(folder, 'a'), join(folder, 'b'))
    await copied()
    utimesSync(join(folder, names[1]), 0, 0)
    // npm refuses a folder without a manifest.
    await assert.rejects(copied(), /Installing nothing failed: .*ci/)
  }),
)

test(
  'many processes hold the lock one at a time, also when the one that held it was killed',
  withFolder(async (folder) => {
    const argsOf = (work) => {
      const program = `
        import { writeFileSync, rmSync } from 'node:fs'
        import { locked } from ${JSON.stringify(new URL('./lock.mjs', import.meta.url).href)}
        const [name, inside] = process.argv.slice(1)
        await locked(name, async () => { ${work} }, () => {})`
      return ['--input-type=module', '-e', program, folder, join(folder, 'in')]
    }
    const forever = "console.log('held'); await new Promise((end) => setTimeout(end, 600_000))"
    const holder = spawn(process.execPath, argsOf(forever), { stdio: ['ignore', 'pipe', 'inherit'] })
    const killed = once(holder, 'close')
    await once(holder.stdout, 'data')
    const enter = `writeFileSync(inside, '', { flag: 'wx' })
      await new Promise((end) => setTimeout(end, 30))
      rmSync(inside)`
    const others = Array.from({ length: 6 }, () => run(process.execPath, argsOf(enter)))
    const lines = []
    const report = (line) => (lines.push(line), holder.kill('SIGKILL'))
    assert.equal(await locked(folder, async () => 'held', report), 'held')
    assert.deepEqual(lines, [`set-up: waiting for another process, which is setting up ${folder}`])
    for (const ended of await Promise.all(others)) assert.deepEqual(ended, { code: 0, output: '' })
    assert.deepEqual(await killed, [null, 'SIGKILL'])
    assert.deepEqual(filesBelow(folder), [])
  }),
)

test('what throws while it holds the lock lets it go', async () => {
  const work = async () => Promise.reject(new Error('no'))
  await assert.rejects(locked('a name', work), /^Error: no$/)
  assert.equal(await locked('a name', async () => 'held'), 'held')
})

test(
  'a checkout that cannot be written is one sentence, or is used when it is set up',
  withFolder((folder) => {
    const [file, native] = ['file', 'native'].map((name) => join(folder, name))
    assert.equal(mustWrite(join(folder, '.set-up'), native), true)
    writeFileSync(file, '')
    const message = /corespun-set-up-\w+[\\/]file[\\/]\.set-up cannot be written \(\w+\) .* make it writable/
    assert.throws(() => mustWrite(join(file, '.set-up'), native), { name: 'Stop', message })
    mkdirSync(native)
    assert.throws(() => mustWrite(join(file, '.set-up'), native), { name: 'Stop', message })
    writeFileSync(join(native, 'corespun.linux-x64-gnu.node'), '')
    assert.equal(mustWrite(join(file, '.set-up'), native), false)
  }),
)

test('what ends a script ends the programs it has started', { timeout: 30_000 }, async () => {
  const program = `
    const { run } = await import(${JSON.stringify(inRoot('scripts/set-up/run.mjs'))})
    await run(process.execPath, ['-e', 'console.log(1); setTimeout(() => {}, 60000)'], { show: true })`
  for (const signal of ['SIGINT', 'SIGTERM']) {
    const stdio = ['ignore', 'pipe', 'inherit']
    const script = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio })
    const closed = new Promise((resolve) => script.on('close', (_, by) => resolve(by)))
    await new Promise((resolve) => script.stdout.once('data', resolve))
    script.kill(signal)
    // The pipe closes when the last of both has ended, so this waits for the program too.
    assert.equal(await closed, signal)
  }
})

test('a program whose time is over is killed with all it has started', { timeout: 30_000 }, async () => {
  const program = `require('child_process').spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60000)'], {
    stdio: 'inherit' })
  console.log('begun')`
  const startedMs = performance.now()
  // Its output is whole when the last of both has ended, so this waits for the second program too.
  const ended = await run(process.execPath, ['-e', program], { secondsMax: 2 })
  assert.deepEqual(ended, { code: 124, output: 'begun\n' })
  assert.ok(performance.now() - startedMs < 20_000)
  assert.equal((await run(process.execPath, ['-e', ''], { secondsMax: 60 })).code, 0)
})

test('a second set-up writes nothing, and the compiled files of a deleted source are deleted', () => {
  const build = [inRoot('scripts', 'run.mjs'), 'build']
  const setUp = () => spawnSync(process.execPath, build, { encoding: 'utf8' })
  const written = () =>
    [...filesBelow(inRoot('dist')), inRoot('node_modules', '.package-lock.json')]
      .filter((path) => !path.endsWith('.tsbuildinfo'))
      .map((path) => `${path} ${statSync(path).mtimeMs}`)
  assert.equal(setUp().status, 0)
  const before = written()
  for (const ending of ['js', 'js.map', 'd.ts'])
    writeFileSync(inRoot('dist', 'base', `deleted.test.${ending}`), '')
  const { status, stdout } = setUp()
  assert.deepEqual([status, stdout], [0, ''])
  assert.deepEqual(written(), before)
})
