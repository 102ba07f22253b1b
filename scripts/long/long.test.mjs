/**
 * The table of long steps: names, bounds and files that exist; and what becomes of planted ones.
 *
 * Nothing here runs one of the table.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { inRoot } from '../set-up/index.mjs'
import { longSteps, runLong } from './main.mjs'

test('each step has a name of its own, words, a bound in time and a command of files that exist', () => {
  const steps = longSteps()
  assert.equal(new Set(steps.map(({ name }) => name)).size, steps.length)
  for (const { name, what, run, minutes } of steps) {
    assert.ok(/^[\w-]+$/.test(name) && what && minutes > 0, name)
    for (const [path] of run.matchAll(/\b(dist|scripts|test)\/\S+js\b/g))
      assert.ok(existsSync(inRoot(path)), path)
  }
})

test('a word that chooses nothing is an error with the way to the list', async () => {
  const message = /No step is called no-such-step: see npm run check:long -- --list/
  await assert.rejects(runLong(['no-such-step']), message)
})

test('a step that fails or takes too long fails the run, one that this machine lacks does not', async (t) => {
  const lines = []
  t.mock.method(console, 'log', (line) => lines.push(line))
  const planted = (run, more) => ({ name: 'planted', what: 'planted', minutes: 1, run, ...more })
  const cases = [
    [planted('node -e ""'), 0, 'ended with 0'],
    [planted('exit 7'), 1, 'ended with 7'],
    [planted('sleep 60', { minutes: 1e-6 }), 1, 'ended with 124: it may take 0.000001 minutes'],
    [planted('exit 7', { requires: 'exit 1' }), 0, 'skipped: exit 1'],
  ]
  for (const [step, code, outcome] of cases) {
    assert.equal(await runLong([], [step]), code)
    assert.equal(lines.at(-1), `\n━━\nplanted ${outcome}`)
  }
})
