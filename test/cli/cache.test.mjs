/**
 * Node's compile cache: the command has it and so have its workers; those of a program have it if the program
 * does.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import module from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { program } from '../zone/run.mjs'
import { start } from './corespun.mjs'

const whereCached = { skip: module.enableCompileCache === undefined && 'Node 20 has no compile cache' }

/** The folder of a worker's cache, and what a run left in its temporary folder. */
async function runWith(env) {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-cache-'))
  const defaults = { NODE_COMPILE_CACHE: undefined, NODE_DISABLE_COMPILE_CACHE: undefined }
  const temporary = { TMPDIR: folder, TEMP: folder, TMP: folder }
  // A run of more than a second would have a control socket there.
  const notCounted = { NODE_V8_COVERAGE: undefined, CORESPUN_OBSERVE: 'off' }
  try {
    const { ended } = start(['run', 'modules/cache.mjs', 'corespun.mjs'], {
      env: { ...defaults, ...temporary, ...notCounted, ...env },
    })
    const { code, out, err } = await ended
    assert.deepEqual([code, err], [0, ''])
    return { folder, cache: JSON.parse(out), left: readdirSync(folder, { recursive: true }) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test(
  'a command keeps compiled modules in the temporary folder, those of its workers too',
  whereCached,
  async () => {
    const { folder, cache, left } = await runWith({})
    assert(cache.startsWith(join(folder, 'node-compile-cache')), cache)
    // The folder, the one for this Node, and a file for each module.
    assert(left.length > 10, left.join('\n'))
  },
)

for (const env of [{ NODE_DISABLE_COMPILE_CACHE: '1' }, { NODE_V8_COVERAGE: join(tmpdir(), 'coverage') }]) {
  const [[name, value]] = Object.entries(env)
  test(`a command keeps nothing under ${name}`, async () => {
    try {
      const { cache, left } = await runWith(env)
      assert.deepEqual([cache, left], [null, []])
    } finally {
      if (name === 'NODE_V8_COVERAGE') rmSync(value, { recursive: true, force: true })
    }
  })
}

test('the workers of a program that turned the cache on have the same', whereCached, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-cache-'))
  try {
    const { code, out, err } = await program(`
      const { enableCompileCache, getCompileCacheDir } = process.getBuiltinModule('node:module')
      const inWorker = async (id) => {
        const own = zone.create(id, { workers: 1 })
        const cache = await own.run(() => process.getBuiltinModule('node:module').getCompileCacheDir())
        await own.close()
        return cache
      }
      console.log(getCompileCacheDir() === (await inWorker('before')))
      enableCompileCache(${JSON.stringify(folder)})
      const cache = await inWorker('after')
      console.log(cache.startsWith(${JSON.stringify(folder)}), cache === getCompileCacheDir())`)
    assert.deepEqual([code, out, err], [0, 'true\ntrue true', ''])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
