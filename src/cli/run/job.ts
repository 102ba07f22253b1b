/**
 * What the main thread of `corespun run` tells its workers.
 *
 * A file of its own, because the main thread must not load what workers do: the native core among it, whose
 * absence is a sentence and no stack.
 */
import type { RecordStyle } from './records.ts'

/** The key of the environment data. */
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
  readonly gate: SharedArrayBuffer
  /** Where running items are timed; `undefined` without `--timeout`. */
  readonly clocks: SharedArrayBuffer | undefined
}
