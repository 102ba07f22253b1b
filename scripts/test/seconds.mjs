/**
 * `npm test -- seconds`: how long each test file takes alone, for the choice of the fast suite.
 *
 * Only those of a second and more are kept, in tenths, so that the list changes when a test does.
 */
import { writeFileSync } from 'node:fs'
import { run } from '../set-up/index.mjs'
import { fastOf, testFiles } from './files.mjs'

const SECONDS_MIN = 1

/** Run them one by one and write the list; 0 when all passed. */
export async function measureSeconds() {
  const found = {}
  const failed = []
  for (const file of fastOf(testFiles()).sort()) {
    const began = performance.now()
    const env = { ...process.env, CORESPUN_TEST_PART: '1/3' }
    const { code } = await run(process.execPath, ['--test', file], { env })
    const seconds = (performance.now() - began) / 1000
    console.log(`${seconds.toFixed(1).padStart(6)} s  ${file}`)
    if (code !== 0) failed.push(file)
    if (seconds >= SECONDS_MIN) found[file] = Math.round(seconds * 10) / 10
  }
  writeFileSync(new URL('seconds.json', import.meta.url), `${JSON.stringify(found, undefined, 2)}\n`)
  if (failed.length > 0) console.log(`failed: ${failed.join(' ')}`)
  return failed.length === 0 ? 0 : 1
}
