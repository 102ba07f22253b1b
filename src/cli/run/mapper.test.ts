/**
 * What the mapper asks of its zone, for settings at their edges, and what it makes of groups that end early.
 * Its calls are tested with real workers, through the whole program, in test/cli.
 */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { readArguments, type RunOptions } from '../arguments.ts'
import { getEnvironmentData } from 'node:worker_threads'
import type { Lines } from './item-runner.ts'
import { type Job, JOB_KEY } from './job.ts'
import { Journal } from './journal.ts'
import { type ItemZoneSettings, Mapper } from './mapper.ts'
import type { GroupEnd } from './worker.ts'

const style = { numbered: false, stacks: false, paths: false }

/** The settings of the zone for these words, and how many calls the mapper makes at once. */
async function asked(words: string): Promise<{ settings: ItemZoneSettings; runningMax: number }> {
  const options = readArguments(words.split(' '), () => false, '/nowhere') as RunOptions
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
  ['m.js -w 1', 4],
  ['m.js -w 1 -t 1s', 256],
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

/** A call of a mapper whose worker does what `work` does with the journal. */
async function called(
  texts: readonly string[],
  work: (journal: Journal) => GroupEnd | Promise<GroupEnd>,
): Promise<{ lines: Lines; mapper: Mapper }> {
  const options = readArguments(['m.js', '-w', '1'], () => false, '/nowhere') as RunOptions
  const mapper = await Mapper.open('file:///m.js', options, style, () => {
    const { journals } = getEnvironmentData(JOB_KEY) as unknown as Job
    const mapGroup = async (...args: unknown[]): Promise<unknown> =>
      work(new Journal(journals as SharedArrayBuffer, args[2] as number))
    const execute = (): never => assert.fail('no other call is made')
    const calls = { execute, startAll: execute, module: () => ({ mapGroup }) }
    return Promise.resolve({ ...calls, close: () => Promise.resolve() })
  })
  return { lines: await mapper.call(texts, 11), mapper }
}

/** Items begin and end with their numbers; those after the last one only begin if `begins`. */
function worked(journal: Journal, count: number, begins = false): void {
  for (let item = 1; item <= count; item++) journal.end(String(journal.begin() ? item : undefined))
  if (begins) journal.begin()
}

const DIED = new Error('died')
const deaths: readonly (readonly [
  name: string,
  count: number,
  begins: boolean,
  done: number,
  last: RegExp,
])[] = [
  ['in its first item', 0, true, 1, /"item":11.*died/],
  ['in a later item', 2, true, 3, /"item":13.*died/],
  ['between two items', 2, false, 2, /^2$/],
  ['before its first item', 0, false, 1, /"item":11.*died/],
  ['after its last item', 4, false, 4, /^4$/],
]
for (const [name, count, begins, done, last] of deaths) {
  test(`a worker that dies ${name}: what has ended has its line, and the others run`, async () => {
    const { lines, mapper } = await called(['a', 'b', 'c', 'd'], (journal) => {
      worked(journal, count, begins)
      throw DIED
    })
    const all = lines.text.split('\n')
    assert.deepEqual([all.length, lines.lineCount, lines.itemCount], [done, done, done])
    assert.equal(lines.failedCount, done - count)
    assert.match(all.at(-1) as string, last)
    await mapper.close()
  })
}

test('a line that the journal has no capacity for comes with the end of the group', async () => {
  const { lines, mapper } = await called(['a', 'b', 'c'], (journal) => {
    worked(journal, 1)
    return [1, false, '!wide']
  })
  assert.deepEqual(lines, { text: '1\n!wide', lineCount: 2, failedCount: 1, itemCount: 2 })
  await mapper.close()
})

test('items that the cutoff keeps from starting are done, without lines', async () => {
  const { lines, mapper } = await called(['a', 'b', 'c'], (journal) => {
    worked(journal, 1)
    return [1, true, undefined]
  })
  assert.deepEqual(lines, { text: '1', lineCount: 1, failedCount: 0, itemCount: 3 })
  await mapper.close()
})

for (const count of [0, 2]) {
  test(`a group whose item after ${count} others is slow is split at it`, async () => {
    mock.timers.enable({ apis: ['setInterval'] })
    let end!: () => void
    const released = new Promise<void>((resolve) => (end = resolve))
    const { lines, mapper } = await called(['a', 'b', 'c', 'd'], (journal) => {
      worked(journal, count, true)
      queueMicrotask(() => {
        mock.timers.tick(50)
        mock.timers.tick(50)
      })
      return released.then(() => {
        journal.end('!slow')
        assert.equal(journal.begin(), false)
        return [100, false, undefined]
      })
    })
    mock.timers.reset()
    const { running, ...ended } = lines
    const text = count === 0 ? '' : '1\n2'
    assert.deepEqual(ended, { text, lineCount: count, failedCount: 0, itemCount: count })
    end()
    assert.deepEqual(await running, { text: '!slow', lineCount: 1, failedCount: 1, itemCount: 1 })
    await mapper.close()
  })
}
