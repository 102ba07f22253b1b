/**
 * Parts of arrows for other machines: what travels, what is refused, and that hosts trust no byte.
 *
 * The zone is one in this thread, whose module is a map of functions. Real hosts: src/fleet.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { Schedule } from '../../fiber/index.ts'
import { store } from '../../store/index.ts'
import { decode, encode } from '../../transport/index.ts'
import { zone } from '../../zone/index.ts'
import { FAR, type AnyFarZone } from '../../zone/internal.ts'
import { ArrowError, effect, exported, fail, lift, liftAsync, succeed } from '../index.ts'
import { OpCode, type ArrowNode } from '../build/node.ts'
import { closeOracle, cook, recipes } from '../oracle.test.support.ts'
import { runPart } from './far-worker.ts'
import { graphOf } from './serialize.ts'

after(closeOracle)

const MODULE = 'file:///app/score.js'
const functions = new Map<string, Function>()
let calls = 0
const target = {
  name: 'scores',
  [FAR]: {
    key: '\0scores',
    module: MODULE,
    // What travels is copied, both ways.
    run: async (part: Uint8Array, input: unknown) => {
      calls += 1
      const sent = decode(encode([part, input])) as [Uint8Array, unknown]
      return decode(encode(await runPart(...sent, MODULE, functionOf)))
    },
  },
} satisfies AnyFarZone

function functionOf(name: string): Function {
  const fn = functions.get(name)
  if (fn === undefined) throw new RangeError(`no export ${name}`)
  return fn
}

/** An export of the module. */
function own<Fn extends Function>(fn: Fn): Fn {
  const name = `f${functions.size}`
  functions.set(name, fn)
  return exported(MODULE, fn, name)
}

/** Declare all functions of an arrow. */
function declare(arrow: object): void {
  graphOf(arrow as ArrowNode, {
    refOf: (fn) => own(fn).name,
    isValue: () => false,
    checkWait: () => {},
  })
}

const plus = lift(own((x: number) => x + 1))
const double = lift(own((x: number) => x * 2))

test('a part on another machine does what the naive interpreter does', async () => {
  let run = 0
  await fc.assert(
    fc.asyncProperty(recipes, fc.integer({ min: -50, max: 50 }), async (recipe, input) => {
      const { arrow, model, text } = cook(recipe)
      declare(arrow)
      let far
      try {
        far = arrow.on(target)
      } catch (error) {
        assert.ok(error instanceof ArrowError && error.code === 'ARROW_NOT_HOSTED', String(error))
        assert.match(error.message, /schedule|store|on\(\) inside/)
        return
      }
      const exit = await far.runExit(input)
      const expected = model(input)
      assert.equal(exit.kind, expected.kind, text)
      const ended = (exit as never)[KEYS[exit.kind]] as unknown
      assert.deepEqual(ended, (expected as never)[KEYS[exit.kind]], text)
      run += 1
    }),
    { numRuns: 500 },
  )
  assert.ok(run > 250, `${run} of 500 recipes ran`)
})
const KEYS = { success: 'value', failure: 'error', defect: 'defect', interruption: 'reason' } as const

test('neighbours in one far zone share a call, and explain shows the hop and its cost', async () => {
  const arrow = plus.on(target).andThen(double.on(target)).andThen(plus.named('last').on(target))
  const before = calls
  assert.match(arrow.explain(), /on far zone scores\n/)
  for (let run = 0; run < 3; run += 1) assert.equal(await arrow.run(run), (run + 1) * 2 + 1)
  assert.equal(calls - before, 3)
  const text = arrow.explain()
  assert.match(text, /on far zone scores +3 hops, each [\d.]+ [nµm]?s in the worker \+ .* on the way/)
  assert.match(text, /"last"\n +f0 +2 calls measured, mean/)
  const other = { ...target, [FAR]: { ...target[FAR], key: '\0other' } }
  assert.equal(await plus.on(target).andThen(plus.on(other)).run(0), 2)
  assert.equal(calls - before, 5)
})

test('a reply that is malformed is refused as one', async () => {
  const replies: unknown[] = [
    undefined,
    {},
    { is: 'unknown', ms: 1 },
    { is: 'failed', ms: 1 },
    { is: 'failed', exit: { kind: 'defect' }, ms: 1 },
    { is: 'value', value: 1 },
    ...[NaN, -1, Infinity, '1'].map((ms) => ({ is: 'value', value: 1, ms })),
    ...[5, [5], [[9, 1, 1]], [[0, NaN, 1]], [[0, 1, '1']], [[]], [['toString', 1, 1]]].map((measured) => ({
      is: 'value',
      value: 1,
      ms: 1,
      measured,
    })),
  ]
  for (const reply of replies) {
    const replying = { ...target, [FAR]: { ...target[FAR], run: async () => reply } }
    const code = { code: 'ARROW_PLAN', message: /the reply of the host is malformed/ }
    await assert.rejects(plus.on(replying).run(1), code, JSON.stringify(reply))
  }
})

test('what a host does not have is refused when the arrow is built, with the remedy', async () => {
  const secret = (x: number): number => x + 1
  const kept = store.create<number>('arrow-far')
  const foreign = exported('file:///app/other.js', (x: number) => x, 'other')
  const refused: [() => unknown, RegExp][] = [
    [
      () => lift(secret),
      /stage 1 of the arrow.*function secret is not declared .*exported\(import\.meta\.url, secret\)/,
    ],
    [
      () => plus.map((x) => x),
      /stage 2 of the arrow.*its function is not declared as an export of file:.*score\.js/,
    ],
    [
      () => plus.andThen(lift(foreign)),
      /stage 2 .*is an export of file:\/\/\/app\/other\.js, and hosts run file:/,
    ],
    [() => effect(own(JSON.parse), () => 1), /the catcher of stage 1 .*is not declared/],
    [
      () =>
        liftAsync(
          own(async () => 1),
          () => 1,
        ),
      /is not declared/,
    ],
    [() => fail('no').retry(Schedule.forever), /a schedule cannot be transported; put retry\(\) behind/],
    [() => plus.through(kept, String), /a store of this process; put through\(\) behind the on\(\)/],
    [
      () =>
        lift(own((x: number) => x))
          .on(zone.node)
          .andThen(plus),
      /stage 1 .*on\(\) inside of it names a zone/,
    ],
    [() => plus.on(target), /on\(\) inside of it/],
  ]
  for (const [make, message] of refused) {
    const arrow = make() as typeof plus
    assert.throws(
      () => arrow.on(target),
      (error) => {
        assert.ok(error instanceof ArrowError && error.code === 'ARROW_NOT_HOSTED', String(error))
        assert.match(error.message, message)
        assert.match(error.message, /the far zone "scores"/)
        return true
      },
    )
  }
  assert.throws(() => succeed(Symbol('no')).on(target), { name: 'TransportError' })
  const unknown = { ...target, [FAR]: { ...target[FAR], module: undefined } }
  assert.throws(() => plus.on(unknown), {
    code: 'ARROW_ARGUMENT',
    message: /fleet\.zone\(name, \{ module \}\)/,
  })
  for (const wrong of ['scores', {}, null, undefined])
    assert.throws(() => plus.on(wrong as never), { code: 'ARROW_ARGUMENT' })
  kept.close()
})

test('bytes that are not a part are refused, before a function of them is looked up', async () => {
  const call = [OpCode.call, -1, -1, { is: 'function', ref: 'f0' }]
  const wait = (more: object): unknown[] => [
    OpCode.wait,
    -1,
    -1,
    { is: 'wait', kind: 'async', functions: ['f0', 0], values: [], inner: -1, ...more },
  ]
  const bad: unknown[] = [
    undefined,
    'text',
    [],
    [[]],
    [5],
    [[99, -1, -1, { is: 'nothing' }]],
    [['0', -1, -1, { is: 'function', ref: 'f0' }]],
    [[OpCode.call, -1, -1, undefined]],
    [[OpCode.call, -1, -1, { is: 'value', value: 1 }]],
    [[OpCode.call, -1, -1, { is: 'function', ref: 1 }]],
    [[OpCode.call, 0, -1, { is: 'function', ref: 'f0' }]],
    [call, [OpCode.chain, 0, 1, { is: 'nothing' }]],
    [call, [OpCode.chain, 0, -1, { is: 'nothing' }]],
    [call, [OpCode.chain, 0.5, 0, { is: 'nothing' }]],
    [call, [OpCode.named, 0, -1, { is: 'value', value: { toString: 1 } }]],
    [call, [OpCode.branch, 0, 0, { is: 'node', index: 1 }]],
    [[OpCode.attempt, -1, -1, { is: 'attempt', body: 'f0', catcher: 0 }]],
    [wait({ kind: 'on', values: ['scores'], inner: 0 })],
    [call, wait({ kind: 'through', functions: [0], inner: 0 })],
    [call, wait({ kind: 'retry', functions: [0], inner: 0 })],
    [call, wait({ kind: 'timeout', functions: [0], values: ['1'], inner: 0 })],
    [call, wait({ kind: 'timeout', functions: [0], values: [2 ** 31], inner: 0 })],
    [wait({ functions: [1] })],
    [wait({ functions: 'f0' })],
    [wait({ inner: 0 })],
  ]
  const never = (): never => assert.fail('looked up')
  for (const nodes of bad)
    await assert.rejects(
      runPart(encode(nodes), 1, MODULE, never),
      { code: 'ARROW_PLAN' },
      JSON.stringify(nodes),
    )
  await assert.rejects(runPart('text', 1, MODULE, never), { code: 'ARROW_PLAN' })
  await assert.rejects(runPart(new Uint8Array(9), 1, MODULE, never), { name: 'TransportError' })
  // One that could not be made is made anew.
  const part = encode([call])
  await assert.rejects(
    runPart(part, 1, 'later', () => {
      throw new Error('not yet')
    }),
    /not yet/,
  )
  assert.equal(((await runPart(part, 1, 'later', functionOf)) as { value?: unknown }).value, 2)
})

test('any damage of a part is an error or another part, and never more', async () => {
  const arrow = plus.andThen(double).merge(plus).named('both')
  let part: Uint8Array = new Uint8Array()
  const catching = {
    ...target,
    [FAR]: { ...target[FAR], run: async (sent: Uint8Array) => void (part = sent) },
  }
  await assert.rejects(arrow.on(catching).run(1), {
    code: 'ARROW_PLAN',
    message: /the reply of the host is malformed/,
  })
  for (let at = 0; at < part.length; at += 1)
    for (const change of [1, 128, 255]) {
      const damaged = Uint8Array.from(part)
      damaged[at] ^= change
      await runPart(damaged, 1, MODULE, functionOf).then(
        ({ is }) => assert.ok(is === 'value' || is === 'failed'),
        (error: unknown) => assert.ok(error instanceof Error),
      )
    }
})

test('a thread keeps a bounded number of parts, and none that is large', async () => {
  const looked = { count: 0 }
  const counted = (name: string): Function => {
    looked.count += 1
    return functionOf(name)
  }
  const part = (text: string): Uint8Array =>
    encode([
      [OpCode.constant, -1, -1, { is: 'value', value: text }],
      [OpCode.call, -1, -1, { is: 'function', ref: 'f0' }],
    ])
  for (const text of ['small', 'x'.repeat(70_000)]) {
    looked.count = 0
    for (let run = 0; run < 3; run += 1) await runPart(part(text), 1, 'kept', counted)
    assert.equal(looked.count, text === 'small' ? 1 : 3)
  }
  for (let other = 0; other < 256; other += 1) await runPart(part(`${other}`), 1, 'kept', counted)
  looked.count = 0
  await runPart(part('small'), 1, 'kept', counted)
  assert.equal(looked.count, 1)
})
