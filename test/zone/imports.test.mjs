/**
 * What `import` of a door makes Node load: no module that only some programs need, of Node or of a fleet.
 *
 * Node loads a dozen files of its own for `performance`, and as many for its CommonJS loader; threads that
 * never use them must not wait for that.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'

const RARE = ['perf_hooks', 'worker_threads', 'module', 'os', 'inspector', 'vm/module', 'http', 'crypto']
/** Beside those: what requests of some programs need. */
const OF_REQUESTS = ['tls', 'http2', 'dns/promises', 'fs/promises', 'internal/deps/undici/undici']
/** What an import never needs, and worker threads and channels to a parent do. */
const OF_THREADS = ['net', 'zlib', 'stream']
/** Nodes before 24 load undici with the server, see src/http/fetch/native.ts. */
const areLate = Number.parseInt(process.versions.undici) >= 7

/** Those of `rare` that are in a list of Node's. */
function rareIn(loaded, rare) {
  assert.ok(loaded.length > 0, 'Node lists what it has loaded')
  return rare.filter((name) => loaded.includes(`NativeModule ${name}`))
}

for (const door of [
  'zone',
  'store',
  'sync',
  'fiber',
  'stream',
  'arrow',
  'transport',
  '',
  ...(areLate ? ['http'] : []),
]) {
  test(`import of corespun${door && `/${door}`} loads no module of Node that few programs need`, () => {
    const url = new URL(`../../lib/${door || 'index'}.js`, import.meta.url).href
    const code = `const before = new Set(process.moduleLoadList)
      await import(${JSON.stringify(url)})
      console.log(JSON.stringify(process.moduleLoadList.filter((name) => !before.has(name))))`
    const flags = ['--input-type=module', '-e', code]
    const loaded = JSON.parse(execFileSync(process.execPath, flags, { encoding: 'utf8', env: {} }))
    assert.deepEqual(rareIn(loaded, [...RARE, ...OF_REQUESTS, ...OF_THREADS]), [])
  })
}

test('a server and its first responses load nothing of Node beside', { skip: !areLate }, async (t) => {
  const url = new URL('../../lib/http.js', import.meta.url).href
  const code = `const { serve } = await import(${JSON.stringify(url)})
    const loaded = () => process.moduleLoadList
    const server = await serve({ port: 0, quiet: true, routes: { '/': () => 'hello', '/loaded': loaded } })
    process.send(server.port)
    process.once('disconnect', () => process.exit())`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  t.after(() => child.kill())
  const [port] = await once(child, 'message')
  const got = async (path) => (await fetch(`http://127.0.0.1:${port}${path}`)).text()
  assert.equal(await got('/'), 'hello')
  assert.deepEqual(rareIn(JSON.parse(await got('/loaded')), [...RARE, ...OF_REQUESTS]), [])
})

test('a zone and its first result load no clock of Node', () => {
  const url = new URL('../../lib/zone.js', import.meta.url).href
  const code = `const { zone } = await import(${JSON.stringify(url)})
    const one = zone.create('one', { workers: 1 })
    const sum = await one.run((a, b) => a + b, 1, 2)
    const there = await one.run(() => process.moduleLoadList)
    await one.close()
    console.log(JSON.stringify({ sum, there, loaded: process.moduleLoadList }))`
  const flags = ['--input-type=module', '-e', code]
  const { sum, there, loaded } = JSON.parse(
    execFileSync(process.execPath, flags, { encoding: 'utf8', env: {} }),
  )
  assert.equal(sum, 3)
  assert.ok(loaded.includes('NativeModule worker_threads'), 'Node lists what it has loaded')
  assert.deepEqual(rareIn(loaded, ['perf_hooks', ...OF_REQUESTS]), [])
  assert.deepEqual(
    rareIn(
      there,
      [...RARE, ...OF_REQUESTS].filter((name) => name !== 'worker_threads'),
    ),
    [],
  )
})

/** Prints what is asked for and what is found, also what is not found. */
const HOOKS = `import { writeSync } from 'node:fs'
  export async function resolve(specifier, context, next) {
    writeSync(1, specifier + '\\n')
    const found = await next(specifier, context)
    writeSync(1, found.url + '\\n')
    return found
  }`

/** What the import of a door resolves; `condition`: which build of it. */
function resolvedBy(door, condition) {
  const code = `import { register } from 'node:module'
    register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(HOOKS)}`)})
    await import(${JSON.stringify(door)})
    process.exit()`
  const flags = [`--conditions=${condition}`, '--input-type=module', '-e', code]
  const cwd = new URL('../..', import.meta.url)
  // A pipe that is full fails writes of the thread of the hooks with EAGAIN; a file never does.
  const folder = mkdtempSync(join(tmpdir(), 'corespun-imports-'))
  const file = join(folder, 'resolved')
  const descriptor = openSync(file, 'w')
  try {
    execFileSync(process.execPath, flags, { env: {}, cwd, stdio: ['ignore', descriptor, 'inherit'] })
    return readFileSync(file, 'utf8').split('\n')
  } finally {
    closeSync(descriptor)
    rmSync(folder, { recursive: true })
  }
}

/** A file of src/fleet, or a chunk that has its subjects. */
const ofFleet = (line) =>
  line.includes('/fleet/') ||
  (line.startsWith('file:') && readFileSync(new URL(line), 'utf8').includes('corespun.host.'))

for (const condition of ['default', 'corespun-unbundled']) {
  const ofNats = (line) => line.includes('@nats-io')
  for (const door of ['corespun', 'corespun/http', 'corespun/telemetry'])
    test(`import of ${door} (${condition}) loads nothing of a fleet`, () => {
      const resolved = resolvedBy(door, condition)
      assert.ok(resolved.length > 2, 'the hook has seen what is loaded')
      assert.deepEqual(
        resolved.filter((line) => ofFleet(line) || ofNats(line)),
        [],
      )
    })
  test(`import of corespun/fleet (${condition}) loads no client of NATS`, () => {
    const resolved = resolvedBy('corespun/fleet', condition)
    assert.ok(resolved.some(ofFleet))
    assert.deepEqual(resolved.filter(ofNats), [])
  })
}
