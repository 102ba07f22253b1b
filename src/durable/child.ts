/**
 * Runs that a run starts: each once, with its result recorded, and cancelled with its parent.
 *
 * The parent waits by a signal of a name that no user can send, so it leaves memory meanwhile as for any
 * other; whoever ends the child sends it.
 */
import { integer, optionsOf, text } from '../base/index.ts'
import { type Operation, uninterruptibleMask } from '../fiber/index.ts'
import { asked } from './context.ts'
import type { Durable } from './definition.ts'
import { wrong } from './errors.ts'
import { checkKey } from './keys.ts'
import { performed, uuidOf } from './operations.ts'
import type { Children } from './room.ts'

/** How a run is started. */
export const START_KINDS = {
  key: text<undefined>(undefined),
  ttlMs: integer<undefined>(1000, 365 * 86_400_000, undefined),
}

/**
 * Starts a run of another definition, waits for its end, and returns its value: after a crash the same run,
 * and its value is a copy that was recorded. It is cancelled when the fiber that waits for it is interrupted,
 * as by the end of its parent. Any process that offers its definition runs it.
 * @param options `key`: unique among the runs of its definition. Default: an id that follows from this run.
 *   `ttlMs`: as that of `start()`; longer than this run may be without a process.
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
  options?: { readonly key?: string; readonly ttlMs?: number },
): Operation<Value, unknown> {
  if (typeof (Object(definition) as Partial<Durable>).name !== 'string')
    throw wrong('child(): the definition', 'what durable() returns', definition)
  const { name } = definition
  const { key: chosen, ttlMs } = optionsOf(options, START_KINDS, wrong, 'child()')
  if (chosen !== undefined) checkKey('child()', chosen)
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
      await of.start(fresh, input, parent, ttlMs)
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
