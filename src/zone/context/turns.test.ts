/**
 * Tasks of several contexts in the same turn of a worker, and contexts in frames: each task finds what its
 * caller has set, and nothing of the one before it.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { thisBridge } from '../../bridge/index.ts'
import { HEADER_BYTES } from '../../native/index.ts'
import { makeZone } from '../api/zones.test.support.ts'
import { Task } from '../ground/task.ts'
import { ZoneError, withTrace } from '../index.ts'
import { readArguments, writeArguments } from './frame.ts'
import { Carried, type CallRecord } from '../ground/record.ts'
import { type Found, one, other } from './turns.test.support.ts'

const SINGLE = makeZone({ workers: 1 })
const OVERLAPPING = makeZone({ workers: 2, tasksPerWorkerMax: 8 })
after(() => Promise.all([SINGLE, OVERLAPPING].map((each) => each.close())))

const TRACES = ['7', '8'].map((digit) => `00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333${digit}-01`)
const MODULE = new URL('./turns.test.support.js', import.meta.url).href

/** What the code that makes a call has set. */
interface Setting {
  readonly one: unknown
  readonly other: unknown
  readonly traceparent: string | undefined
  readonly timeoutMs: number | undefined
}

const values = fc.constantFrom<unknown>(
  undefined,
  undefined,
  'Ann',
  'Zoë \u{1f600}',
  'x'.repeat(2000),
  0,
  -0,
  Number.NaN,
  1e300,
  true,
  null,
  { id: 7 },
)
const settings: fc.Arbitrary<Setting> = fc.record({
  one: values,
  other: values,
  traceparent: fc.constantFrom(undefined, undefined, ...TRACES),
  timeoutMs: fc.constantFrom(undefined, undefined, 100_000),
})

/** Makes some calls in a row in one context, as programs do, then some in the next. */
function within<R>({ one: first, other: second, traceparent }: Setting, body: () => R): R {
  const traced = traceparent === undefined ? body : (): R => withTrace({ traceparent }, body)
  const named = second === undefined ? traced : (): R => other.run(second, traced)
  return first === undefined ? named() : one.run(first, named)
}

function check(setting: Setting, found: Found): void {
  const { timeoutMs, ...expected } = setting
  assert.deepEqual(found, { ...expected, isLimited: timeoutMs !== undefined })
}

test('in bursts of several contexts each task finds that of its caller', async () => {
  const bursts = fc.array(fc.tuple(settings, fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 8 })
  const runs = fc.asyncProperty(bursts, fc.constantFrom(SINGLE, OVERLAPPING), async (burst, zone) => {
    const calls = burst.flatMap(([setting, count]) => {
      const to = zone.with({ timeoutMs: setting.timeoutMs }).module(MODULE) as {
        findAndChange(): Promise<Found>
        findLater(): Promise<[Found, Found]>
      }
      return within(setting, () =>
        Array.from({ length: count }, async (_, index) => {
          if (index % 2 === 0) return check(setting, await to.findAndChange())
          for (const found of await to.findLater()) check(setting, found)
        }),
      )
    })
    await Promise.all(calls)
  })
  await fc.assert(runs, { numRuns: 40 })
})

test('in bursts whose workers die, each task that ends has found that of its caller', async () => {
  const steps = fc.constantFrom('find', 'find', 'later', 'die', 'die later')
  const bursts = fc.array(fc.tuple(settings, fc.array(steps, { maxLength: 4 })), {
    minLength: 1,
    maxLength: 6,
  })
  const runs = fc.asyncProperty(bursts, fc.constantFrom(SINGLE, OVERLAPPING), async (burst, zone) => {
    const calls = burst.flatMap(([setting, kinds]) => {
      const to = zone.with({ timeoutMs: setting.timeoutMs }).module(MODULE) as {
        findAndChange(): Promise<Found>
        findLater(): Promise<[Found, Found]>
        die(isLater: boolean): Promise<never>
      }
      return within(setting, () =>
        kinds.map(async (kind) => {
          const dies = kind.startsWith('die')
          try {
            if (dies) await to.die(kind !== 'die')
            for (const found of kind === 'find' ? [await to.findAndChange()] : await to.findLater())
              check(setting, found)
          } catch (error) {
            // Beside it another task may have ended the worker.
            assert.ok(error instanceof ZoneError && error.code === 'WORKER_DIED', String(error))
            return
          }
          assert.ok(!dies)
        }),
      )
    })
    await Promise.all(calls)
  })
  await fc.assert(runs, { numRuns: 8 })
})

/** The frame of arguments with a record. */
function frameOf(args: readonly unknown[], record: CallRecord): Uint8Array {
  const bridge = thisBridge()
  const length = writeArguments(bridge, args, record, false)
  return bridge.out.slice(HEADER_BYTES, HEADER_BYTES + length)
}

function read(bytes: Uint8Array): { readonly args: unknown; readonly record: CallRecord | undefined } {
  const task = new Task('zone', 'zone/0', 0)
  const args = readArguments(bytes, 0, bytes.length, task)
  return { args, record: task.record }
}

test('equal contexts that arrive one after the other are one object, others are not', () => {
  const carried = (value: unknown): CallRecord =>
    new Carried({ traceparent: TRACES[0] }, ['one', value]).alone
  const [first, again, next] = [7, 7, 8].map((value) => read(frameOf([1, 2], carried(value))).record)
  assert.equal(first, again)
  assert.deepEqual(first?.carried?.values, ['one', 7])
  assert.deepEqual(next?.carried?.values, ['one', 8])
  const [object, equal] = [{}, {}].map((value) => read(frameOf([1, 2], carried(value))).record)
  assert.notEqual(object?.carried, equal?.carried)
  assert.deepEqual(object?.carried?.values, ['one', {}])
})

test('a deadline travels with any context, and alone', () => {
  for (const carried of [
    undefined,
    new Carried(undefined, ['one', 1]),
    new Carried(undefined, ['one', [1]]),
  ]) {
    const { args, record } = read(frameOf(['a'], { deadlineMs: 12.5, carried, cpu: undefined }))
    assert.deepEqual(args, ['a'])
    assert.equal(record?.deadlineMs, 12.5)
    assert.deepEqual(record?.carried?.values, carried?.values)
  }
})

test('no frame that was cut or forged is read beyond its end', () => {
  const { alone } = new Carried({ traceparent: TRACES[0], baggage: 'a=1' }, ['one', 'Ann', 'two', 2])
  const frame = frameOf([1, 'two', [3]], { ...alone, deadlineMs: 3 })
  const readForged = (at: number, byte: number, cut: number): void => {
    const bytes = frame.slice(0, cut)
    if (at < cut) bytes[at] = byte
    try {
      read(bytes)
    } catch (error) {
      assert.match(
        String((error as { code?: string }).code),
        /^TRANSPORT_/,
        `byte ${at} is ${byte}, of ${cut}`,
      )
    }
  }
  for (let at = 0; at < frame.length; at++) {
    for (let byte = 0; byte < 256; byte++) readForged(at, byte, frame.length)
  }
  fc.assert(fc.property(fc.nat(frame.length - 1), fc.nat(255), fc.nat(frame.length), readForged), {
    numRuns: 2000,
  })
  // It claims more than there is.
  const longer = frame.slice()
  longer.fill(0xff, longer.length - 2)
  assert.throws(() => read(longer), { code: 'TRANSPORT_MALFORMED', message: /the context of a call is cut/ })
  const elements = frameOf([1, 800], { deadlineMs: Infinity, carried: undefined, cpu: undefined })
  elements[0] |= 0x80
  assert.throws(() => read(elements), { code: 'TRANSPORT_MALFORMED' })
})
