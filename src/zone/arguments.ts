/**
 * The arguments of a zone's methods, checked at the door.
 *
 * What comes out is complete and of the right kind, so the methods themselves check nothing twice.
 */
import type { CallOptions } from './call.ts'
import { parseMs, wrong } from './settings.ts'

const NO_ARGUMENTS: readonly unknown[] = Object.freeze([])
const NO_OPTIONS: CallOptions = Object.freeze({})

/** The arguments of a task. @throws {ZoneError} `ZONE_SETTING` when they are no array. */
export function argumentsOf(args: unknown): readonly unknown[] {
  if (args === undefined) return NO_ARGUMENTS
  if (!Array.isArray(args)) throw wrong('args', 'an array', args)
  return args
}

/** The options of a call. @throws {ZoneError} `ZONE_SETTING` that names the wrong one. */
export function optionsOf(options: unknown): CallOptions {
  if (options === undefined) return NO_OPTIONS
  if (options === null || typeof options !== 'object') throw wrong('options', 'an object', options)
  for (const name of Object.keys(options)) {
    if (name !== 'timeoutMs' && name !== 'signal') {
      throw wrong(`options.${name}`, 'absent; the options are timeoutMs, signal', (options as never)[name])
    }
  }
  const { timeoutMs, signal } = options as CallOptions
  if (timeoutMs !== undefined) parseMs('options.timeoutMs', timeoutMs)
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw wrong('options.signal', 'an AbortSignal', signal)
  return options
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

/** An options object with no other fields than `known`. @throws {ZoneError} `ZONE_SETTING`. */
export function argumentsRecord(options: unknown, known: readonly string[]): object {
  if (options === undefined) return {}
  if (options === null || typeof options !== 'object') throw wrong('options', 'an object', options)
  for (const [name, value] of Object.entries(options)) {
    if (!known.includes(name))
      throw wrong(`options.${name}`, `absent; the options are ${known.join(', ')}`, value)
  }
  return options
}
