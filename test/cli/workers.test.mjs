/**
 * How many workers a run starts, and that a run whose first worker fails ends as it always did. When exactly
 * the others start: src/cli/run/workers.test.ts.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { start, withoutNotices } from './corespun.mjs'

const preload = `--import=${new URL('started.mjs', import.meta.url).href}`
const counted = { NODE_OPTIONS: preload }

/** Run the module on `fileCount` empty files of a folder. */
async function run(module, fileCount, words, env) {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-workers-'))
  const meeting = mkdtempSync(join(tmpdir(), 'corespun-meeting-'))
  try {
    for (let file = 0; file < fileCount; file++) writeFileSync(join(folder, `${file}.txt`), '')
    const { ended } = start(['run', module, folder, ...words], { env: { ...env, MEETING: meeting } })
    return await ended
  } finally {
    rmSync(folder, { recursive: true })
    rmSync(meeting, { recursive: true })
  }
}

test('a run on many items starts all workers', async () => {
  const { code, out, err } = await run('modules/items.mjs', 40, ['-w', '3'], counted)
  assert.deepEqual([code, out.split('\n').length - 1, err], [0, 40, 'workers: 3\n'])
})

test('a run on few items whose first does not end starts all workers', async () => {
  const { code, out, err } = await run('modules/meets.mjs', 3, ['-w', '3'], { ...counted, ITEMS: '3' })
  assert.deepEqual([code, out, err], [0, '3\n3\n3\n', 'workers: 3\n'])
})

test('a run whose workers cannot start ends with the reason', async () => {
  const { code, out, err } = await run('modules/items.mjs', 2, [], { ...counted, BROKEN_WORKERS: '1' })
  assert.deepEqual([code, out], [2, ''])
  assert.match(withoutNotices(err), /^corespun: .*broken on purpose/m)
})

for (const words of [['nowhere.mjs'], ['modules/items.mjs', '--workers', 'many'], ['--help'], []]) {
  test(`no worker is left of: corespun run ${words.join(' ')}`, async () => {
    const { code, err } = await start(['run', ...words], { env: counted }).ended
    assert.equal(code, words[0] === '--help' ? 0 : 2)
    assert.match(err, /^workers: 0$/m)
  })
}
