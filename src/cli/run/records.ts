/**
 * The lines of the output: one JSON text for each item, made in the worker that ran it.
 *
 * A result is the bare JSON of what the function returned, so that `| jq .score` just works; a failure is
 * `{"item":7,"error":{...}}`. With `numbered` both contain the number. Workers mark the lines of failures by
 * a first character with which no JSON text starts, which saves an object per item between the threads.
 */
import { jsonFault, messageOf, stackIn } from '../../base/index.ts'
import { CliError } from '../errors.ts'

/** How lines are written; fixed for one run. */
export interface RecordStyle {
  /** Every line is an object with the item's number: `{"item":7,"value":...}`. */
  readonly numbered: boolean
  /** Errors carry their stack. */
  readonly stacks: boolean
  /** Items are paths, and records of failures name them. */
  readonly paths: boolean
}

const FAILURE_MARK = '!'

/**
 * The line for a returned value. `undefined`, and whatever else JSON leaves out, is written as `null`.
 * @throws {CliError} `CLI_RESULT_NOT_JSON` for what `JSON.stringify` refuses: a BigInt, a cycle, a throwing
 * `toJSON`.
 */
export function resultLine(value: unknown, item: number, style: RecordStyle): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (thrown) {
    // V8 describes a cycle in several lines; the first is the message.
    const fault = jsonFault(value)
    const reason = fault === undefined ? messageOf(thrown).split('\n')[0] : `it has ${fault}`
    throw new CliError('CLI_RESULT_NOT_JSON', { reason }, { cause: thrown })
  }
  return valueLine(text ?? 'null', item, style)
}

/** The line for a returned value that is JSON already. */
export function valueLine(json: string, item: number, { numbered }: RecordStyle): string {
  return numbered ? `${numberedStart(item)}${json}}` : json
}

/** The JSON in a line that {@link valueLine} has made. */
export function jsonIn(line: string, item: number, { numbered }: RecordStyle): string {
  return numbered ? line.slice(numberedStart(item).length, -1) : line
}

const numberedStart = (item: number): string => `{"item":${item},"value":`

/** The marked line for whatever `item` threw. `text` is the item itself: a path or a line. */
export function failureLine(thrown: unknown, item: number, text: string, style: RecordStyle): string {
  const path = style.paths ? { path: text } : {}
  return FAILURE_MARK + JSON.stringify({ item, ...path, error: errorFields(thrown, style.stacks) })
}

/** Whether a line was made by {@link failureLine}. */
export function isFailure(line: string): boolean {
  return line.startsWith(FAILURE_MARK)
}

/** A failure's line as it is printed. */
export function unmarked(line: string): string {
  return line.slice(FAILURE_MARK.length)
}

interface ErrorFields {
  readonly name?: string
  readonly code?: string | number
  readonly message: string
  readonly stack?: string
}

function errorFields(thrown: unknown, stacks: boolean): ErrorFields {
  try {
    if (thrown instanceof Error) return fieldsOf(thrown, stacks)
  } catch {
    // A getter of the error throws: it is shown as any other thrown value.
  }
  return { message: thrownText(thrown) }
}

function fieldsOf(thrown: Error, stacks: boolean): ErrorFields {
  const code = (thrown as { code?: unknown }).code
  return {
    name: String(thrown.name),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    message: String(thrown.message),
    ...(stacks ? { stack: String(stackIn(thrown)) } : {}),
  }
}

/** A thrown value that is not an error, as text. Never throws. */
function thrownText(thrown: unknown): string {
  try {
    const json = typeof thrown === 'object' && thrown !== null ? JSON.stringify(thrown) : undefined
    // `toJSON` may return undefined.
    return json ?? String(thrown)
  } catch {
    return `a thrown ${typeof thrown} that cannot be shown`
  }
}
