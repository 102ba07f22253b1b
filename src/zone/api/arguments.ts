/**
 * The arguments of a zone's methods, checked at the door.
 *
 * What comes out is complete and of the right kind, so the methods themselves check nothing twice.
 */
import { TIMER_MS_MAX, abortSignal, milliseconds, ownOptions, valueOfKind } from '../../base/index.ts'
import type { CallOptions } from '../call/call.ts'
import { wrong } from './settings.ts'

const NO_ARGUMENTS: readonly unknown[] = Object.freeze([])
const NO_OPTIONS: CallOptions = Object.freeze({ timeoutMs: undefined, signal: undefined } as never)

/** The arguments of a task. @throws {ZoneError} `ZONE_ARGUMENT` when they are no array. */
export function argumentsOf(call: string, args: unknown): readonly unknown[] {
  if (args === undefined) return NO_ARGUMENTS
  if (!Array.isArray(args)) throw wrong(`${call}: args`, 'an array', args)
  return args
}

const CALL_OPTIONS = new Set(['timeoutMs', 'signal'] as const)
export const ONLY_TIMEOUT = new Set(['timeoutMs'] as const)
export const ONLY_SIGNAL = new Set(['signal'] as const)
const TIMEOUT = milliseconds<number | undefined>(TIMER_MS_MAX, undefined)

/**
 * The options of a call, of which `known` are those that it has; each is read just once.
 * @param call The method, as an error names it.
 * @throws {ZoneError} `ZONE_ARGUMENT` that names the wrong one.
 */
export function optionsOf<Name extends keyof CallOptions>(
  call: string,
  options: unknown,
  known: ReadonlySet<Name> = CALL_OPTIONS as never,
): Pick<CallOptions, Name> {
  if (options === undefined) return NO_OPTIONS
  const own = ownOptions(options as CallOptions, known, wrong, call)
  const timeoutMs = valueOfKind(call, 'timeoutMs', own.timeoutMs, TIMEOUT, wrong)
  const signal = valueOfKind(call, 'signal', own.signal, abortSignal, wrong)
  return { timeoutMs, signal } as Pick<CallOptions, Name>
}

/** Module and name of an export. @throws {ZoneError} `ZONE_ARGUMENT`. */
export function exportOf(module: unknown, name: unknown): [string | URL, string] {
  if (typeof module !== 'string' && !(module instanceof URL)) {
    throw wrong('zone.execute(): the first argument', 'a function, or the URL or path of a module', module)
  }
  if (typeof name !== 'string' || name === '')
    throw wrong('zone.execute(): the name of an export', 'a string that is not empty', name)
  return [module, name]
}
