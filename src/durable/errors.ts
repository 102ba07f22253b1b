/**
 * What durable runs refuse, and how they end otherwise than by what their functions return or throw.
 *
 * Errors of steps and of runs are not here: they arrive as what they were.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  messageOf,
  refuser,
} from '../base/index.ts'
import { hasCode, mayPass } from '../fleet/internal.ts'
import { register } from '../transport/internal.ts'

/** Which run an error is about: the name of its definition, and its key. */
export interface RunFacts {
  /** The name of its definition. */
  readonly name: string
  /** Its key. */
  readonly key: string
}

/** The codes of {@link RunError} and the facts of each. */
export interface RunCodes {
  /** An argument or an option has a wrong value. */
  RUN_ARGUMENT: ArgumentFacts
  /** A step, a pause or a signal was asked for by code that is not part of a run. */
  RUN_REQUIRED: { readonly call: string }
  /** No run has that key. */
  RUN_UNKNOWN: RunFacts
  /** The run has ended, and takes no more signals. */
  RUN_ENDED: RunFacts & { readonly status: string }
  /** The run was cancelled. */
  RUN_CANCELLED: RunFacts
  /** The run had not ended in the time of `result()`; it goes on. */
  RUN_TIMEOUT: RunFacts & { readonly timeoutMs: number }
  /** The code asks for another step than the journal has; the run waits for code that fits. */
  RUN_DIVERGED: RunFacts & { readonly asked: string; readonly recorded: string }
  /** A record of the journal cannot be read; the run waits. */
  RUN_UNREADABLE: RunFacts & { readonly record: string; readonly reason: string }
  /** An attempt of a step has taken longer than its `timeoutMs`. */
  RUN_STEP_TIMEOUT: { readonly step: string; readonly timeoutMs: number }
  /** The run cannot be run again, or copied. */
  RUN_NOT_AGAIN: RunFacts & { readonly reason: string }
  /** The key that a run chose for one that it starts is that of a run which it has not started. */
  RUN_TAKEN: RunFacts
  /** With `check`: the function of the run does something else when it is called again with its journal. */
  RUN_DIFFERS: RunFacts & { readonly second: string }
  /** A value is larger than the engine accepts. */
  RUN_TOO_LARGE: { readonly what: string; readonly bytes: number; readonly bytesMax: number }
  /** This process does not have the run any more: it is cancelled, another process has it, or it waits. */
  RUN_LEFT: RunFacts & { readonly reason: string }
  /** The runs of this process are closed. */
  RUN_CLOSED: { readonly call: string }
}

const runOf = ({ name, key }: RunFacts): string => `the run ${JSON.stringify(key)} of ${JSON.stringify(name)}`

const SENTENCES: Sentences<RunCodes> = {
  RUN_ARGUMENT: argumentSentence,
  RUN_REQUIRED: ({ call }) =>
    `${call} works in a run only: write yield* ${call} in the generator function of durable(), or in one ` +
    'that it calls or forks',
  RUN_UNKNOWN: (f) => `${runOf(f)} does not exist; check its key, or start it`,
  RUN_ENDED: (f) => `${runOf(f)} has ended (${f.status}) and takes no more signals`,
  RUN_CANCELLED: (f) => `${runOf(f)} was cancelled; run.forget() makes its key free`,
  RUN_TIMEOUT: (f) =>
    `${runOf(f)} had not ended after ${f.timeoutMs} ms; it goes on: call result() again, or look at state()`,
  RUN_DIVERGED: (f) =>
    `${runOf(f)} asks for ${f.asked} where its journal has ${f.recorded}: its code has changed; it waits ` +
    'until a process offers code that fits its journal, or run.again({ from }) drops what does not fit',
  RUN_NOT_AGAIN: (f) => `${runOf(f)} cannot be run again so: ${f.reason}`,
  RUN_DIFFERS: (f) =>
    `${runOf(f)}, called a second time with what it has recorded, ${f.second}: what may differ is a step, ` +
    'or now(), random() and id()',
  RUN_TAKEN: (f) =>
    `${runOf(f)} exists, and was not started by the run that calls child(); choose another key, or pass none`,
  RUN_UNREADABLE: (f) =>
    `the record ${f.record} of ${runOf(f)} cannot be read: ${f.reason}; it waits: register the class, ` +
    'update corespun, or end the run with cancel({ now: true })',
  RUN_STEP_TIMEOUT: ({ step, timeoutMs }) =>
    `the step ${JSON.stringify(step)} has taken longer than its timeoutMs of ${timeoutMs}; raise it, ` +
    'or pass retry',
  RUN_TOO_LARGE: ({ what, bytes, bytesMax }) =>
    `${what} has ${bytes} bytes, and ${bytesMax} are accepted; keep it in a file or a store, ` +
    'and pass its name',
  RUN_LEFT: (f) =>
    `${runOf(f)} is not in this process any more: ${f.reason}; nothing that it asks for is done`,
  RUN_CLOSED: ({ call }) => `${call} after close(); call it before, or open other runs`,
}

/**
 * An error of durable runs. Decide by `code`; `facts` has the details.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { connect } from 'corespun/fleet'
 * import { RunError, durable, runs } from 'corespun/durable'
 *
 * const nothing = durable('nothing', function* () {})
 * await using fleet = await connect('memory:')
 * await using work = await runs(fleet, { definitions: [nothing] })
 * const isUnknown = (error: unknown) => error instanceof RunError && error.code === 'RUN_UNKNOWN'
 * await assert.rejects(work.get('nothing', 'a').result(), isUnknown)
 * ```
 */
export class RunError<Code extends keyof RunCodes = keyof RunCodes> extends CorespunError<RunCodes, Code> {
  /** @internal */
  static readonly sentences = SENTENCES
}

register(RunError, { cid: 'corespun.RunError' })

/** The error for a value that an argument cannot have. */
export const wrong = refuser((facts) => new RunError('RUN_ARGUMENT', facts))

/** What is read of a run. @throws {RunError} `RUN_UNREADABLE`. */
export function readable<Value>(run: RunFacts, record: string, read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    throw new RunError('RUN_UNREADABLE', { ...run, record, reason: messageOf(cause) }, { cause })
  }
}

/** The connection has ended, or the file is full: for another process, or for later. */
export const isForLater = (error: unknown): boolean =>
  error instanceof RunError ||
  mayPass(error) ||
  hasCode(error, 'FLEET_CLOSED', 'FLEET_CONFLICT', 'FLEET_FILE_CORRUPT')
