/**
 * The arguments of a zone's methods, checked at the door.
 *
 * What comes out is complete and of the right kind, so the methods themselves check nothing twice.
 */
import type { CallOptions } from '../call/call.ts'
import { parseMs, wrong } from './settings.ts'

const NO_ARGUMENTS: readonly unknown[] = Object.freeze([])
const NO_OPTIONS: CallOptions = Object.freeze({})

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
  if (options === null || typeof options !== 'object') throw wrong('options', 'an object', options)
  for (const name of Object.keys(options)) {
    if (known.includes(name as Name)) continue
    const names = known.length === 1 ? `the option is ${known[0]}` : `the options are ${known.join(', ')}`
    throw wrong(`options.${name}`, `absent; ${names}`, (options as never)[name])
  }
  const { timeoutMs, signal } = options as CallOptions
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

/**
 * An options object with no other fields than `known`, each read just once.
 * @throws {ZoneError} `ZONE_SETTING`.
 */
export function argumentsRecord(options: unknown, known: readonly string[]): object {
  if (options === undefined) return {}
  if (options === null || typeof options !== 'object') throw wrong('options', 'an object', options)
  const given = options as Record<string, unknown>
  for (const name of Object.keys(given)) {
    if (!known.includes(name))
      throw wrong(`options.${name}`, `absent; the options are ${known.join(', ')}`, given[name])
  }
  return Object.fromEntries(known.map((name) => [name, given[name]]))
}
