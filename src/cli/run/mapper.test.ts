/**
 * What the mapper asks of its zone, for settings at their edges.
 * Its calls are tested with real workers, through the whole program, in test/cli.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readArguments, type RunOptions } from '../arguments.ts'
import { type ItemZoneSettings, Mapper } from './mapper.ts'

const style = { numbered: false, stacks: false, paths: false }

/** The settings of the zone for these words, and how many calls the mapper makes at once. */
async function asked(words: string): Promise<{ settings: ItemZoneSettings; runningMax: number }> {
  const options = readArguments(words.split(' '), false, '/nowhere') as RunOptions
  let settings: ItemZoneSettings | undefined
  const mapper = await Mapper.open('file:///m.js', options, style, (requested) => {
    settings = requested
    const nothing = (): never => assert.fail('no call is made')
    return Promise.resolve({
      execute: nothing,
      module: () => ({}),
      startAll: nothing,
      close: () => Promise.resolve(),
    })
  })
  await mapper.close()
  return { settings: settings as ItemZoneSettings, runningMax: mapper.runningMax }
}

const cases: readonly (readonly [words: string, runningMax: number])[] = [
  ['m.js -w 1', 256],
  ['m.js -w 4 -c 200', 1600],
  ['m.js -w 1024 -c 65536 -t 1s', 16_384],
]
for (const [words, runningMax] of cases) {
  test(`${words}: ${runningMax} calls at once`, async () => {
    const { settings, ...rest } = await asked(words)
    assert.deepEqual([rest.runningMax, settings.tasksMax], [runningMax, runningMax + 1])
  })
}

test('a thread that items share gets longer to let go of one', async () => {
  assert.equal((await asked('m.js -t 1s')).settings.graceMs, 100)
  assert.equal((await asked('m.js -t 1s -c 2')).settings.graceMs, 1000)
})
