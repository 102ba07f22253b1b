/**
 * Runs that a run starts: each once, with its result recorded, and cancelled with its parent.
 *
 * The parent waits by a signal of a name that no user can send, so it leaves memory meanwhile as for any
 * other; whoever ends the child sends it.
 */
import { anything, integer, oneOf, optionsOf, text } from '../base/index.ts'
import { type Operation, uninterruptibleMask } from '../fiber/index.ts'
import { RANK_OF } from '../fleet/internal.ts'
import { asked } from './context.ts'
import type { Durable } from './definition.ts'
import { wrong } from './errors.ts'
import { checkKey } from './keys.ts'
import { performed, uuidOf } from './operations.ts'
import type { Children, Starting } from './room.ts'

/** How a run is started. */
export interface StartOptions {
  /** Unique among the runs of its definition. Default: a UUID, of a child one that its parent has. */
  readonly key?: string | undefined
  /** How long it is kept when it has ended, 1000 to a year. Default: until `forget()`. */
  readonly ttlMs?: number | undefined
  /** Which of those that wait for a process are taken first. Default `normal`. */
  readonly priority?: 'high' | 'normal' | 'low' | undefined
  /** Most of those with its `per`, such as a tenant, that are in memory of all processes, 1 to 1000. */
  readonly limit?: { readonly concurrency: number; readonly per?: string | undefined } | undefined
}

const START_KINDS = {
  key: text<undefined>(undefined),
  ttlMs: integer<undefined>(1000, 365 * 86_400_000, undefined),
  priority: oneOf(['high', 'normal', 'low'], 'normal'),
  limit: anything,
}
const LIMIT_KINDS = {
  concurrency: integer<undefined>(1, 1000, undefined),
  per: text(''),
}

/** @throws {RunError} `RUN_ARGUMENT`. */
export function startOf(
  call: string,
  options: StartOptions | undefined,
): Starting & { readonly key?: string | undefined } {
  const { key, ttlMs, priority, limit: asked } = optionsOf(options, START_KINDS, wrong, call)
  if (key !== undefined) checkKey(call, key)
  const rank = priority === 'normal' ? undefined : RANK_OF[priority]
  if (asked === undefined) return { key, ttlMs, rank }
  const { concurrency, per } = optionsOf(asked, LIMIT_KINDS, wrong, call, 'limit')
  if (per !== '') checkKey(`${call}: limit.per`, per)
  if (concurrency === undefined) throw wrong(`${call}: limit.concurrency`, 'an integer from 1 to 1000', asked)
  return { key, ttlMs, rank, limit: { per, concurrency, jobs: 0, perMs: 0 } }
}

/**
 * Starts a run of another definition, waits for its end, and returns its value: after a crash the same run,
 * and its value is a copy that was recorded. It is cancelled when the fiber that waits for it is interrupted,
 * as by the end of its parent. Any process that offers its definition runs it.
 * @param options As those of `start()`. `ttlMs`: longer than this run may be without a process.
 * @throws {RunError} `RUN_ARGUMENT`, `RUN_REQUIRED`, `RUN_TAKEN`. It fails with what the child fails with,
 *   and with `RUN_CANCELLED` if that was cancelled otherwise.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { child, durable, runs, step } from 'corespun/durable'
 * import { connect } from 'corespun/fleet'
 *
 * const part = durable('part', function* (n: number) {
 *   return yield* step('square', (value: number) => value * value, [n])
 * })
 * const whole = durable('whole', function* () {
 *   return (yield* child(part, 3)) + (yield* child(part, 4))
 * })
 * await using fleet = await connect('memory:')
 * await using work = await runs(fleet, { definitions: [part, whole] })
 * assert.equal(await (await work.start('whole', undefined)).result(), 25)
 * ```
 */
export function* child<Input, Value>(
  definition: Durable<string, Input, Value>,
  input: Input,
  options?: StartOptions,
): Operation<Value, unknown> {
  if (typeof (Object(definition) as Partial<Durable>).name !== 'string')
    throw wrong('child(): the definition', 'what durable() returns', definition)
  const { name } = definition
  const { key: chosen, ...how } = startOf('child()', options)
  const start = asked('child()', `child(${name})`)
  const { run } = start
  // A copy of this run has its ids, and starts children of its own.
  const fresh = chosen ?? uuidOf({ ...start, key: `${run.facts.key}/${start.key}` })
  let key = fresh
  const parent = { ...run.facts, signal: start.key }
  function* recorded(what: string, fn: (of: Children) => unknown): Operation<unknown, unknown> {
    const of = what === '' ? start : asked('child()', `${what}(${name})`)
    const rest = { args: [], retry: undefined, timeoutMs: undefined, zone: undefined }
    return yield* performed(of, (live, interrupted) =>
      live.step(of, { fn: async () => fn(await live.children(name)), ...rest }, interrupted),
    )
  }
  let hasEnded = false
  function* waited(): Operation<unknown, unknown> {
    const call = { name: start.key, timeoutMs: undefined }
    let ended: unknown
    do {
      const end = asked('child()', `end(${name})`)
      ended = yield* performed(end, (live, interrupted) => live.signal(end, call, interrupted))
      // Of one that was started there before a checkpoint.
    } while (ended !== undefined && ended !== key)
    hasEnded = true
    return yield* recorded('result', (of) => of.result(key))
  }
  // One that was started is known, whenever its parent is interrupted.
  return (yield* uninterruptibleMask(function* (restore): Operation<unknown, unknown> {
    const started = yield* recorded('', async (of) => {
      await of.start(fresh, input, parent, how)
      return fresh
    })
    key = started as string
    try {
      return yield* restore(waited())
    } finally {
      if (!hasEnded) yield* recorded('cancel', (of) => of.cancel(key))
    }
  })) as Value
}
