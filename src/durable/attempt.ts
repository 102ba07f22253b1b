/**
 * One attempt of a step: its function is called, here or in a zone, until it ends, is late, or its fiber is
 * interrupted.
 *
 * It writes nothing. A function that ignores its signal is left behind, and its value is dropped. What is
 * written of its end, and of that of a run, is made here.
 */
import { meters, unwatch, watch } from '../base/index.ts'
import type { Exit, ScheduleDriver } from '../fiber/index.ts'
import { thrownBy, troublesIn } from '../fiber/internal.ts'
import { type Engine, NonRetryableError } from '../fleet/internal.ts'
import type { Asked, StepCall } from './context.ts'
import { RunError, type RunFacts } from './errors.ts'
import { orAborted } from './interrupts.ts'
import type { Journal } from './journal.ts'
import type { JournalEntry, RunStatus } from './records.ts'
import { type Kept, keptOf } from './values.ts'

/** How an attempt has ended. */
type Outcome = { readonly frame: Kept } | { readonly error: unknown }

/** What an attempt needs of its run. */
interface AttemptOf {
  readonly clock: Engine['clock']
  readonly run: RunFacts
  /** The headers of the trace in which it was started. */
  readonly trace: object | undefined
  readonly journal: Pick<Journal, 'checkSize'>
  /** The name of the step. */
  readonly name: string
  readonly interrupted: AbortSignal
}

/** What the function receives behind its arguments, with a signal if it runs here. */
interface About {
  readonly key: string
  readonly attempt: number
}

/** With a span, if somebody makes them. */
export async function attempted(call: StepCall, about: About, of: AttemptOf): Promise<Outcome> {
  const { run, name: step, trace } = of
  const span = meters.steps?.begin({ run: run.name, key: run.key, step, attempt: about.attempt }, trace)
  if (span === undefined) return called(call, about, of)
  const outcome = await span.within(() => called(call, about, of))
  span.end('error' in outcome ? outcome : undefined)
  return outcome
}

async function called(
  { fn, args, zone, timeoutMs }: StepCall,
  about: About,
  { clock, journal, name, interrupted }: AttemptOf,
): Promise<Outcome> {
  const controller = new AbortController()
  const { signal } = controller
  const end = (): void => controller.abort(interrupted.reason)
  watch(interrupted, end)
  const late = (): void =>
    controller.abort(new RunError('RUN_STEP_TIMEOUT', { step: name, timeoutMs: timeoutMs as number }))
  const endTimer = timeoutMs === undefined ? () => {} : clock.after(timeoutMs, late)
  const value = async (): Promise<unknown> => {
    if (zone === undefined) return await fn(...args, { ...about, signal })
    return (await zone.execute(fn, [...args, about], { signal })).value
  }
  try {
    const returned = await orAborted(value(), signal)
    signal.throwIfAborted()
    const frame = keptOf(returned)
    journal.checkSize(`the value of the step ${JSON.stringify(name)}`, frame)
    return { frame }
  } catch (error) {
    return { error }
  } finally {
    endTimer()
    unwatch(interrupted, end)
  }
}

/** What is recorded of it. */
export function entryOf(
  { key, name }: Asked,
  outcome: Outcome,
  of: {
    readonly driver: ScheduleDriver | undefined
    readonly journal: Pick<Journal, 'errorFrame'>
    readonly begunMs: number
    readonly atMs: number
  },
): JournalEntry {
  const { driver, journal, begunMs, atMs } = of
  if ('frame' in outcome) return { kind: 'done', key, atMs, begunMs, frame: outcome.frame }
  let { error } = outcome
  let delayMs: number | undefined
  try {
    if (!(error instanceof NonRetryableError)) delayMs = driver?.next(error, atMs)
  } catch (thrown) {
    error = thrown // by a function of the schedule: the step fails with that
  }
  const frame = journal.errorFrame(error, `the error of the step ${JSON.stringify(name)}`)
  if (delayMs === undefined) return { kind: 'error', key, atMs, begunMs, frame }
  return { kind: 'failed', key, atMs, begunMs, frame, dueMs: atMs + delayMs }
}

type RunEnd = [status: RunStatus, frame: Kept]

/** What is written of the end of a run. */
export function endOf(exit: Exit<unknown, unknown>, isCancelled: boolean, journal: Journal): RunEnd {
  try {
    if (exit.kind === 'success') {
      const frame = keptOf(exit.value)
      journal.checkSize('the value of the run', frame)
      return ['done', frame]
    }
    if (!isCancelled || exit.kind !== 'interruption')
      return failedBy(exit.kind === 'interruption' ? exit.reason : thrownBy(exit), journal)
    // What its finalizers have failed with has to be seen.
    const errors = troublesIn(exit).map(thrownBy)
    if (errors.length === 0) return ['cancelled', '']
    return failedBy(
      errors.length === 1 ? errors[0] : new AggregateError(errors, 'several finalizers failed'),
      journal,
    )
  } catch (error) {
    return failedBy(error, journal)
  }
}

export const failedBy = (error: unknown, journal: Pick<Journal, 'errorFrame'>): RunEnd => [
  'failed',
  journal.errorFrame(error, 'the error of the run'),
]
