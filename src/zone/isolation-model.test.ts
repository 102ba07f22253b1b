/**
 * Workers that are processes beside one that is a thread: any values, errors and crashes, in any order.
 *
 * The oracle of a value is what a thread returns for it. One worker with one task at a time runs the calls in
 * order, so a crash ends its own call and no other.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { inZone } from './api/zones.test.support.ts'
import { type Zone, ZoneError } from './index.ts'

type Step =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'error'; readonly text: string }
  | { readonly kind: 'crash'; readonly signal: NodeJS.Signals }

/** Without invalid dates, which `deepEqual` of Node 20 takes for unequal to themselves. */
const VALUE = fc
  .anything({
    maxDepth: 3,
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
  })
  .filter((value) => !inspect(value, { depth: Infinity }).includes('Invalid Date'))
const STEPS: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: VALUE.map((value): Step => ({ kind: 'value', value })) },
    { weight: 3, arbitrary: fc.string().map((text): Step => ({ kind: 'error', text })) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom<NodeJS.Signals>('SIGSEGV', 'SIGKILL', 'SIGABRT')
        .map((signal): Step => ({ kind: 'crash', signal })),
    },
  ),
  { minLength: 1, maxLength: 16 },
)

/** Make the call of a step, and compare how it ends. */
async function check(step: Step, processes: Zone, threads: Zone): Promise<void> {
  switch (step.kind) {
    case 'value': {
      const [value, expected] = await Promise.all(
        [processes, threads].map((on) => on.run((given) => given, step.value)),
      )
      return assert.deepEqual(value, expected)
    }
    case 'error': {
      const throws = (text: string): never => {
        throw Object.assign(new RangeError(text), { code: 'E_OWN' })
      }
      return assert.rejects(processes.run(throws, step.text), {
        name: 'RangeError',
        message: step.text,
        code: 'E_OWN',
      })
    }
    default: {
      const crash = (signal: string): unknown => {
        process.kill(process.pid, signal)
        return new Promise(() => {})
      }
      return assert.rejects(processes.run(crash, step.signal), (error) => {
        assert.ok(error instanceof ZoneError && error.code === 'WORKER_DIED')
        assert.match(error.message, new RegExp(`was ended by ${step.signal}`))
        return true
      })
    }
  }
}

const skip = process.platform === 'win32' && 'no zones of processes'

test('any values, errors and crashes: each call has its own end, as in a thread', { skip }, () =>
  inZone({ workers: 1, isolation: 'process' }, (processes) =>
    inZone({ workers: 1 }, async (threads) => {
      let crashes = 0
      const property = fc.asyncProperty(STEPS, async (steps) => {
        await Promise.all(steps.map((step) => check(step, processes, threads)))
        crashes += steps.filter(({ kind }) => kind === 'crash').length
        const { died, waiting, running } = processes.stats()
        assert.deepEqual([died, waiting, running], [crashes, 0, 0])
      })
      await fc.assert(property, { numRuns: 10, endOnFailure: true })
    }),
  ),
)
