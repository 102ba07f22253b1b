/**
 * Every file of examples/ is run, as a user would run it, and ends well; test/browser serves examples/shop.
 *
 * A TypeScript file is loaded by Corespun's own loader where Node cannot. Files with much to do get
 * arguments that make them do less; whether what they print is right, they check themselves.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { relative } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { filesBelow, inRoot } from '../../scripts/set-up/index.mjs'

const RUN_MS_MAX = 5 * 60_000
const ARGUMENTS = {
  'durable/import.ts': ['--rows', '100000'],
  'service/start.mjs': ['--files', '5'],
  'quicksort/main.mjs': ['--numbers', '200000'],
}

const folder = inRoot('examples')
/**
 * What lies in a folder `page` runs in browsers, and a shop until it is stopped, but for its run under seeds:
 * test/browser has both. The others that are left out have packages and tests of their own.
 */
const files = filesBelow(
  folder,
  (path) =>
    /\.(ts|mts|cts|js|mjs|cjs)$/.test(path) &&
    !/\/(page|nest|next|nitro|workflow)\/|\/shop\/(?!seeds)/.test(path),
)

test('there are examples', () => assert.ok(files.length > 0))

for (const path of files) {
  const name = relative(folder, path)
  test(`examples/${name} runs`, () => {
    const args = [...commandFor(path), ...(ARGUMENTS[name] ?? [])]
    const options = { cwd: inRoot(), encoding: 'utf8', timeout: RUN_MS_MAX }
    const { status, stdout, stderr } = spawnSync(process.execPath, args, options)
    assert.equal(status, 0, stdout + stderr)
    assert.equal(/\bat .*:\d+:\d+\)?$/m.test(stderr), false, stderr)
  })
}

function commandFor(path) {
  if (!path.endsWith('ts')) return [path]
  const program = `
    import 'corespun/typescript'
    await import(${JSON.stringify(pathToFileURL(path).href)})`
  return ['--input-type=module', '-e', program, '--', path]
}
