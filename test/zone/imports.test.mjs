/**
 * What `import` of the bundled doors makes Node load: no module that only some programs need.
 *
 * Node loads a dozen files of its own for `performance`, and as many for its CommonJS loader; threads that
 * never use them must not wait for that.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import test from 'node:test'

const RARE = ['perf_hooks', 'worker_threads', 'module', 'os', 'inspector', 'vm/module', 'http', 'crypto']

for (const door of ['zone', 'store', 'sync', 'fiber', 'arrow', '']) {
  test(`import of corespun${door && `/${door}`} loads no module of Node that few programs need`, () => {
    const url = new URL(`../../lib/${door && `${door}/`}index.js`, import.meta.url).href
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
