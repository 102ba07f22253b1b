/**
 * The arguments of a zone's methods, checked once where they are received.
 *
 * The results are complete and of the right type, so the methods check nothing twice.
 */
import { isAbsolute } from 'node:path'
import {
  type Kind,
  TIMER_MS_MAX,
  abortSignal,
  milliseconds,
  ownOptions,
  valueOfKind,
} from '../../base/index.ts'
import type { CallLimits, TaskOptions } from '../call/call.ts'
import { ORDER_NAMES, orderOf } from '../call/order.ts'
import type { ModuleOptions } from './any-zone.ts'
import type { ZoneError } from '../errors.ts'
import { wrong } from '../ground/settings.ts'

/** Options of a call; those that it does not have are `undefined`. */
export interface CheckedOptions extends CallLimits {
  /** The file that modules are resolved against. */
  readonly from: string | undefined
}

const NO_ARGUMENTS: readonly unknown[] = Object.freeze([])
const NO_OPTIONS = Object.freeze({
  timeoutMs: undefined,
  signal: undefined,
  from: undefined,
  order: undefined,
}) as never

/** The arguments of a task. @throws {ZoneError} `ZONE_ARGUMENT` for anything but an array. */
export function argumentsOf(call: string, args: unknown): readonly unknown[] {
  if (args === undefined) return NO_ARGUMENTS
  if (!Array.isArray(args)) throw wrong(`${call}: args`, 'an array', args)
  return args
}

const LIMITS = new Set(['timeoutMs', 'signal', ...ORDER_NAMES])
export const WITH_FROM = new Set([...LIMITS, 'from'])
/** Broadcasts go before all tasks. */
export const OF_BROADCAST = new Set(['timeoutMs', 'signal', 'from'])
export const ONLY_TIMEOUT = new Set(['timeoutMs'])
export const TIMEOUT_AND_FROM = new Set(['timeoutMs', 'from'])
export const ONLY_SIGNAL = new Set(['signal'])
const TIMEOUT = milliseconds<number | undefined>(TIMER_MS_MAX, undefined)
const FROM: Kind<string | URL | undefined> = {
  expected: 'a URL or an absolute path, such as import.meta.url',
  accepts: (from) =>
    from instanceof URL || (typeof from === 'string' && (isAbsolute(from) || URL.canParse(from))),
  default: undefined,
}

/**
 * The options of a call; each property is read once.
 * @param call The method, as an error names it.
 * @throws {ZoneError} `ZONE_ARGUMENT` that names the wrong one.
 */
export function optionsOf(
  call: string,
  options: unknown,
  known: ReadonlySet<string> = LIMITS,
): CheckedOptions {
  if (options === undefined) return NO_OPTIONS
  const own = ownOptions(options as ModuleOptions & TaskOptions, known, wrong, call)
  const timeoutMs = valueOfKind(call, 'timeoutMs', own.timeoutMs, TIMEOUT, wrong)
  const signal = valueOfKind(call, 'signal', own.signal, abortSignal, wrong)
  const from = known.has('from') ? valueOfKind(call, 'from', own.from, FROM, wrong) : undefined
  const order = known.has('priority') ? orderOf(call, own) : undefined
  return { timeoutMs, signal, from: from instanceof URL ? from.href : from, order }
}

export function notRunnable(received: unknown): ZoneError {
  const isModule = typeof received === 'string' || received instanceof URL
  const advice = isModule ? 'zone.execute(module, name, args) calls an export' : 'pass its arguments after it'
  return wrong('zone.run(): the first argument', `a function; ${advice}`, received)
}

/** @throws {ZoneError} `ZONE_ARGUMENT` for what cannot name a module. */
export function checkModule(name: string, expected: string, module: unknown): asserts module is string | URL {
  if (typeof module !== 'string' && !(module instanceof URL)) throw wrong(name, expected, module)
}

/** Module and name of an export. @throws {ZoneError} `ZONE_ARGUMENT`. */
export function exportOf(module: unknown, name: unknown): [string | URL, string] {
  checkModule('zone.execute(): the first argument', 'a function, or the URL or path of a module', module)
  if (typeof name !== 'string' || name === '')
    throw wrong('zone.execute(): the name of an export', 'a string that is not empty', name)
  return [module, name]
}
