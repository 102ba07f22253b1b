/**
 * A program whose own main module is named to a zone: the worker runs it again, and the error reports that.
 *
 * Programs in files of their own, since a main module needs a file.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CORESPUN } from './run.mjs'

const HEAD = `import { zone } from '${CORESPUN}'
const show = ({ code, message }) => console.log(code, message)
`

function messageOf(text) {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-main-'))
  try {
    const file = join(folder, 'main.mjs')
    writeFileSync(file, `${HEAD}${text}`)
    const { stdout, stderr, status } = spawnSync(process.execPath, [file], {
      encoding: 'utf8',
      timeout: 60_000,
    })
    assert.equal(status, 0, stderr)
    return stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('a main module that creates its zone again in a worker is named as the main module', () => {
  const out = messageOf(`
    export const double = (x) => x * 2
    const own = zone.create('own', { workers: 1 })
    await own.execute(import.meta.url, 'double', [2]).catch(show)
    await own.close()`)
  assert.match(
    out,
    /FUNCTION_MODULE module file:.*main\.mjs cannot be loaded: .*a zone named "own" already exists/,
  )
  assert.match(out, /it is the main module of this program, which the worker has run again .* of its own/)
})

test('a main module without the export is named as the main module', () => {
  const out = messageOf(`
    import { isMainThread } from 'node:worker_threads'
    if (isMainThread) {
      const own = zone.create('own', { workers: 1 })
      await own.execute(import.meta.url, 'double', [2]).catch(show)
      await own.close()
    }`)
  assert.match(
    out,
    /FUNCTION_EXPORT_MISSING .* no export "double"; it exports nothing; it is the main module/,
  )
})
