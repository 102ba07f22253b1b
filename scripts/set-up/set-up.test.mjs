/**
 * The set-up's own promises: one sentence per missing tool, nothing done twice, one at a time.
 *
 * Tools are played by a function that answers like them; the sentences a person sees are checked by starting
 * the real scripts with an empty PATH.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { mustWrite } from './index.mjs'
import { isInstalled } from './install.mjs'
import { locked } from './lock.mjs'
import { NODE_RANGE, nodeComplaint } from './node-version.mjs'
import { filesBelow, inRoot, ROOT } from './paths.mjs'
import { run } from './run.mjs'
import { atLeast, CARGO_MIN, cargoVersion, checkNpm, needComponent } from './tools.mjs'

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
  for (const version of [
    '20.19.0',
    '20.20.2',
    '22.12.0',
    '22.23.3',
    '24.0.0',
    '25.1.0',
    '26.10.0',
    '30.0.0',
  ]) {
    assert.equal(nodeComplaint(version), '', version)
  }
  for (const version of ['12.22.12', '18.20.8', '20.18.3', '21.7.3', '22.11.0', '23.11.0']) {
    assert.match(nodeComplaint(version), new RegExp(`is ${version}: install Node 24 from https://nodejs.org`))
  }
  assert.equal(NODE_RANGE, JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).engines.node)
})

test('versions compare by number', () => {
  const cases = [
    ['1.89.0', '1.89.0', true],
    ['1.100.0', '1.89.0', true],
    ['1.88.9', '1.89.0', false],
    ['2.0.0', '1.89.0', true],
    ['1.89.1-nightly', '1.89.0', true],
  ]
  for (const [version, least, expected] of cases) assert.equal(atLeast(version, least), expected, version)
})

/** A machine on which commands answer as given; others are missing. */
const machine = (answers) => async (program, args) =>
  answers[[program, ...args].join(' ')] ?? { code: 127, output: '' }

test('cargo: missing, broken and too old are one sentence each', async () => {
  const cargo = (output, code = 0) => machine({ 'cargo --version': { code, output } })
  assert.equal(await cargoVersion(cargo('cargo 1.95.0 (f2d3 2026-03-21)\n')), '1.95.0')
  await assert.rejects(
    cargoVersion(machine({})),
    /there is no cargo: install Rust from https:\/\/rustup.rs\.$/,
  )
  await assert.rejects(cargoVersion(cargo('cargo 1.63.0 (debian)')), /needs Rust .* cargo is 1\.63\.0: run/)
  await assert.rejects(
    cargoVersion(cargo('error: no default toolchain', 1)),
    /no default toolchain\ncargo does not/,
  )
})

test('a component that is missing is added by rustup, or named', async () => {
  const there = { 'cargo clippy --version': { code: 0, output: '' } }
  await needComponent('clippy', machine(there))
  const asked = []
  const adding = async (program, args) => {
    asked.push([program, ...args].join(' '))
    return { code: program === 'rustup' || asked.length > 2 ? 0 : 1, output: '' }
  }
  await needComponent('rustfmt', adding)
  assert.deepEqual(asked, ['cargo fmt --version', 'rustup component add rustfmt', 'cargo fmt --version'])
  await assert.rejects(
    needComponent('clippy', machine({})),
    /needs clippy: run `rustup component add clippy`/,
  )
})

test('the oldest cargo allowed is new enough for every locked crate', () => {
  const args = ['metadata', '--format-version', '1', '--locked']
  const { stdout } = spawnSync('cargo', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1e8 })
  const newer = JSON.parse(stdout).packages.filter(
    ({ rust_version: least }) => least && !atLeast(CARGO_MIN, least),
  )
  assert.deepEqual(
    newer.map(({ name, rust_version: least }) => `${name} needs ${least}`),
    [],
  )
})

/** Run a script as in a fresh clone, without packages, where PATH has node and nothing else. */
function withoutTools(script) {
  return withFolder((folder) => {
    mkdirSync(join(folder, 'bin'))
    symlinkSync(process.execPath, join(folder, 'bin', 'node'))
    const env = { PATH: join(folder, 'bin'), HOME: folder, TMPDIR: folder }
    cpSync(inRoot('scripts'), join(folder, 'scripts'), { recursive: true })
    const options = { env, encoding: 'utf8' }
    const { status, stdout, stderr } = spawnSync('node', [join(folder, 'scripts', script)], options)
    assert.equal(status, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /^Corespun compiles its core with Rust and there is no cargo: [^\n]+\n$/)
  })
}
for (const script of ['start.mjs', 'test.mjs', 'check.mjs', 'check-long.mjs', 'setup.mjs', 'pack.mjs']) {
  test(`${script} without cargo prints one sentence and exits with 1`, withoutTools(script))
}

test('an install is current when npm recorded each locked package', () => {
  const a = { version: '1.0.0', integrity: 'x' }
  const cases = [
    [{ '': {}, 'node_modules/a': a }, { 'node_modules/a': a }, true],
    [{ 'node_modules/a': a }, undefined, false],
    [{ 'node_modules/a': a }, {}, false],
    [{ 'node_modules/a': a }, { 'node_modules/a': { ...a, version: '1.0.1' } }, false],
    [{ 'node_modules/a': a }, { 'node_modules/a': { ...a, integrity: 'y' } }, false],
    [{ 'node_modules/a': { ...a, optional: true } }, {}, true],
    [{ 'node_modules/a': { ...a, optional: true } }, { 'node_modules/a': { ...a, version: '0.9.0' } }, false],
    [{ examples: {}, 'node_modules/e': { link: true } }, {}, true],
  ]
  for (const [lock, record, expected] of cases) {
    const recorded = record && { packages: record }
    assert.equal(isInstalled({ packages: lock }, recorded), expected, JSON.stringify([lock, record]))
  }
})

test('many processes hold the lock one at a time, also when the one that held it was killed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-set-up-'))
  const start = (work, ...args) => {
    const program = `
      import { writeFileSync, rmSync } from 'node:fs'
      import { locked } from ${JSON.stringify(new URL('./lock.mjs', import.meta.url).href)}
      const [name, inside] = process.argv.slice(1)
      await locked(name, async () => { ${work} }, () => {})`
    const command = ['--input-type=module', '-e', program, folder, ...args]
    const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'pipe'] })
    return { child, ended: ended(child) }
  }
  const holder = start("console.log('held'); await new Promise((end) => setTimeout(end, 600_000))")
  await once(holder.child.stdout, 'data')
  const enter = "writeFileSync(inside, '', { flag: 'wx' })"
  const others = Array.from({ length: 6 }, () => {
    return start(
      `${enter}; await new Promise((end) => setTimeout(end, 30)); rmSync(inside)`,
      join(folder, 'in'),
    )
  })
  const lines = []
  const own = locked(
    folder,
    async () => 'held',
    (line) => (lines.push(line), holder.child.kill('SIGKILL')),
  )
  assert.equal(await own, 'held')
  assert.deepEqual(lines, [`set-up: waiting for another process, which is setting up ${folder}`])
  assert.deepEqual(await Promise.all(others.map(({ ended: end }) => end)), Array(6).fill('0 null '))
  assert.equal(await holder.ended, 'null SIGKILL ')
  assert.deepEqual(filesBelow(folder), [])
  rmSync(folder, { recursive: true })
})

/** How a child ended, and what it complained of. */
async function ended(child) {
  let stderr = ''
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const [code, signal] = await once(child, 'close')
  return `${code} ${signal} ${stderr}`
}

test('what throws while it holds the lock lets it go', async () => {
  const work = async () => Promise.reject(new Error('no'))
  await assert.rejects(locked('a name', work), /^Error: no$/)
  assert.equal(await locked('a name', async () => 'held'), 'held')
})

const onPosix = { skip: process.geteuid === undefined && 'permissions are others here' }
test(
  'a checkout that cannot be written is one sentence, or is used when it is set up',
  onPosix,
  withFolder(async (folder) => {
    const native = join(folder, 'native')
    mkdirSync(native)
    chmodSync(native, 0o755) // whatever the umask
    assert.equal(mustWrite(join(folder, '.set-up'), native), true)
    rmSync(join(folder, '.set-up'), { recursive: true })
    chmodSync(folder, 0o555)
    const isRoot = process.geteuid() === 0
    if (isRoot) process.seteuid(65_534)
    try {
      const message = /corespun-set-up-\w+\/\.set-up cannot be written \(EACCES\) .* make it writable/
      assert.throws(() => mustWrite(join(folder, '.set-up'), native), { name: 'Stop', message })
      if (isRoot) process.seteuid(0)
      writeFileSync(join(native, 'corespun.linux-x64-gnu.node'), '')
      if (isRoot) process.seteuid(65_534)
      assert.equal(mustWrite(join(folder, '.set-up'), native), false)
    } finally {
      if (isRoot) process.seteuid(0)
      chmodSync(folder, 0o755)
    }
  }),
)

test('npm: missing and too old are one sentence each', async () => {
  const npm =
    (output, code = 0) =>
    async () => ({ code, output })
  await checkNpm(npm('10.8.2\n'))
  await checkNpm(npm('npm warn Unknown config\n7.0.0\n'))
  await assert.rejects(checkNpm(npm('', 127)), /installs its packages with npm, which was not found/)
  await assert.rejects(checkNpm(npm('6.14.18\n')), /needs npm 7\.0\.0 and npm is 6\.14\.18: run `npm install/)
})

test('what ends a script ends the programs it has started', { timeout: 30_000 }, async () => {
  const program = `
    const { run } = await import(${JSON.stringify(inRoot('scripts/set-up/run.mjs'))})
    await run(process.execPath, ['-e', 'console.log(1); setTimeout(() => {}, 60000)'], { show: true })`
  for (const signal of ['SIGINT', 'SIGTERM']) {
    const script = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
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
  const setUp = () => spawnSync(process.execPath, [inRoot('scripts', 'setup.mjs')], { encoding: 'utf8' })
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
