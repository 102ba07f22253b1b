/**
 * `stream` with `settle`: an outcome for every input, in order, whatever the runs do.
 *
 * The oracle is `runExit` of each input alone.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compute } from '../../base/wait.test.support.ts'
import { zone } from '../../zone/index.ts'
import { type Arrow, ArrowError, effect, fromFiber, lift, liftAsync } from '../index.ts'
import { sleep } from '../../fiber/index.ts'

interface Outcome {
  readonly index: number
  readonly status: string
  readonly value?: unknown
  readonly reason?: unknown
}

const parse = effect(
  (text: string) => JSON.parse(text) as number,
  () => 'not JSON' as const,
)
const TEXTS = ['1', '{', '3', 'null', '[', '6']

async function outcomesOf(
  arrow: Arrow<string, unknown, unknown>,
  inputs: Iterable<string> | AsyncIterable<string>,
  options: { readonly concurrency?: number; readonly ordered?: boolean; readonly signal?: AbortSignal } = {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for await (const one of arrow.stream(inputs, { ...options, settle: true })) outcomes.push(one)
  return outcomes
}

async function expected(
  arrow: Arrow<string, unknown, unknown>,
  inputs: readonly string[],
): Promise<Outcome[]> {
  const exits = await Promise.all(inputs.map((input) => arrow.runExit(input)))
  return exits.map((exit, index) => {
    if (exit.kind === 'success') return { index, status: 'fulfilled', value: exit.value }
    const reason = exit.kind === 'failure' ? exit.error : exit.kind === 'defect' ? exit.defect : exit.reason
    return { index, status: 'rejected', reason }
  })
}

const BUG = new TypeError('a bug')
const ARROWS: Record<string, Arrow<string, unknown, unknown>> = {
  synchronous: parse,
  'a defect': lift((text: string) => {
    if (text === '3') throw BUG
    return text
  }),
  asynchronous: liftAsync(async (text: string) => text).andThen(parse),
  'a fiber': fromFiber(function* (text: string) {
    yield* sleep(text.length)
    return text
  }).andThen(parse),
}

for (const [name, arrow] of Object.entries(ARROWS)) {
  for (const concurrency of [1, 3, 100]) {
    test(`${name}, ${concurrency} at once: outcomes in the order of the inputs`, async () => {
      assert.deepEqual(await outcomesOf(arrow, TEXTS, { concurrency }), await expected(arrow, TEXTS))
    })
  }
  test(`${name}: outcomes in the order in which runs end have the index of their input`, async () => {
    const outcomes = await outcomesOf(arrow, TEXTS, { concurrency: 6, ordered: false })
    outcomes.sort((one, other) => one.index - other.index)
    assert.deepEqual(outcomes, await expected(arrow, TEXTS))
  })
}

test('a failed run interrupts no other and the source is read to its end', async () => {
  let aborted = 0
  const arrow = liftAsync(async (text: string, { signal }) => {
    signal.addEventListener('abort', () => (aborted += 1))
    await new Promise((resolve) => setImmediate(resolve))
    return text
  }).andThen(parse)
  const outcomes = await outcomesOf(arrow, TEXTS, { concurrency: 3 })
  assert.equal(outcomes.length, TEXTS.length)
  assert.equal(aborted, 0)
})

test('the error of the source ends the stream after the outcomes in front of it', async () => {
  function* source(): Generator<string> {
    yield '1'
    yield '{'
    throw new Error('no more')
  }
  const outcomes: Outcome[] = []
  await assert.rejects(async () => {
    for await (const one of parse.stream(source(), { settle: true })) outcomes.push(one)
  }, /no more/)
  assert.deepEqual(outcomes, await expected(parse, ['1', '{']))
})

test('the signal ends the stream with its reason, and interrupted runs have no outcome', async () => {
  const controller = new AbortController()
  const why = new Error('enough')
  const endless = liftAsync((text: string) => {
    if (text === 'stop') controller.abort(why)
    return text === '1' ? 1 : new Promise<number>(() => {})
  })
  const outcomes: Outcome[] = []
  await assert.rejects(
    async () => {
      const options = { concurrency: 3, settle: true, signal: controller.signal } as const
      for await (const one of endless.stream(['1', '2', 'stop'], options)) outcomes.push(one)
    },
    (error) => error === why,
  )
  assert.ok(outcomes.every(({ status }) => status === 'fulfilled'))
})

for (const concurrency of [1, 8]) {
  test(`the signal aborts while the arrow or its reader computes, ${concurrency} at once`, async () => {
    const numbers = function* (): Generator<number> {
      for (let number = 0; ; number++) yield number
    }
    for (const isOfArrow of [true, false]) {
      const controller = new AbortController()
      setTimeout(() => controller.abort(new Error('enough')), 10)
      const run = lift((number: number) => (isOfArrow ? (compute(0.1), number) : number))
      const read = async (): Promise<void> => {
        for await (const number of run.stream(numbers(), { concurrency, signal: controller.signal })) {
          assert.ok(number < 10_000, 'read on')
          if (!isOfArrow) compute(0.1)
        }
      }
      await assert.rejects(read, /enough/)
    }
  })
}

test('failures in a zone are outcomes', async () => {
  const own = zone.create('arrow-settle', { workers: 1 })
  const there = effect(
    (text: string) => JSON.parse(text) as number,
    () => 'not JSON' as const,
  ).on(own)
  try {
    assert.deepEqual(await outcomesOf(there, TEXTS, { concurrency: 2 }), await expected(parse, TEXTS))
  } finally {
    await own.close()
  }
})

test('settle must be a boolean', () => {
  const wrong = { settle: 1 } as never
  assert.throws(() => parse.stream([], wrong), ArrowError)
  assert.throws(() => parse.stream([], wrong), { code: 'ARROW_ARGUMENT', message: /settle/ })
})

test('the type of the results follows settle', async () => {
  const values: number[] = []
  for await (const value of parse.stream(['1'])) values.push(value)
  for await (const value of parse.stream(['2'], { settle: false })) values.push(value)
  for await (const one of parse.stream(['3'], { settle: true }))
    if (one.status === 'fulfilled') values.push(one.value)
  assert.deepEqual(values, [1, 2, 3])
})
