/**
 * What `import` of a door makes Node load: no module that only some programs need, of Node or of a fleet.
 *
 * Node loads a dozen files of its own for `performance`, and as many for its CommonJS loader; threads that
 * never use them must not wait for that.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'

const RARE = ['perf_hooks', 'worker_threads', 'module', 'os', 'inspector', 'vm/module', 'http', 'crypto']

for (const door of ['zone', 'store', 'sync', 'fiber', 'stream', 'arrow', '']) {
  test(`import of corespun${door && `/${door}`} loads no module of Node that few programs need`, () => {
    const url = new URL(`../../lib/${door || 'index'}.js`, import.meta.url).href
    const code = `const before = new Set(process.moduleLoadList)
      await import(${JSON.stringify(url)})
      console.log(JSON.stringify(process.moduleLoadList.filter((name) => !before.has(name))))`
    const flags = ['--input-type=module', '-e', code]
    const loaded = JSON.parse(execFileSync(process.execPath, flags, { encoding: 'utf8', env: {} }))
    assert.ok(loaded.length > 0, 'Node lists what it has loaded')
    assert.deepEqual(
      RARE.filter((name) => loaded.includes(`NativeModule ${name}`)),
      [],
    )
  })
}

test('a zone and its first result load no clock of Node', () => {
  const url = new URL('../../lib/zone.js', import.meta.url).href
  const code = `const { zone } = await import(${JSON.stringify(url)})
    const one = zone.create('one', { workers: 1 })
    const sum = await one.run((a, b) => a + b, 1, 2)
    await one.close()
    console.log(JSON.stringify({ sum, loaded: process.moduleLoadList }))`
  const flags = ['--input-type=module', '-e', code]
  const { sum, loaded } = JSON.parse(execFileSync(process.execPath, flags, { encoding: 'utf8', env: {} }))
  assert.equal(sum, 3)
  assert.ok(loaded.includes('NativeModule worker_threads'), 'Node lists what it has loaded')
  assert.ok(!loaded.includes('NativeModule perf_hooks'))
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
