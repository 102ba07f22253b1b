/**
 * Module names against what they should find, in a folder with packages of every kind.
 * An error names a missing module as it was written.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { resolveModule } from './resolve.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-cli-'))
after(() => rmSync(folder, { recursive: true }))

const files: Readonly<Record<string, string>> = {
  'score.ts': '',
  'dir/score.js': '',
  'node_modules/plain/package.json': '{"main":"main.js"}',
  'node_modules/plain/main.js': '',
  'node_modules/plain/extra.js': '',
  'node_modules/@scope/both/package.json': '{"exports":{".":{"import":"./a.mjs","require":"./a.cjs"}}}',
  'node_modules/@scope/both/a.mjs': '',
  'node_modules/@scope/both/a.cjs': '',
  'node_modules/esm/package.json':
    '{"exports":{".":{"types":"./x.d.ts","import":{"node":"./main.mjs"}},"./sub":{"import":"./sub.mjs"}}}',
  'node_modules/esm/main.mjs': '',
  'node_modules/esm/sub.mjs': '',
  'node_modules/esm-string/package.json': '{"exports":{"import":"./only.mjs"}}',
  'node_modules/esm-string/only.mjs': '',
}
for (const [path, text] of Object.entries(files)) {
  mkdirSync(join(folder, path, '..'), { recursive: true })
  writeFileSync(join(folder, path), text)
}

const urlOf = (path: string): string => pathToFileURL(join(folder, path)).href

const found: readonly (readonly [module: string, url: string])[] = [
  ['score.ts', urlOf('score.ts')],
  ['./score.ts', urlOf('score.ts')],
  ['dir/../score.ts', urlOf('score.ts')],
  [join(folder, 'score.ts'), urlOf('score.ts')],
  [urlOf('score.ts'), urlOf('score.ts')],
  ['plain', urlOf('node_modules/plain/main.js')],
  ['plain/extra.js', urlOf('node_modules/plain/extra.js')],
  ['@scope/both', urlOf('node_modules/@scope/both/a.cjs')],
  ['esm', urlOf('node_modules/esm/main.mjs')],
  ['esm/sub', urlOf('node_modules/esm/sub.mjs')],
  ['esm-string', urlOf('node_modules/esm-string/only.mjs')],
  ['node:path', 'node:path'],
  ['path', 'node:path'],
]
for (const [module, url] of found) {
  test(`found: ${module.replace(folder, '<folder>')}`, () => assert.equal(resolveModule(module, folder), url))
}

const missing: readonly (readonly [module: string, hint?: string])[] = [
  ['nope.ts'],
  ['./nope.ts'],
  ['/nope.ts'],
  ['file:///nope.ts'],
  ['file://host/x'],
  ['no-package'],
  ['plain/nope.js'],
  ['esm/nope'],
  ['score', 'did you mean score.ts?'],
  ['./score.mts', 'did you mean score.ts?'],
  ['dir/scoer.js', 'did you mean dir/score.js?'],
  ['dir', 'it is a folder: name a file in it'],
]
for (const [module, hint] of missing) {
  test(`missing: ${module}`, () => {
    const why = `${module}: no such module, neither a file here nor an installed package`
    const message = hint === undefined ? why : `${why}; ${hint}`
    assert.throws(() => resolveModule(module, folder), { code: 'CLI_MODULE_MISSING', message })
  })
}
