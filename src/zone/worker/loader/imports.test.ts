/**
 * Which files belong to a module, as a table of sources; paths are relative to a folder.
 *
 * The oracle is written beside each source.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { after, test } from 'node:test'
import { sourcesOf } from './imports.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-imports-')))
after(() => rmSync(folder, { recursive: true }))

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

write('a.ts', "import type { B } from './b.ts'\nimport './deep/c.js'\nexport type A = B\n")
write('b.ts', 'export type B = number\n')
write('deep/c.js', "import '../a.ts'\nexport * from './data.json' with { type: 'json' }\n")
write('deep/data.json', '{"type":"x"}')
write('common.cjs', "module.exports = require('./inside')\n")
write('inside.cjs', '')
write('inside.js', '')
write('node_modules/far/package.json', '{ "name": "far", "main": "main.js" }')
write('node_modules/far/main.js', '')
write('packages/near/package.json', '{ "name": "near", "main": "main.js" }')
write('packages/near/main.js', "import './more.js'\n")
write('packages/near/more.js', '')
symlinkSync(join(folder, 'packages', 'near'), join(folder, 'node_modules', 'near'))

const ROWS: readonly (readonly [source: string, ...files: string[]])[] = [
  ['export const x = 1'],
  ["import { a } from './b.ts'", 'b.ts'],
  ["export { a } from './b.ts'\nexport * from './inside.js'", 'b.ts', 'inside.js'],
  ["import './a.ts'", 'a.ts', 'deep/c.js', 'deep/data.json'],
  ["const load = () => import('./b.ts')", 'b.ts'],
  ['const load = (name: string) => import(`./${name}.ts`)'],
  ["zone.cpu.module(new URL('./b.ts', import.meta.url))", 'b.ts'],
  ["new URL('./b.ts', 'http://a'), new URL('./b.ts'), new Date('./b.ts')"],
  ["const inside = require('./inside')", 'inside.js'],
  ["import './common.cjs'", 'common.cjs', 'inside.js'],
  ["import 'node:fs'\nimport 'fs'\nimport 'data:text/javascript,0'"],
  ["import 'far'\nimport 'near'", 'packages/near/main.js', 'packages/near/more.js'],
  ["import 'missing'\nimport './missing.ts'", 'missing.ts'],
  ["import './missing'"],
  ["import './b.ts'\nthis does not parse"],
]
for (const [index, [source, ...files]] of ROWS.entries()) {
  test(`${JSON.stringify(source)} consists of itself and ${files.join(', ') || 'nothing else'}`, () => {
    const entry = `entry-${index}.ts`
    write(entry, source)
    const found = sourcesOf(join(folder, entry))
    assert.deepEqual([...found.keys()].map((path) => relative(folder, path)).sort(), [entry, ...files].sort())
    assert.equal(found.get(join(folder, entry)), source)
  })
}

test('a file that cannot be read has no text', () => {
  assert.deepEqual([...sourcesOf(join(folder, 'none.ts'))], [[join(folder, 'none.ts'), undefined]])
})
