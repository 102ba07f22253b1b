/**
 * The arguments of a zone's methods, checked at the door.
 *
 * What comes out is complete and of the right kind, so the methods themselves check nothing twice.
 */
import { ownOptions } from '../../base/index.ts'
import type { CallOptions } from '../call/call.ts'
import { parseMs, wrong } from './settings.ts'

const NO_ARGUMENTS: readonly unknown[] = Object.freeze([])
const NO_OPTIONS: CallOptions = Object.freeze({ timeoutMs: undefined, signal: undefined } as never)

/** The arguments of a task. @throws {ZoneError} `ZONE_SETTING` when they are no array. */
export function argumentsOf(args: unknown): readonly unknown[] {
  if (args === undefined) return NO_ARGUMENTS
  if (!Array.isArray(args)) throw wrong('args', 'an array', args)
  return args
}

const CALL_OPTIONS = ['timeoutMs', 'signal'] as const

/**
 * The options of a call, of which `known` are those that it has; each is read just once.
 * @throws {ZoneError} `ZONE_SETTING` that names the wrong one.
 */
export function optionsOf<Name extends keyof CallOptions>(
  options: unknown,
  known: readonly Name[] = CALL_OPTIONS as never,
): Pick<CallOptions, Name> {
  if (options === undefined) return NO_OPTIONS
  const { timeoutMs, signal } = { ...NO_OPTIONS, ...ownOptions(options, known, wrong) }
  if (timeoutMs !== undefined) parseMs('options.timeoutMs', timeoutMs)
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw wrong('options.signal', 'an AbortSignal', signal)
  return { timeoutMs, signal } as Pick<CallOptions, Name>
}

/** Module and name of an export. @throws {ZoneError} `ZONE_SETTING`. */
export function exportOf(module: unknown, name: unknown): [string | URL, string] {
  if (typeof module !== 'string' && !(module instanceof URL)) {
    throw wrong('the first argument', 'a function, or the URL or path of a module', module)
  }
  if (typeof name !== 'string' || name === '')
    throw wrong('the name of an export', 'a string that is not empty', name)
  return [module, name]
}
