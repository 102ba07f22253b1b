/**
 * Random arrows against the naive interpreter: first run, counted runs, measured runs, code, fused plans.
 *
 * One arrow is run as often as it takes to come through all tiers, with changing inputs.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { Exit } from '../fiber/index.ts'
import { HOT_RUNS } from './build/node.ts'
import { type Arrow, Either, dup, lift, liftAsync, test as choose } from './index.ts'
import { type Outcome, closeOracle, cook, recipes } from './oracle.test.support.ts'

after(closeOracle)

function plain(exit: Exit<unknown, unknown>): Outcome {
  if (exit.kind === 'success') return { kind: 'success', value: exit.value }
  if (exit.kind === 'failure') return { kind: 'failure', error: exit.error }
  assert.equal(exit.kind, 'defect')
  return { kind: 'defect', defect: (exit as { defect: unknown }).defect }
}

test('a new arrow does what the naive interpreter does', async () => {
  await fc.assert(
    fc.asyncProperty(recipes, fc.integer({ min: -50, max: 50 }), async (recipe, input) => {
      const { arrow, model, text } = cook(recipe)
      assert.deepEqual(plain(await arrow.runExit(input)), model(input), text)
    }),
    { numRuns: 2000 },
  )
})

test('an arrow does the same in every tier', async () => {
  await fc.assert(
    fc.asyncProperty(recipes, async (recipe) => {
      const { arrow, model, text } = cook(recipe)
      for (let run = 0; run < HOT_RUNS + 40; run += 1) {
        const input = (run % 41) - 20
        const exit = arrow.runExit(input)
        assert.deepEqual(
          plain(exit instanceof Promise ? await exit : exit),
          model(input),
          `${text}, run ${run}`,
        )
      }
    }),
    { numRuns: 200 },
  )
})

test('what an arrow passes on is the same object in every tier', () => {
  const plus = lift((x: number) => x + 1)
  const isSame = ([one, other]: readonly [unknown, unknown]): boolean => one === other
  const pairs = plus.merge(plus).andThen(dup()).map(isSame)
  const eithers = choose(lift((x: number) => x > 0))
    .andThen(dup())
    .map(isSame)
  const [onlyLeft, onlyRight] = [plus.left<number>(), plus.right<number>()]
  const both = onlyLeft.andThen(onlyRight)
  const left = { kind: 'left', value: 1, more: 2 } as const
  const right = { kind: 'right', value: 1, more: 2 } as const
  for (let run = 0; run < HOT_RUNS + 40; run += 1) {
    assert.equal(pairs.run(run), true, `pairs, run ${run}`)
    assert.equal(eithers.run(run), true, `eithers, run ${run}`)
    assert.equal(onlyLeft.run(right), right, `left, run ${run}`)
    assert.equal(onlyRight.run(left), left, `right, run ${run}`)
    assert.deepEqual([both.run(left), both.run(right)], [Either.left(2), Either.right(2)], `run ${run}`)
  }
})

const NOT_EITHER = [5, undefined, null, 'left', {}, { kind: 'lefft', value: 1 }] as const

test('left, right and choice refuse what is not an Either, by name and in every tier', async () => {
  const plus = lift((x: number) => x + 1)
  const later = liftAsync(async (x: number) => x + 1)
  const arrows = {
    'left()': [plus.left<number>(), plus.left().compiled(), later.left()],
    'right()': [plus.right<number>(), plus.right().compiled(), later.right()],
    'choice()': [plus.choice(plus), plus.choice(plus).compiled(), later.choice(plus)],
  }
  for (const [method, tiers] of Object.entries(arrows))
    for (const [tier, arrow] of tiers.entries())
      for (const input of NOT_EITHER) {
        const exit = await (arrow as Arrow<unknown, unknown>).runExit(input)
        const { code, message } = (exit.kind === 'defect' ? exit.defect : exit) as Error & { code?: string }
        const where = `${method}, tier ${tier}, ${JSON.stringify(input)}`
        assert.equal(code, 'ARROW_ARGUMENT', where)
        assert.match(message, new RegExp(`^${method.slice(0, -2)}\\(\\): input must be an Either`), where)
      }
})

test('run throws what runExit returns', async () => {
  await fc.assert(
    fc.asyncProperty(recipes, fc.integer({ min: -50, max: 50 }), async (recipe, input) => {
      const { arrow, model, text } = cook(recipe)
      const exit = model(input)
      let outcome: unknown
      try {
        outcome = { value: await arrow.run(input) }
      } catch (thrown) {
        outcome = { thrown }
      }
      const expected =
        exit.kind === 'success'
          ? { value: exit.value }
          : { thrown: exit.kind === 'failure' ? exit.error : exit.defect }
      assert.deepEqual(outcome, expected, text)
    }),
    { numRuns: 500 },
  )
})

test('a compiled arrow and one that has grown large do the same', async () => {
  await fc.assert(
    fc.asyncProperty(recipes, fc.integer({ min: -50, max: 50 }), async (recipe, input) => {
      const { arrow, model, text } = cook(recipe)
      assert.deepEqual(plain(await arrow.compiled().runExit(input)), model(input), text)
      const again = cook(recipe)
      let large = again.arrow
      for (let turn = 0; turn < 70; turn += 1) large = large.map((x) => x)
      assert.deepEqual(plain(await large.runExit(input)), again.model(input), text)
    }),
    { numRuns: 300 },
  )
})
