/**
 * The options `setup` and `teardown` of a zone: what runs in each worker before its first task and before it
 * leaves.
 *
 * Here they become plain data, since the settings travel as JSON to the thread that starts the workers. A
 * function travels by its number, as that of a call, and is refused by the same rules; a module's export is
 * resolved against the file that creates the zone. Settings are kept for as long as the zone exists, so a
 * captured value that refers to memory, which has to be released, is refused.
 */
import { callerFile, calledArguments, calledNumber, moduleFunctionNumber } from '../../transport/internal.ts'
import { thisBridge } from '../../bridge/index.ts'
import type { Task } from './task.ts'
import type { ZoneError } from '../errors.ts'

/** A function that workers run, or a module whose export of the option's name they run. */
export type WorkerHook<Args extends unknown[]> = string | URL | ((this: Task, ...args: Args) => unknown)

/** What `zone.settings` has for the options `setup` and `teardown`. */
export interface HookSettings {
  /** The name of the function, or the module and its export: `file:///app/worker.js#setup`. */
  readonly name: string
  /** The number of the function in this process. @internal */
  readonly number: number
  /** The values that it captures, as a frame in base64. @internal */
  readonly captured: string | null
}

type HookName = 'setup' | 'teardown'
type Wrong = (name: string, expected: string, received: unknown) => ZoneError

/**
 * @param option The call and the option, as an error names them.
 * @param above The method that the program has called, in whose file a relative module is named.
 * @throws {ZoneError} `ZONE_ARGUMENT`.
 * @throws {FunctionError} for a function that cannot be sent, or a module that cannot be named.
 */
export function hookOf(
  option: readonly [call: string, name: HookName],
  given: unknown,
  above: Function,
  wrong: Wrong,
): HookSettings | null {
  const [call, name] = option
  if (given === undefined) return null
  if (typeof given === 'string' || given instanceof URL) {
    const number = moduleFunctionNumber(given, name, () => callerFile(above))
    return Object.freeze({ name: `${String(given)}#${name}`, number, captured: null })
  }
  if (typeof given !== 'function')
    throw wrong(
      `${call}: ${name}`,
      `a function, or the URL or path of a module that exports "${name}"`,
      given,
    )
  const number = calledNumber(given)
  const values = calledArguments(given, [])
  const captured = values.length === 0 ? null : capturedFrame(`${call}: ${name}`, values, wrong)
  return Object.freeze({ name: given.name === '' ? 'an anonymous function' : given.name, number, captured })
}

function capturedFrame(option: string, values: readonly unknown[], wrong: Wrong): string {
  const bridge = thisBridge()
  const frame = bridge.frame(values, 'captured')
  if (bridge.writer.attachments.length > 0) {
    bridge.discard()
    throw wrong(
      option,
      'a function that captures no shared or moved memory; a store passes it',
      values.at(-1),
    )
  }
  return Buffer.from(frame).toString('base64')
}
