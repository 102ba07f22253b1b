/**
 * Tables of error codes, and what the code of the HTTP server may import.
 *
 * A code that nothing throws is a promise without content; a core that imports its middleware cannot be read
 * without it.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Source files below a folder, without tests. */
function filesOf(folder, ends) {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ends) && !name.includes('.test.') && !/(^|\/)target\//.test(name))
    .map((name) => [join(folder, name), readFileSync(join(ROOT, folder, name), 'utf8')])
}

const typescript = filesOf('src', '.ts')
const rust = filesOf('crates', '.rs')
/** A row of a table of sentences: a code and the function that makes its sentence. */
const ROW = /^ {2}([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+): \(?[\w{}, ]*\)? =>/gm

test('every error code is used outside of its table', () => {
  const codes = typescript.flatMap(([, text]) => [...text.matchAll(ROW)].map(([, code]) => code))
  assert.ok(codes.length > 100, `${codes.length} codes found`)
  const all = [...typescript, ...rust].map(([, text]) => text).join('\n')
  const unused = codes.filter((code) => !new RegExp(`['"\`]${code}['"\`:]|"${code}: `).test(all))
  assert.deepEqual(unused, [])
})

test('the core of the HTTP server imports no middleware', () => {
  const core = typescript.filter(
    ([path]) => /^src\/http\/(?!middleware\/)/.test(path) && path !== 'src/http/index.ts',
  )
  assert.ok(core.length > 20)
  const found = core.filter(([, text]) => /from '[./]*\/middleware\//.test(text)).map(([path]) => path)
  assert.deepEqual(found, [])
})
