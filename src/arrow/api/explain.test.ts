/**
 * The text of `explain`: the parts of an arrow, and of how many runs its figures are.
 *
 * Figures of hops are in hop.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Arrow, effect, ifThenElse, lift, liftAsync, test as testing, whileDo } from '../index.ts'
import { HOT_RUNS } from '../build/node.ts'

const increment = lift((x: number) => x + 1)
const double = lift((x: number) => x * 2)

test('explain states what is fused, what waits, and after runs how long it took', async () => {
  const arrow = increment
    .andThen(double)
    .andThen(liftAsync(async (x: number) => x).named('wait'))
    .andThen(increment)
  assert.match(arrow.explain(), /fused: 2 stages[\s\S]*"wait"[\s\S]*async/)
  for (let run = 0; run < 3; run += 1) await arrow.run(1)
  assert.match(arrow.explain(), /^arrow, async, .*; measured in 1 of 3 runs\n/)
  assert.match(arrow.explain(), / 1 call measured, mean \d/)
  assert.match(arrow.explain({ format: 'mermaid' }), /^flowchart TD\n/)
  assert.match(arrow.explain({ format: 'dot' }), /^digraph arrow \{\n/)
  const sync = increment.andThen(double).merge(increment)
  for (let run = 0; run < 5; run += 1) sync.run(1)
  assert.match(sync.explain(), /; measured in 1 of 5 runs\n[^]* 1 call measured, mean \d/)
})

test('explain states of how many runs its figures are, whatever the arrow', async () => {
  const positive = lift((x: number) => x > 0)
  const tries = effect(
    (x: number) => x,
    () => 'never' as const,
  )
  const kinds: Record<string, () => Arrow<never, unknown, unknown>> = {
    chain: () => increment.andThen(double),
    compose: () => increment.compose(double),
    zip: () => increment.zipWith(double, (x, y) => x + y),
    merge: () => increment.merge(double),
    effect: () => increment.keepInput(),
    test: () => testing(positive),
    if: () => ifThenElse(positive, increment, double),
    loop: () =>
      whileDo(
        positive,
        increment.map((x) => -x),
      ),
    named: () => increment.named('n'),
    mapError: () => tries.mapError((e) => e),
    fallible: () => tries.andThen(increment),
    choice: () => testing(positive).andThen(increment.choice(double)),
    dynamic: () => increment.flatMap(() => double),
    waits: () => increment.timeout(1000),
  }
  for (const [name, make] of Object.entries(kinds)) {
    const arrow = make()
    assert.match(arrow.explain(), /^arrow, [^;\n]*\n/, name)
    for (let run = 1; run < HOT_RUNS; run += 1) {
      await arrow.run(run as never)
      const [head] = arrow.explain().split('\n')
      const of = /; (?:measured in ([1-9]) of )?(\d+) runs?(, none measured yet)?$/.exec(head)
      assert.equal(Number(of?.[2]), run, `${name}: ${head}`)
      assert.notEqual(of?.[1] === undefined, of?.[3] === undefined, head)
    }
  }
})

test('explain states when runs are no longer counted or never measured', () => {
  const chain = increment.andThen(double)
  const named = increment.named('n')
  for (const arrow of [chain, named]) for (let run = 0; run < HOT_RUNS * 3; run += 1) arrow.run(run)
  const [counted, first] = mayGenerate() ? [/ 4 of its first 257 runs\n/, 256] : [/ 12 of 771 runs\n/, 771]
  assert.match(chain.explain(), counted)
  assert.match(named.explain(), new RegExp(` of (its first )?${first} runs\n`))
  const early = increment.andThen(double)
  for (let run = 0; run < 10; run += 1) early.run(run)
  assert.match(early.compiled().compiled().explain(), /; measured in 1 of (its first )?10 runs\n/)
  early.run(1)
  assert.match(early.explain(), mayGenerate() ? / 1 of its first 10 runs\n/ : / 1 of 11 runs\n/)
  const one =
    /^arrow, sync, 1 node, closures\nnot measured: a single synchronous function is called directly\n/
  assert.match(increment.explain(), one)
  const compiled = increment.andThen(double).compiled()
  compiled.run(1)
  const why =
    /code generated\nnot measured: its code was generated before a run was measured, .* directly\nfused/
  assert.match(compiled.explain(), mayGenerate() ? why : /closures; 1 run, none measured yet\nfused/)
})

test('explain mentions code only when it was generated', () => {
  const small = increment.andThen(increment)
  // As many names, one in the other, are too deep for the generator.
  let deep = increment
  for (let names = 0; names < 62; names += 1) deep = deep.named('n')
  assert.match(small.explain(), /^arrow, sync, 3 nodes, closures\n/)
  for (const arrow of [small, deep]) for (let run = 0; run < HOT_RUNS + 40; run += 1) arrow.run(run)
  assert.match(small.explain(), mayGenerate() ? /^arrow, .*, code generated/ : /^arrow, .*, closures/)
  assert.match(deep.explain(), /^arrow, sync, 63 nodes, closures/)
  assert.match(deep.compiled().explain(), /^arrow, sync, 63 nodes, closures; measured in 4 of 297 runs\n/)
})

function mayGenerate(): boolean {
  try {
    return typeof new Function() === 'function'
  } catch {
    return false // Forbidden, as in the tests that start this file so.
  }
}

test('explain marks an asynchronous function that is lifted: its promise is not awaited', () => {
  const load = async (x: number): Promise<number> => x
  const text = lift(load)
    .andThen(lift((promise) => promise))
    .explain()
  assert.match(text, /load, not awaited: its value is a promise; liftAsync\(\) awaits/)
  assert.doesNotMatch(liftAsync(load).explain(), /not awaited/)
})
