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
import { parse } from 'acorn'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Source files below a folder, without tests. */
function filesOf(folder, ends) {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ends) && !name.includes('.test.') && !/(^|\/)target\//.test(name))
    .map((name) => [join(folder, name), readFileSync(join(ROOT, folder, name), 'utf8')])
}

const typescript = filesOf('src', '.ts')
const rust = filesOf('crates', '.rs')
const compiled = filesOf('dist', '.js')
/** A row of a table of sentences: a code and the function that makes its sentence. */
const ROW = /^ {2}([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+): (?:\([^)]*\) =>|\w+ =>|argumentSentence,)/gm
const COMPARISONS = new Set(['===', '!==', '==', '!='])

/**
 * The strings of a program that can become the code of an error: not comments, keys, types, what is compared
 * with or a `case`.
 * @param {string} text JavaScript.
 * @returns {Set<string>}
 */
function codesMade(text) {
  const found = new Set()
  const visit = (node) => {
    if (node === null || typeof node !== 'object') return
    if (Array.isArray(node)) return node.forEach(visit)
    if (node.type === 'BinaryExpression' && COMPARISONS.has(node.operator)) return
    if (node.type === 'Literal' && typeof node.value === 'string') found.add(node.value)
    for (const [field, child] of Object.entries(node)) {
      const isKey = field === 'key' && !node.computed
      if (!isKey && !(node.type === 'SwitchCase' && field === 'test')) visit(child)
    }
  }
  visit(parse(text, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true }))
  return found
}

test('a string in a comment, a key, a comparison or a case makes no error', () => {
  const text = `
    // throw new E('A_COMMENT')
    const sentences = { A_ROW: () => 'text', 'A_KEY': () => '' }
    if (error.code === 'A_COMPARED') throw new E('A_THROWN', {})
    switch (code) { case 'A_CASE': break }
    const code = isLate ? 'A_LATE' : 'AN_EARLY'`
  const codes = [...codesMade(text)].filter((code) => /^[A-Z_]+$/.test(code))
  assert.deepEqual(codes, ['A_THROWN', 'A_LATE', 'AN_EARLY'])
})

/** Codes of the core that no table has, and why. */
const CORE_ONLY = {
  BUFFER_NOT_DETACHABLE: 'the transport refuses the value, with its path',
  BUFFER_TAKEN: 'frames refer to a moved buffer once',
  BUFFER_UNSUPPORTED: 'the transport refuses the value, with its path',
  NATIVE_ARGUMENT: 'an argument that no part of Corespun passes',
  NATIVE_LINK: 'a worker of an isolated zone could not start: ZONE_START_FAILED contains it',
  NATIVE_MEMORY: 'described below the table of errors.md',
  EIO: 'HTTP_LISTEN contains it',
  ETLS: 'HTTP_TLS_KEY contains it',
}

test('every error code of the core has a sentence, or a reason why it needs none', () => {
  const tables = new Set(typescript.flatMap(([, text]) => [...text.matchAll(ROW)].map(([, code]) => code)))
  const thrown = rust.flatMap(([, text]) =>
    [...text.matchAll(/\bThrown\(\s*"([A-Z_]+)"/g)].map(([, code]) => code),
  )
  const unknown = [...new Set(thrown)].filter((code) => !tables.has(code))
  assert.deepEqual(unknown.sort(), Object.keys(CORE_ONLY).sort())
})

test('every error code is thrown somewhere', () => {
  const codes = typescript.flatMap(([, text]) => [...text.matchAll(ROW)].map(([, code]) => code))
  assert.ok(codes.length > 100, `${codes.length} codes found`)
  const made = new Set(compiled.flatMap(([, text]) => [...codesMade(text)]))
  const native = rust.map(([, text]) => text.replace(/^\s*\/\/.*$/gm, '')).join('\n')
  const unused = codes.filter((code) => !made.has(code) && !new RegExp(`"${code}(: |")`).test(native))
  assert.deepEqual(unused, [])
})

test('every error code has its remedy in the guide of errors', () => {
  const codes = typescript.flatMap(([, text]) => [...text.matchAll(ROW)])
  const guide = readFileSync(join(ROOT, 'docs/guide/errors.md'), 'utf8')
  const rows = guide.split('\n').filter((line) => /^\| .+ \| .+ \| .+ \|$/.test(line))
  const missing = codes
    .map(([, code]) => code)
    .filter((code) => !rows.some((row) => row.includes(`\`${code}\``)))
  assert.deepEqual(missing, [])
  const named = rows.flatMap((row) => [...row.split(' | ')[0].matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)])
  const known = new Set(codes.map(([, code]) => code))
  assert.deepEqual(
    named.map(([, code]) => code).filter((code) => !known.has(code)),
    [],
  )
})

test('the core of the HTTP server imports no middleware', () => {
  const isOther = /^src\/http\/(middleware\/|coding\/(de)?compress\.|(index|internal)\.ts$)/
  const core = typescript.filter(([path]) => path.startsWith('src/http/') && !isOther.test(path))
  assert.ok(core.length > 20)
  const found = core
    .filter(([, text]) => /from '[./]*\/(middleware\/|coding\/(de)?compress\.)/.test(text))
    .map(([path]) => path)
  assert.deepEqual(found, [])
})
