/**
 * The table of long steps: whole, unique, and chosen by words. The steps themselves are for patient people.
 *
 * Nothing here runs one.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { inRoot } from '../set-up/index.mjs'
import { runLong } from './main.mjs'
import { STEPS } from './steps.mjs'

test('each step has a name of its own, words, a bound in time and a command', () => {
  assert.equal(new Set(STEPS.map(({ name }) => name)).size, STEPS.length)
  for (const { name, what, command, minutesMax } of STEPS)
    assert.ok(/^[\w-]+$/.test(name) && what && command.length > 0 && minutesMax > 0, name)
})

test('a word that chooses nothing is an error with the way to the list', async () => {
  await assert.rejects(
    runLong(['no-such-step']),
    /No step is called no-such-step: see npm run check:long -- --list/,
  )
})

test('repeat runs a command so many times and stops at its first failure', () => {
  const repeat = (program) => {
    const args = [inRoot('scripts', 'long', 'repeat.mjs'), '3', process.execPath, '-e', program]
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    return [status, stdout.trim().split('\n').length]
  }
  assert.deepEqual(repeat(''), [0, 3])
  assert.deepEqual(repeat('process.exit(7)'), [7, 1])
})
