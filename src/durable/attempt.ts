/**
 * One attempt of a step: its function is called, here or in a zone, until it ends, is late, or its fiber is
 * interrupted.
 *
 * It writes nothing. A function that ignores its signal is left behind, and its value is dropped.
 */
import { unwatch, watch } from '../base/index.ts'
import type { Engine } from '../fleet/internal.ts'
import { encode } from '../transport/index.ts'
import type { StepCall } from './context.ts'
import { RunError } from './errors.ts'
import { orAborted } from './interrupts.ts'
import type { Journal } from './journal.ts'

/** How an attempt has ended. */
export type Outcome = { readonly frame: Uint8Array } | { readonly error: unknown }

/** What an attempt needs of its run. */
interface AttemptOf {
  readonly clock: Engine['clock']
  readonly journal: Pick<Journal, 'checkSize'>
  /** The name of the step. */
  readonly name: string
  readonly interrupted: AbortSignal
}

/** @param about What the function receives behind its arguments, with a signal if it runs here. */
export async function attempted(
  { fn, args, zone, timeoutMs }: StepCall,
  about: { readonly key: string; readonly attempt: number },
  { clock, journal, name, interrupted }: AttemptOf,
): Promise<Outcome> {
  const controller = new AbortController()
  const { signal } = controller
  const end = (): void => controller.abort(interrupted.reason)
  watch(interrupted, end)
  const late = (): void =>
    controller.abort(new RunError('RUN_STEP_TIMEOUT', { step: name, timeoutMs: timeoutMs as number }))
  const endTimer = timeoutMs === undefined ? () => {} : clock.after(timeoutMs, late)
  const called = async (): Promise<unknown> => {
    if (zone === undefined) return await fn(...args, { ...about, signal })
    return (await zone.execute(fn, [...args, about], { signal })).value
  }
  try {
    const value = await orAborted(called(), signal)
    signal.throwIfAborted()
    const frame = encode(value)
    journal.checkSize(`the value of the step ${JSON.stringify(name)}`, frame)
    return { frame }
  } catch (error) {
    return { error }
  } finally {
    endTimer()
    unwatch(interrupted, end)
  }
}
