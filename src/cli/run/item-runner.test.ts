/**
 * The runner against its promise: every item's line once, in order when asked, never more held than allowed.
 *
 * Calls are settled by hand in an order chosen by fast-check, so every interleaving is a run without time in
 * it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CliError } from '../errors.ts'
import { KeptLine } from './lines.ts'
import { ItemRunner, type Lines, type ReadyItem, type RunnerPlan, type Sink } from './item-runner.ts'
import { failureLine, isFailure } from './records.ts'

const style = { numbered: false, stacks: false, paths: false }

interface OpenCall {
  readonly item: number
  readonly settle: (line: string | undefined) => void
}

function linesOf(line: string | undefined): Lines {
  if (line === undefined) return { text: '', lineCount: 0, failedCount: 0, itemCount: 1 }
  return { text: line, lineCount: 1, failedCount: isFailure(line) ? 1 : 0, itemCount: 1 }
}

/** A runner whose calls are settled from outside, with what went in and out. */
class Bench implements Sink {
  readonly open: OpenCall[] = []
  readonly lines: string[] = []
  readonly runner: ItemRunner
  blocked = false
  /** What {@link RunnerPlan.onStop} received, each time. */
  readonly stops: number[] = []
  readonly firstItem: number
  openMost = 0
  heldMost = 0

  constructor(plan: Partial<RunnerPlan> = {}) {
    this.firstItem = plan.firstItem ?? 1
    this.runner = new ItemRunner({
      call: (_texts, item) =>
        new Promise((resolve) => {
          this.open.push({ item, settle: (line) => resolve(linesOf(line)) })
          this.openMost = Math.max(this.openMost, this.open.length)
          this.heldMost = Math.max(this.heldMost, item - this.lines.length)
        }),
      sizeNow: () => 1,
      sink: this,
      style,
      firstItem: 1,
      ordered: true,
      failFast: false,
      runningMax: 8,
      heldMax: 16,
      heldCharsMax: 1000,
      onStop: (failed) => void this.stops.push(failed),
      ...plan,
    })
  }

  write(lines: string, count: number): void {
    const all = lines.split('\n')
    assert.equal(all.length, count)
    this.lines.push(...all)
  }

  /** Settle the open call at `index`, wrapped round. */
  settle(index: number, line: (item: number) => string | undefined = String): void {
    const [call] = this.open.splice(index % this.open.length, 1)
    call?.settle(line(call.item))
  }
}

const turn = (): Promise<void> => new Promise((done) => setImmediate(done))

async function* batchesOf(items: readonly ReadyItem[], size = 5): AsyncGenerator<readonly ReadyItem[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}

const texts = (count: number): string[] => Array.from({ length: count }, (_, index) => `text ${index + 1}`)
const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index + 1))

/** Map `count` items, settling calls in the order that `picks` chooses. */
async function finished(bench: Bench, count: number, picks: readonly number[]): Promise<void> {
  const whole = bench.runner.run(batchesOf(texts(count)))
  for (let step = 0; ; step++) {
    await turn()
    if (bench.open.length === 0) break
    bench.settle(picks[step % picks.length])
  }
  const summary = await whole
  assert.deepEqual(summary, { writtenCount: count, failedCount: 0, nextItem: bench.firstItem + count })
}

const interleavings = fc.tuple(fc.nat(60), fc.array(fc.nat(100), { minLength: 1, maxLength: 30 }))

test('ordered: the lines are in the order of the items however the calls end', async () => {
  await fc.assert(
    fc.asyncProperty(interleavings, async ([count, picks]) => {
      const bench = new Bench()
      await finished(bench, count, picks)
      assert.deepEqual(bench.lines, numbers(count))
      assert(bench.openMost <= 8 && bench.heldMost <= 16)
    }),
    { numRuns: 60 },
  )
})

test('unordered: each line once', async () => {
  await fc.assert(
    fc.asyncProperty(interleavings, async ([count, picks]) => {
      const bench = new Bench({ ordered: false })
      await finished(bench, count, picks)
      assert.deepEqual(
        bench.lines.map(Number).sort((one, other) => one - other),
        numbers(count).map(Number),
      )
    }),
    { numRuns: 30 },
  )
})

test('unordered lines come at once, ordered ones wait for the first', async () => {
  for (const ordered of [false, true]) {
    const bench = new Bench({ ordered })
    const whole = bench.runner.run(batchesOf(texts(3)))
    await turn()
    bench.settle(2)
    bench.settle(1)
    await turn()
    assert.deepEqual(bench.lines, ordered ? [] : ['3', '2'])
    bench.settle(0)
    await whole
    assert.deepEqual(bench.lines, ordered ? ['1', '2', '3'] : ['3', '2', '1'])
  }
})

test('a slow first item stops the reading when heldMax items wait for it', async () => {
  const bench = new Bench()
  const whole = bench.runner.run(batchesOf(texts(100)))
  for (let step = 0; step < 200; step++) {
    await turn()
    if (bench.open.length > 1) bench.settle(1)
  }
  assert.equal(bench.open.length, 1)
  assert.equal(bench.heldMost, 16)
  assert.deepEqual(bench.lines, [])
  while (bench.lines.length < 100) {
    if (bench.open.length > 0) bench.settle(0)
    await turn()
  }
  await whole
  assert.deepEqual(bench.lines, numbers(100))
})

test('long items bound the reading by their characters', async () => {
  const bench = new Bench({ heldCharsMax: 1000 })
  const whole = bench.runner.run(batchesOf(Array.from({ length: 6 }, () => 'x'.repeat(600))))
  await turn()
  assert.equal(bench.open.length, 2)
  while (bench.lines.length < 6) {
    bench.settle(0)
    await turn()
    assert(bench.open.length <= 2)
  }
  await whole
})

test('a blocked sink stops the reading until it has capacity', async () => {
  const bench = new Bench()
  bench.blocked = true
  const whole = bench.runner.run(batchesOf(texts(3)))
  await turn()
  assert.equal(bench.open.length, 0)
  bench.blocked = false
  bench.runner.resume()
  await turn()
  assert.equal(bench.open.length, 3)
  for (let left = 3; left > 0; left--) bench.settle(0)
  await whole
})

test('an item that is an error is a failure, without a call', async () => {
  const missing = new CliError('CLI_INPUT_UNREADABLE', { input: 'b', reason: 'deleted' })
  const bench = new Bench()
  const whole = bench.runner.run(batchesOf(['a', missing, 'c']))
  await turn()
  assert.deepEqual(
    bench.open.map((call) => call.item),
    [1, 3],
  )
  bench.settle(1)
  bench.settle(0)
  assert.deepEqual(await whole, { writtenCount: 3, failedCount: 1, nextItem: 4 })
  assert.equal((JSON.parse(bench.lines[1]) as { item: number }).item, 2)
})

test('lines of an earlier run are written at their positions, without a call', async () => {
  const some = fc.array(fc.boolean(), { maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(some, fc.boolean(), async (kept, ordered) => {
      const bench = new Bench({ ordered })
      const items = kept.map((isKept, index) => (isKept ? new KeptLine(String(index + 1)) : 'text'))
      const whole = bench.runner.run(batchesOf(items, 13))
      const called: number[] = []
      for (await turn(); bench.open.length > 0; await turn()) {
        called.push(bench.open[0].item)
        bench.settle(0)
      }
      const { length } = kept
      assert.deepEqual(await whole, { writtenCount: length, failedCount: 0, nextItem: length + 1 })
      assert.equal(called.length, kept.filter((isKept) => !isKept).length)
      assert.ok(called.every((item) => !kept[item - 1]))
      const byNumber = (one: string, other: string): number => Number(one) - Number(other)
      assert.deepEqual(ordered ? bench.lines : bench.lines.sort(byNumber), numbers(length))
    }),
    { numRuns: 60 },
  )
})

test('a call that rejects is a failure', async () => {
  const bench = new Bench({ call: (_texts, item) => Promise.reject(new Error(`no ${item}`)) })
  assert.equal((await bench.runner.run(batchesOf(texts(2)))).failedCount, 2)
  assert.match(bench.lines.join(), /no 1.*no 2/)
})

test('stopped: what runs is finished, the rest is not done, and the summary has the next item', async () => {
  for (const ordered of [true, false]) {
    const bench = new Bench({ ordered })
    const whole = bench.runner.run(batchesOf(texts(50)))
    await turn()
    assert.equal(bench.open.length, 8)
    bench.runner.stop()
    bench.runner.stop()
    assert.deepEqual(bench.stops, [0])
    // Items 1 to 3 had started; the cutoff turned the others back, which is quicker.
    for (let left = 5; left > 0; left--) bench.settle(3, () => undefined)
    for (const index of [1, 1, 0]) bench.settle(index)
    assert.deepEqual(await whole, { writtenCount: 3, failedCount: 0, nextItem: 4 })
    assert.deepEqual(bench.lines.sort(), ['1', '2', '3'])
  }
})

const failing = (item: number): string => failureLine(new Error('bad'), item, '', style)

test('fail-fast, ordered: the failure is the last line; no item after it is awaited', async () => {
  const bench = new Bench({ failFast: true })
  const whole = bench.runner.run(batchesOf(texts(50)))
  await turn()
  bench.settle(5) // 6
  bench.settle(2, failing) // 3
  await turn()
  assert.deepEqual(bench.stops, [3])
  assert.deepEqual(bench.lines, [])
  bench.settle(1) // 2
  bench.settle(0) // 1
  assert.deepEqual(await whole, { writtenCount: 3, failedCount: 1, nextItem: 4 })
  assert.deepEqual(bench.lines.slice(0, 2), ['1', '2'])
  assert.equal((JSON.parse(bench.lines[2] as string) as { item: number }).item, 3)
  assert.equal(bench.lines.length, 3)
})

test('fail-fast, unordered: the failure is the last line', async () => {
  const bench = new Bench({ failFast: true, ordered: false })
  const whole = bench.runner.run(batchesOf(texts(50)))
  await turn()
  bench.settle(5)
  bench.settle(2, failing)
  bench.settle(0)
  assert.deepEqual(await whole, {
    writtenCount: 2,
    failedCount: 1,
    nextItem: bench.runner.summary().nextItem,
  })
  assert.equal(bench.lines.length, 2)
})

test('fail-fast: an item that fails without a call lets all earlier ones run', async () => {
  const tooLong = new CliError('CLI_LINE_TOO_LONG', { lineCharsMax: 5 })
  const bench = new Bench({ failFast: true })
  const whole = bench.runner.run(batchesOf(['a', 'b', tooLong, 'd']))
  await turn()
  assert.deepEqual(bench.stops, [3])
  for (let left = 2; left > 0; left--) bench.settle(left - 1)
  assert.deepEqual(await whole, { writtenCount: 3, failedCount: 1, nextItem: 4 })
  assert.deepEqual(bench.lines.slice(0, 2), ['1', '2'])
})

test('after skipped items the numbers continue, ordered or not', async () => {
  for (const ordered of [true, false]) {
    const bench = new Bench({ firstItem: 41, ordered })
    await finished(bench, 3, [0])
    assert.deepEqual(bench.lines, ['41', '42', '43'])
  }
})

/** The lines of a call of several items, of which `count` have ended. */
const ended = (first: number, count: number): Lines => ({
  text: numbers(first + count - 1)
    .slice(first - 1)
    .join('\n'),
  lineCount: count,
  failedCount: 0,
  itemCount: count,
})

test('calls of several items that end early or at a slow item: each line once, in order', async () => {
  const schedules = fc.tuple(
    fc.integer({ min: 1, max: 60 }),
    fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.nat(9), fc.boolean()), {
      minLength: 1,
      maxLength: 20,
    }),
    fc.boolean(),
  )
  await fc.assert(
    fc.asyncProperty(schedules, async ([count, steps, ordered]) => {
      let [step, running] = [0, 0]
      const ran: number[] = []
      const bench = new Bench({
        ordered,
        runningMax: 3,
        sizeNow: () => steps[step % steps.length][0],
        call: async (some, first) => {
          const [, most, isSlow] = steps[step++ % steps.length]
          assert.ok(++running <= 3, 'no more calls than allowed')
          assert.deepEqual(some, texts(first + some.length - 1).slice(first - 1))
          for (let turns = most % 3; turns >= 0; turns--) await turn()
          const done = Math.min(some.length, most)
          if (isSlow && done < some.length) {
            ran.push(
              ...numbers(first + done)
                .slice(first - 1)
                .map(Number),
            )
            const slow = turn()
              .then(turn)
              .then(() => (running--, ended(first + done, 1)))
            return { ...ended(first, done), running: slow }
          }
          running--
          ran.push(
            ...numbers(first + Math.max(1, done) - 1)
              .slice(first - 1)
              .map(Number),
          )
          return ended(first, Math.max(1, done))
        },
      })
      const summary = await bench.runner.run(batchesOf(texts(count), 13))
      assert.deepEqual(summary, { writtenCount: count, failedCount: 0, nextItem: count + 1 })
      const byNumber = (one: number, other: number): number => one - other
      assert.deepEqual(ran.sort(byNumber), numbers(count).map(Number))
      const lines = bench.lines.map(Number)
      assert.deepEqual(ordered ? lines : lines.sort(byNumber), numbers(count).map(Number))
    }),
    // Characters of items that are called again count once: else these never end.
    { numRuns: 60, examples: [[[60, [[9, 0, true]], true]], [[60, [[9, 1, false]], false]]] },
  )
})

test('fail-fast among several items: the failure is the last line', async () => {
  const bench = new Bench({
    failFast: true,
    sizeNow: () => 5,
    call: (some, first) => {
      const lines = some.map((_, at) => (first + at === 3 ? failing(3) : String(first + at)))
      return Promise.resolve({
        ...ended(first, some.length),
        text: lines.join('\n'),
        failedCount: first === 1 ? 1 : 0,
      })
    },
  })
  assert.deepEqual(await bench.runner.run(batchesOf(texts(50))), {
    writtenCount: 3,
    failedCount: 1,
    nextItem: 4,
  })
  assert.deepEqual(bench.stops, [3])
  assert.deepEqual(bench.lines.slice(0, 2), ['1', '2'])
  assert.equal(bench.lines.length, 3)
})
