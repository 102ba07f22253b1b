/**
 * Effects and zones: what a task ends with, which services, spans and references it has, and its
 * interruption.
 *
 * One zone of two workers, whose workers have a runtime, serves most of the file.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as Cause from 'effect/Cause'
import * as Context from 'effect/Context'
import * as Effect from 'effect/Effect'
import * as Exit from 'effect/Exit'
import * as Fiber from 'effect/Fiber'
import * as Layer from 'effect/Layer'
import * as ManagedRuntime from 'effect/ManagedRuntime'
import * as Option from 'effect/Option'
import * as Tracer from 'effect/Tracer'
import { cellIsSet, until } from '../base/wait.test.support.ts'
import { ZoneError, zone } from '../zone/index.ts'
import { CorespunFailure, type EffectZone, TaskError, carryReference, fromZone, makeZone } from './index.ts'
import { type Greeter, Missing, Tenant, TooYoung, User } from './worker.test.support.ts'

const url = new URL('./worker.test.support.js', import.meta.url)
type Work = typeof import('./worker.test.support.ts')

class Workers extends Context.Service<Workers, EffectZone<Greeter>>()('effect-test/Workers') {
  static readonly layer = Layer.effect(
    this,
    makeZone<Greeter>('effects', { workers: 2, graceMs: 60_000, setup: './worker.test.support.js' }),
  )
}
const runtime = ManagedRuntime.make(Workers.layer)
after(() => runtime.dispose())
const workers = await runtime.runPromise(Workers)
const work = workers.module<Work>('./worker.test.support.js')
const exitOf = runtime.runPromiseExit
const run = runtime.runPromise
const failureOf = <E>(effect: Effect.Effect<unknown, E>): Promise<E> => run(Effect.flip(effect))

test('functions that travel by their text end with their value or that of their promise', async () => {
  assert.equal(await run(workers.run((a: number, b: number) => a + b, 1, 2)), 3)
  assert.equal(await run(workers.run(async (text: string) => text.length, 'four')), 4)
  assert.equal(await run(work.later()), 7)
})

test('what a function throws is a TaskError with its cause', async () => {
  const thrown = await failureOf(
    workers.run(() => {
      throw new RangeError('low')
    }),
  )
  assert.ok(thrown instanceof TaskError && thrown.cause instanceof RangeError)
  assert.equal(thrown.message, 'low')
  const rejected = await failureOf(
    workers.run(async () => {
      throw 'text'
    }),
  )
  assert.ok(rejected instanceof TaskError)
  assert.equal(rejected.message, 'text')
})

test('classes, options and typed failures keep their class on both sides', async () => {
  const ann = new User({ name: 'Ann', age: 10 })
  const older = await run(work.older(ann, 20))
  assert.ok(older instanceof User && older.isAdult && older.age === 30)
  const young = await failureOf(work.older(ann, 1))
  assert.ok(young instanceof TooYoung && young.user instanceof User)
  assert.deepEqual([await run(work.find(0)), await run(work.find(3))], [Option.none(), Option.some('user 3')])
  const caught = work.find(-1).pipe(Effect.catchTag('Missing', ({ id }) => Effect.succeed(id)))
  assert.equal(await run(caught), -1)
  assert.ok((await failureOf(work.find(-1))) instanceof Missing)
})

test('a defect stays a defect, and several reasons stay several', async () => {
  const dead = await exitOf(work.dies())
  assert.ok(Exit.isFailure(dead) && Cause.hasDies(dead.cause) && !Cause.hasFails(dead.cause))
  assert.ok(Cause.squash(dead.cause) instanceof RangeError)
  const several = await exitOf(work.several())
  assert.deepEqual(Exit.isFailure(several) && several.cause.reasons.map(({ _tag }) => _tag), ['Fail', 'Die'])
  const interrupted = await exitOf(work.interrupts())
  assert.ok(Exit.isFailure(interrupted) && Cause.hasInterruptsOnly(interrupted.cause))
})

test('the runtime of setup provides services; a zone without one lacks them', async () => {
  assert.equal(await run(work.greets('Ann')), 'Hello Ann')
  const { module: plain, close } = await plainZone('effects, plain')
  assert.deepEqual(await run(plain.find(1)), Option.some('user 1'))
  const missing = await exitOf(plain.greets('Ann') as unknown as Effect.Effect<string>)
  assert.match(String(Exit.isFailure(missing) && Cause.squash(missing.cause)), /effect-test\/Greeter/)
  await close()
})

test('what a zone refuses is a failure whose tag is the code', async () => {
  const { of, module: plain, close } = await plainZone('effects, refusing')
  const again = await failureOf(Effect.scoped(makeZone('effects, refusing')))
  assert.ok(again instanceof CorespunFailure && again._tag === 'ZONE_EXISTS')
  assert.ok(again.cause instanceof ZoneError)
  assert.equal(again.name, 'CorespunFailure')
  const flags = new Int32Array(new SharedArrayBuffer(8))
  const late = of.with({ timeoutMs: 1 }).module<Work>(url).waits(flags)
  const codes = late.pipe(Effect.catchTag('TASK_TIMEOUT', ({ facts }) => Effect.succeed(facts.timeoutMs)))
  assert.equal(await run(codes), 1)
  const stop = new AbortController()
  const stopped = run(Effect.exit(of.with({ signal: stop.signal }).module<Work>(url).waits(flags)))
  stop.abort()
  assert.ok(Exit.hasInterrupts(await stopped))
  await close()
  const tags = [plain.find(1), of.run(() => 1)].map((effect) =>
    failureOf(effect as Effect.Effect<unknown, { _tag: string }>),
  )
  assert.deepEqual(
    (await Promise.all(tags)).map(({ _tag }) => _tag),
    ['ZONE_CLOSED', 'ZONE_CLOSED'],
  )
})

test('wrong calls are defects', async () => {
  const captured = 5
  const dead = await exitOf(workers.run(() => captured))
  assert.equal(
    (Exit.isFailure(dead) && (Cause.squash(dead.cause) as { code?: string }).code) || '',
    'FUNCTION_CAPTURES',
  )
  const absent = workers.module<Work & { absent(): number }>(url).absent()
  const none = await exitOf(absent)
  assert.ok(Exit.isFailure(none) && Cause.hasDies(none.cause))
  const wrong = await exitOf(Effect.scoped(makeZone('')))
  assert.ok(Exit.isFailure(wrong) && Cause.hasDies(wrong.cause))
  assert.throws(() => fromZone({} as never), { code: 'ZONE_ARGUMENT' })
})

test('interrupting the fiber interrupts the one in the worker, whose finalizers run', async () => {
  const flags = new Int32Array(new SharedArrayBuffer(8))
  const fiber = runtime.runFork(work.waits(flags))
  await cellIsSet(flags, 0, 'the beginning')
  await run(Fiber.interrupt(fiber))
  const exit = await run(Fiber.await(fiber))
  assert.ok(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
  await cellIsSet(flags, 1, 'the finalizer')
  await until(() => workers.zone.stats().running === 0)
})

test('the span and the references of the caller are those of the task, also of a second hop', async () => {
  const spans: Tracer.Span[] = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    },
  })
  const asked = (effect: ReturnType<typeof work.seen>) =>
    run(
      effect.pipe(
        Effect.withSpan('caller'),
        Effect.annotateLogs('request', 7),
        Effect.provideService(Tenant, 'Ann'),
        Effect.provideService(Tracer.Tracer, tracer),
      ),
    )
  const { close } = await plainZone('effects, second')
  for (const effect of [work.seen(), work.seenFrom('effects, second', url.href)]) {
    const [tenant, request, traceId, parent] = await asked(effect)
    const caller = spans.pop() as Tracer.Span
    assert.deepEqual([tenant, request, traceId, parent], ['Ann', 7, caller.traceId, caller.spanId])
  }
  await close()
})

test('a span that is not propagated is left out, and without one there is no parent', async () => {
  assert.equal(await run(work.hasParent()), false)
  const local = work
    .hasParent()
    .pipe(Effect.withSpan('local', { annotations: Context.make(Tracer.DisablePropagation, true) }))
  assert.equal(await run(local), false)
  assert.equal(await run(local.pipe(Effect.withSpan('outer', { sampled: false }))), true)
})

test('a worker that leaves disposes of its runtime', async () => {
  const ends = new Int32Array(new SharedArrayBuffer(4))
  const uses = Effect.flatMap(
    makeZone('effects, ending', { workers: 1, setup: new URL('./ending.test.support.js', import.meta.url) }),
    (of) => of.module<typeof import('./ending.test.support.ts')>('./ending.test.support.js').holds(ends),
  )
  await run(Effect.scoped(uses))
  assert.equal(ends[0], 1)
})

test('tasks of this thread and of workers that are processes end the same way', async () => {
  const here = fromZone(zone.node).module<Work>(url)
  assert.deepEqual(await run(here.find(2)), Option.some('user 2'))
  const outside = Effect.flatMap(
    makeZone<Greeter>('effects, outside', { workers: 1, isolation: 'process', setup: url }),
    (of) => {
      const there = of.module<Work>(url)
      return Effect.all([there.greets('Ann'), Effect.flip(there.find(-1))])
    },
  )
  const [greeting, error] = await run(Effect.scoped(outside))
  assert.equal(greeting, 'Hello Ann')
  assert.ok(error instanceof Missing && error.id === -1)
})

test('a thread carries 64 references', () => {
  const reference = (n: number): Context.Reference<number> =>
    Context.Reference(`effect-test/${n}`, { defaultValue: () => n })
  const many = Array.from({ length: 80 }, (_, n) => reference(n))
  assert.throws(() => carryReference(...many), { name: 'RangeError', message: /64/ })
})

async function plainZone(id: string) {
  const of = fromZone<never>(zone.create(id, { workers: 1 }))
  await of.zone.ready()
  return { of, module: of.module<Work>(url), close: () => of.zone.close() }
}
