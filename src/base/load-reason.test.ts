/**
 * The remedies behind a failed load, by loading files that have the fault. Sentences of Node differ between
 * its versions; the remedies stay the same.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { loadReason } from './load-reason.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-load-'))
after(() => rmSync(folder, { recursive: true, force: true }))

async function reasonFor(name: string, text: string, type?: string): Promise<string> {
  const home = join(folder, type ?? 'none')
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'package.json'), JSON.stringify({ type }))
  writeFileSync(join(home, name), text)
  const loaded = import(pathToFileURL(join(home, name)).href) as Promise<unknown>
  return loaded.then(
    () => 'it loads',
    (thrown: unknown) => loadReason(thrown, pathToFileURL(join(home, name)).href),
  )
}

test('module syntax in a CommonJS file: what makes it CommonJS, and both remedies', async () => {
  const remedies = '; a.js is CommonJS, since package.json has "type": "commonjs": npm pkg set type=module, '
  for (const text of ["import 'node:fs'", 'export const a = 1']) {
    const reason = await reasonFor('a.js', text, 'commonjs')
    assert.ok(reason.endsWith(`${remedies}or name it a.mjs`), reason)
    rmSync(join(folder, 'commonjs', 'a.js'))
  }
  assert.match(
    await reasonFor('b.cjs', 'export default 1', 'module'),
    /; b\.cjs is CommonJS by its name: rename it to b\.mjs$/,
  )
})

test('a syntax error of its own gets no remedy', async () => {
  assert.doesNotMatch(await reasonFor('c.js', "f(export 'a')", 'module'), /CommonJS/)
  assert.doesNotMatch(await reasonFor('d.cjs', 'const = 1'), /CommonJS/)
})

test('JSX: compile it first', async () => {
  assert.match(await reasonFor('e.tsx', 'export default <a/>'), /; compile it to JavaScript first/)
})

test('what Node refuses of TypeScript, by its codes', () => {
  const cases = [
    ['ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX', /^no; compile the file first$/],
    ['ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING', /; copy the file into your project/],
    ['ERR_MODULE_NOT_FOUND', /^no$/],
  ] as const
  for (const [code, expected] of cases) {
    const error = Object.assign(new Error('no'), { code, stack: 'Error: no' })
    assert.match(loadReason(error), expected, code)
  }
})

test('what only compilers find: the file is named, if there is one', async () => {
  await reasonFor('lib.ts', 'export {}')
  const cases = [
    ["import './lib.js'", /; name the file itself: '\.\/lib\.ts'$/],
    ["import '../none/lib'", /; name the file itself: '\.\/lib\.ts'$/],
    ["import './nothing.js'", /nothing\.js' imported from [^;]+$/],
    ["import 'no-such-package'", /no-such-package' imported from [^;]+; npm install no-such-package$/],
    ["import '@no-such/package/deep.js'", /; npm install @no-such\/package$/],
  ] as const
  for (const [index, [text, expected]] of cases.entries())
    assert.match(await reasonFor(`f${index}.mjs`, text), expected)
})

test('a decorator is found in what the module imports, which imports it', async () => {
  await reasonFor('g.mjs', "import './h.mjs'\n@sealed\nclass A {}")
  assert.match(
    await reasonFor('h.mjs', "export * from './g.mjs'"),
    /\/g\.mjs:2\); no Node runs decorators: compile the file first$/,
  )
})
