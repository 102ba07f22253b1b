/**
 * The environment data of the workers of `corespun run`.
 *
 * A file of its own: the main thread must not load the modules of the workers, among them the native core,
 * whose absence is reported as one line without a stack.
 */
import type { DurableJournal } from './durable-items.ts'
import type { RecordStyle } from './records.ts'

export const JOB_KEY = 'corespun run'

/** What all items of a run share; plain data and shared memory. */
export interface Job {
  /** What `import()` is given. */
  readonly url: string
  /** The module as the user wrote it, for messages. */
  readonly module: string
  readonly exportName: string
  readonly exportNamed: boolean
  /** Items are JSON texts. */
  readonly json: boolean
  readonly style: RecordStyle
  readonly cutoff: SharedArrayBuffer
  /** Where running items are timed; `undefined` without `--timeout`. */
  readonly clocks: SharedArrayBuffer | undefined
  /** The journals of the groups in flight; `undefined` where items travel one by one. */
  readonly journals: SharedArrayBuffer | undefined
  /** With `--journal`: where runs of a durable export are kept. */
  readonly kept: DurableJournal | undefined
  /** Whether a failure ends its group, so that the main thread learns of it. */
  readonly failFast: boolean
}
