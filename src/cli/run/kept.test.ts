/**
 * The journal of `corespun run` on an engine in memory: what is looked up, recorded, and listed as failed.
 *
 * Files of SQLite, crashes and signals are in test/cli/journal.test.mjs.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { KeyValue } from '../../fleet/internal.ts'
import { readArguments, type RunOptions } from '../arguments.ts'
import { CliError } from '../errors.ts'
import type { Lines } from './item-runner.ts'
import { type Keeping, KeptResults, openKept } from './kept.ts'
import { type Item, KeptLine } from './lines.ts'
import { failureLine } from './records.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-kept-'))
after(() => rmSync(folder, { recursive: true }))

const style = { numbered: false, stacks: false, paths: false }
const ofLines: Keeping = { items: 'lines', style, hashes: false, program: 'v1' }
const ofPaths: Keeping = { ...ofLines, items: 'paths', style: { ...style, paths: true } }
/** What a journal asks of an engine, without one; pages of a single value. */
function newValues(): KeyValue {
  const all = new Map<string, Uint8Array>()
  const values: Pick<KeyValue, 'get' | 'put' | 'page'> = {
    async get(key) {
      const bytes = all.get(key)
      return bytes && { key, bytes, revision: 1 }
    },
    async put(key, bytes) {
      all.set(key, bytes)
      return 1
    },
    async page({ after = '' }) {
      const [key, next] = [...all.keys()].sort().filter((each) => each > after)
      if (key === undefined) return { items: [], next: undefined }
      return { items: [{ key, bytes: all.get(key), revision: 1 }], next: next && key }
    },
  }
  return values as KeyValue
}

async function* batchesOf(items: readonly Item[]): AsyncGenerator<readonly Item[]> {
  yield items.slice(0, 2)
  yield items.slice(2)
}

const one = (text: string): Lines => ({ text, lineCount: 1, failedCount: 0, itemCount: 1 })

/** One run: which items were called, and the lines of all, by `lineOf`. */
async function ran(
  kept: KeptResults,
  items: readonly Item[],
  lineOf: (text: string, item: number) => string = (text) => JSON.stringify(`done ${text}`),
): Promise<{ called: string[]; lines: string[] }> {
  const called: string[] = []
  const lines: string[] = []
  const call = kept.recording(
    async ([text], item) => {
      called.push(text)
      return one(lineOf(text, item))
    },
    (error) => assert.fail(error as Error),
  )
  let number = 0
  for await (const batch of kept.lookedUp(batchesOf(items)))
    for (const item of batch) {
      number++
      if (item instanceof KeptLine) lines.push(item.line)
      else if (typeof item === 'string') lines.push((await call([item], number)).text)
      else lines.push(item.code)
    }
  return { called, lines }
}

const failed = async (kept: KeptResults): Promise<unknown[]> => {
  const all: unknown[] = []
  for await (const line of kept.failures()) all.push(JSON.parse(line))
  return all
}

test('lines that are done have their results, wherever they are now; others run', async () => {
  const values = newValues()
  const first = await ran(new KeptResults(values, ofLines), ['a', 'b', 'a'])
  assert.deepEqual(first.called, ['a', 'b', 'a'], 'equal lines of one run all run')
  const tooLong = new CliError('CLI_LINE_TOO_LONG', { lineCharsMax: 5 })
  const kept = new KeptResults(values, { ...ofLines, program: 'v2' })
  assert.deepEqual(await ran(kept, ['new', 'b', tooLong, 'a', 'a']), {
    called: ['new'],
    lines: ['"done new"', '"done b"', 'CLI_LINE_TOO_LONG', '"done a"', '"done a"'],
  })
  assert.deepEqual([kept.keptCount, kept.earlierCount], [3, 3])
  const parsed = await ran(new KeptResults(values, { ...ofLines, items: 'ndjson' }), ['a'])
  assert.deepEqual(parsed.called, ['a'], 'a value of NDJSON is not a line')
})

test('a kept result has the number of its item in this run', async () => {
  const values = newValues()
  const numbered = { ...ofLines, style: { ...style, numbered: true } }
  const lineOf = (text: string, item: number): string => `{"item":${item},"value":"${text}"}`
  await ran(new KeptResults(values, numbered), ['a', 'b'], lineOf)
  const { lines } = await ran(new KeptResults(values, numbered), ['x', 'y', 'b'], lineOf)
  assert.equal(lines[2], '{"item":3,"value":"b"}')
  assert.deepEqual((await ran(new KeptResults(values, ofLines), ['b'])).lines, ['"b"'])
})

test('what has failed runs again, and is listed with its error until it succeeds', async () => {
  const values = newValues()
  const path = join(folder, 'fails.txt')
  writeFileSync(path, 'x')
  const lineOf = (text: string, item: number): string =>
    failureLine(Object.assign(new Error('bad'), { code: 'BAD' }), item, text, style)
  await ran(new KeptResults(values, ofLines), ['l'.repeat(2000), 'fine'], (text, item) =>
    text === 'fine' ? '1' : lineOf(text, item),
  )
  await ran(new KeptResults(values, ofPaths), [path], lineOf)
  const error = { name: 'Error', code: 'BAD', message: 'bad' }
  const kept = new KeptResults(values, ofPaths)
  assert.deepEqual(await failed(kept), [
    { line: 'l'.repeat(1000), error },
    { path, error },
  ])
  assert.deepEqual(await ran(kept, [path]), { called: [path], lines: [JSON.stringify(`done ${path}`)] })
  assert.equal((await failed(kept)).length, 1)
  await kept.close()
})

test('a file is the same by its size and time of change, or by its content', async () => {
  for (const hashes of [false, true]) {
    const values = newValues()
    const path = join(folder, `changes-${hashes}.txt`)
    const runsAgain = async (): Promise<boolean> => {
      const { called } = await ran(new KeptResults(values, { ...ofPaths, hashes }), [path])
      return called.length === 1
    }
    writeFileSync(path, 'one')
    utimesSync(path, 1000, 1000)
    assert.equal(await runsAgain(), true)
    assert.equal(await runsAgain(), false)
    utimesSync(path, 1000, 2000)
    assert.equal(await runsAgain(), !hashes, 'another time, the same content')
    writeFileSync(path, 'two')
    utimesSync(path, 1000, 2000)
    assert.equal(await runsAgain(), hashes, 'the same size and time, another content')
    writeFileSync(path, 'longer')
    assert.equal(await runsAgain(), true)
    rmSync(path)
    assert.equal(await runsAgain(), true, 'it is not there: its function fails, and nothing is recorded')
    assert.equal(await runsAgain(), true)
  }
})

test('the items of a group, and one that still runs, are recorded before their lines are there', async () => {
  const values = newValues()
  const kept = new KeptResults(values, ofLines)
  for await (const batch of kept.lookedUp(batchesOf(['a', 'b', 'c']))) assert.ok(batch.length > 0)
  const call = kept.recording(
    async () => ({
      text: '1\n2',
      lineCount: 2,
      failedCount: 0,
      itemCount: 2,
      running: Promise.resolve(one('3')),
    }),
    (error) => assert.fail(error as Error),
  )
  const lines = await call(['a', 'b', 'c'], 1)
  assert.deepEqual((await ran(new KeptResults(values, ofLines), ['a', 'b'])).called, [])
  assert.equal((await lines.running)?.text, '3')
  const again = await ran(new KeptResults(values, ofLines), ['a', 'b', 'c'])
  assert.deepEqual(again, { called: [], lines: ['1', '2', '3'] })
  const cut = kept.recording(
    async () => ({ text: '', lineCount: 0, failedCount: 0, itemCount: 1 }),
    (error) => assert.fail(error as Error),
  )
  assert.equal((await cut(['never begun'], 4)).lineCount, 0)
})

test('a journal that cannot be written is reported, and the line is never there', async () => {
  const refusing = {
    get: async () => undefined,
    put: () => Promise.reject(new Error('the disk is full')),
  } as unknown as KeyValue
  const kept = new KeptResults(refusing, ofLines)
  for await (const batch of kept.lookedUp(batchesOf(['a']))) assert.ok(batch)
  const error = await new Promise((failed) => {
    const call = kept.recording(async () => one('1'), failed)
    void call(['a'], 1).then(() => assert.fail('it has a line'))
  })
  assert.equal((error as Error).message, 'the disk is full')
})

if (!isBuiltin('node:sqlite'))
  test('a Node without SQLite is named', async () => {
    const options = readArguments(['m.mjs', '--journal', 'work.db'], () => false, folder) as RunOptions
    await assert.rejects(
      openKept({ ...options, journal: 'work.db' }, { url: 'file:///m.mjs', folder, style }),
      { code: 'FLEET_NODE' },
    )
  })
