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

test('a syntax error of an ES module, for which V8 names no file: the file and its line', async () => {
  await reasonFor('i.mjs', "#!/usr/bin/env node\nimport {\n  sep,\n} from 'node:path'\nexport const = 3")
  const at = /^SyntaxError: Unexpected token '=' \(\/.*\/i\.mjs:5\)$/
  const text = "export { sep } from 'node:path'\nexport default await import.meta\nimport './i.mjs'"
  assert.match(await reasonFor('j.mjs', text), at)
  const unclosed = ['export const a = `\n${1', 'await 1\nexport const f = () => {\n']
  for (const [index, open] of unclosed.entries())
    assert.match(await reasonFor(`k${index}.mjs`, open), /k\d\.mjs:\d\)$/)
})

test('any path is named as it is written, with its remedy', async () => {
  const home = "a b/it's ü%20#1? (c):2:3"
  mkdirSync(join(folder, 'none', home), { recursive: true })
  await reasonFor(`${home}/lib.mjs`, '')
  const at = `(${join(folder, 'none', home)}/`
  const cases = [
    ['a.mjs', 'export const = 3', /:1\)$/],
    ['b.cjs', 'const = 3', /:1\)$/],
    ['c.cjs', "import './lib.mjs'", /:1\); c\.cjs is CommonJS by its name: rename it to c\.mjs$/],
    ['d.mjs', '\nthrow new Error("no")', /:2:7\)$/],
    ['e.cjs', '\nthrow new Error("no")', /:2:7\)$/],
    ['f.mjs', 'await Promise.resolve()\nnull.x', /:2:6\)$/],
    [
      'g.mjs',
      "import { readFileSync } from 'node:fs'\nreadFileSync('no.json')",
      /directory: no\.json .*:2:1\)$/,
    ],
  ] as const
  for (const [name, text, expected] of cases) {
    const reason = await reasonFor(`${home}/${name}`, text)
    assert.ok(reason.includes(`${at}${name}:`), reason)
    assert.match(reason, expected)
  }
  assert.match(await reasonFor(`${home}/h.mjs`, "import './lib'"), /; name the file itself: '\.\/lib\.mjs'$/)
})
