/**
 * Which changes change the version of a module.
 *
 * Each version is that of a folder of its own.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { urlOf, versionOf } from './version.ts'

const root = mkdtempSync(join(tmpdir(), 'version-'))
after(() => rmSync(root, { recursive: true }))

const FILES = {
  'package-lock.json': '{}',
  'src/score.ts': "import { add } from './add.ts'\nexport const score = (n: number): number => add(n, 1)\n",
  'src/add.ts': 'export const add = (a: number, b: number): number => a + b\n',
  'src/other.ts': 'export const other = 1\n',
}

/** The version of score.ts in a folder of its own with these files instead. */
function versionWith(changes: Record<string, string | Uint8Array> = {}): string {
  const folder = mkdtempSync(join(root, 'deployed-'))
  for (const [path, text] of Object.entries({ ...FILES, ...changes })) {
    mkdirSync(join(folder, 'src'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const path = join(folder, 'src/score.ts')
  assert.equal(versionOf(path), versionOf(pathToFileURL(path)))
  return versionOf(path)
}

test('the same files have the same version wherever they lie', () => {
  assert.match(versionWith(), /^[\da-f]{16}$/)
  assert.equal(versionWith(), versionWith())
  assert.equal(versionWith({ 'src/other.ts': 'export const other = 2\n' }), versionWith())
})

test('the URL of a module is that of its file, also through a link; others stay as they are', () => {
  const folder = realpathSync(mkdtempSync(join(root, 'linked-')))
  const [file, link] = [join(folder, 'a b.ts'), join(folder, 'link')]
  writeFileSync(file, '')
  symlinkSync(folder, link, 'junction')
  const url = pathToFileURL(file).href
  for (const module of [file, url, join(link, 'a b.ts'), pathToFileURL(join(link, 'a b.ts'))])
    assert.equal(urlOf(module), url)
  assert.equal(urlOf(`${pathToFileURL(link).href}/a%20b.ts?v=1#x`), `${url}?v=1#x`)
  for (const module of ['data:text/javascript,export const a = 1', pathToFileURL(join(folder, 'no.ts')).href])
    assert.equal(urlOf(module), module)
})

test('the module, what it imports, and the lock file change it', () => {
  const changed = [
    { 'src/score.ts': `${FILES['src/score.ts']}\n` },
    { 'src/add.ts': 'export const add = (a: number, b: number): number => a - b\n' },
    { 'package-lock.json': '{"lockfileVersion":3}' },
  ].map(versionWith)
  assert.equal(new Set([...changed, versionWith()]).size, 4)
})

test('a file that is not text changes it with each byte', () => {
  const module = "export const bytes = new URL('./score.wasm', import.meta.url)\n"
  const versions = [[0x80, 1], [0xff, 1], [0xff], []].map((bytes) =>
    versionWith({ 'src/score.ts': module, 'src/score.wasm': Uint8Array.from(bytes) }),
  )
  assert.equal(new Set([...versions, versionWith({ 'src/score.ts': module })]).size, 5)
})
