/**
 * Objects with options, checked at the function that takes them.
 *
 * A module describes its options as a table of kinds and gets a complete, frozen record back. Only properties
 * of the object's own are options: what a program, or an attacker, puts on `Object.prototype` is not. An
 * unknown name is refused, so that a misspelt limit is not a missing one. The errors are the module's own.
 */
import { shown } from './errors.ts'
import { isObject } from './members.ts'

/** The facts of an error about an argument or an option. */
export interface ArgumentFacts {
  /** The function that was called and what of it is wrong, such as `zone.close(): timeoutMs`. */
  readonly name: string
  /** What it must be; of an unknown option the advice. */
  readonly expected: string
  readonly received: string
  /** The name of an option that does not exist. */
  readonly unknown?: string
  /** The verb of the message, if it is not `must be`: `needs`. */
  readonly verb?: string
}

/** The sentence of an error about an argument or an option. */
export function argumentSentence({ name, expected, received, unknown, verb }: ArgumentFacts): string {
  if (unknown !== undefined) {
    const call = name.slice(0, name.length - unknown.length)
    return `${call}unknown option ${JSON.stringify(unknown)}; ${expected}`
  }
  const isMissing = verb !== undefined && received === 'undefined'
  return `${name} ${verb ?? 'must be'} ${expected}${isMissing ? '' : `; received ${received}`}`
}

/** Makes the error for a value that an argument cannot have. */
export type Wrong<E extends Error = Error> = (
  name: string,
  expected: string,
  received: unknown,
  more?: Pick<ArgumentFacts, 'unknown' | 'verb'>,
) => E

/** A module's {@link Wrong}, from what makes its error. */
export function refuser<E extends Error>(make: (facts: ArgumentFacts) => E): Wrong<E> {
  return (name, expected, received, more) => make({ name, expected, received: shown(received), ...more })
}

/** What an option may be, and what it is when it is absent. */
export interface Kind<T> {
  readonly expected: string
  readonly accepts: (value: unknown) => boolean
  readonly default: T
}

/** An integer within bounds. */
export function integer<T = number>(least: number, most: number, otherwise: T): Kind<number | T> {
  const accepts = (value: unknown): boolean =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
  const expected = most === Infinity ? `an integer from ${least}` : `an integer from ${least} to ${most}`
  return { expected, accepts, default: otherwise }
}

/** The longest time that a timer can wait for. */
export const TIMER_MS_MAX = 2 ** 31 - 1

export function milliseconds<T = number>(most: number, otherwise: T): Kind<number | T> {
  const accepts = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= most
  const expected = `a number of milliseconds from 0${most < Number.MAX_VALUE ? ` to ${most}` : ''}`
  return { expected, accepts, default: otherwise }
}

/** `true` or `false`. */
export function flag<T = boolean>(otherwise: T): Kind<boolean | T> {
  return { expected: 'true or false', accepts: (value) => typeof value === 'boolean', default: otherwise }
}

/** A string that is not empty. */
export function text<T = string>(otherwise: T): Kind<string | T> {
  const accepts = (value: unknown): boolean => typeof value === 'string' && value !== ''
  return { expected: 'a string that is not empty', accepts, default: otherwise }
}

/** One of some names. */
export function oneOf<Name extends string, T = Name>(names: readonly Name[], otherwise: T): Kind<Name | T> {
  const texts = names.map((name) => `'${name}'`)
  const expected = texts.length === 2 ? texts.join(' or ') : `one of ${texts.join(', ')}`
  return { expected, accepts: (value) => names.includes(value as Name), default: otherwise }
}

/** A function, or absent. */
export const callback: Kind<Function | undefined> = {
  expected: 'a function',
  accepts: (value) => typeof value === 'function',
  default: undefined,
}

/** An `AbortSignal`, or absent. */
export const abortSignal: Kind<AbortSignal | undefined> = {
  expected: 'an AbortSignal',
  accepts: (value) => value instanceof AbortSignal,
  default: undefined,
}

/** A value that is checked by the module that takes it. */
export const anything: Kind<unknown> = { expected: 'anything', accepts: () => true, default: undefined }

/** `value`, or its default when it is `undefined`. @throws what `wrong` makes. */
export function valueOfKind<T>(call: string, name: string, value: unknown, kind: Kind<T>, wrong: Wrong): T {
  if (value === undefined) return kind.default
  if (!isOf(kind, value)) throw wrong(`${call}: ${name}`, kind.expected, value)
  return value as T
}

/** A Proxy that throws when it is asked, such as a revoked one, is of no kind. */
function isOf(kind: Kind<unknown>, value: unknown): boolean {
  try {
    return kind.accepts(value)
  } catch {
    return false
  }
}

/** What lies in another option, which may be a Proxy that throws. */
const NESTED: Kind<unknown> = {
  expected: 'an object',
  accepts: (value) =>
    isObject(value) && !Array.isArray(value) && Object.keys(value).every((name) => name in value),
  default: undefined,
}

/** A table of options by name. */
export type Kinds = Readonly<Record<string, Kind<unknown>>>
/** What {@link optionsOf} returns for a table. */
export type OptionsOf<Table extends Kinds> = { readonly [Name in keyof Table]: Table[Name]['default'] }

/**
 * The options that an object has of its own, those that are absent with their defaults.
 * @param call The function that takes them, as an error names it: `zone.map()`.
 * @param within Where they lie in its arguments, if they are not its options themselves: `limits`.
 * @throws what `wrong` makes, for what is not an object, for an unknown name, and for a wrong value.
 */
export function optionsOf<Table extends Kinds>(
  given: unknown,
  kinds: Table,
  wrong: Wrong,
  call: string,
  within = '',
): OptionsOf<Table> {
  if (given === undefined) return defaultsOf(kinds)
  const names = Object.keys(kinds)
  if (within !== '') valueOfKind(call, within, given, NESTED, wrong)
  const own = ownOptions(given as Record<string, unknown>, new Set(names), wrong, call, within)
  const values: Record<string, unknown> = {}
  for (const name of names)
    values[name] = valueOfKind(call, optionName(within, name), own[name], kinds[name], wrong)
  return Object.freeze(values) as never
}

/** One record for all calls without an option, which most are. */
const DEFAULTS = new WeakMap<Kinds, OptionsOf<Kinds>>()

function defaultsOf<Table extends Kinds>(kinds: Table): OptionsOf<Table> {
  let known = DEFAULTS.get(kinds)
  if (known === undefined) {
    const defaults = Object.entries(kinds).map(([name, kind]) => [name, kind.default] as const)
    DEFAULTS.set(kinds, (known = Object.freeze(Object.fromEntries(defaults))))
  }
  return known as OptionsOf<Table>
}

/**
 * `given` with its own properties alone, for paths too hot for a record: it has no names but those in
 * `known`, and its values are checked by whoever reads them. One that inherits none of these names is
 * returned as it is, without an allocation.
 * @throws what `wrong` makes.
 */
export function ownOptions<T extends object>(
  given: T,
  known: ReadonlySet<string>,
  wrong: Wrong,
  call: string,
  within = '',
): T {
  if (given === null || typeof given !== 'object' || Array.isArray(given))
    throw wrong(`${call}: ${within || 'options'}`, 'an object', given)
  for (const name in given)
    if (!known.has(name) && Object.hasOwn(given, name)) {
      const unknown = optionName(within, name)
      throw wrong(`${call}: ${unknown}`, advice(name, [...known]), given[name], { unknown })
    }
  // Also names that a loop over properties does not find.
  for (const name of known)
    if (name in given && !Object.hasOwn(given, name)) return Object.assign(Object.create(null), given) as T
  return given
}

function optionName(within: string, name: string): string {
  return within === '' ? name : `${within}.${name}`
}

function advice(name: string, known: readonly string[]): string {
  const nearest = nearestOf(name, known)
  if (nearest !== undefined) return `did you mean "${nearest}"?`
  return known.length === 1 ? `the option is ${known[0]}` : `the options are ${known.join(', ')}`
}

/** The sentence for a name that nothing has. */
export function unknownSentence(noun: string, name: string, known: readonly string[]): string {
  const names = known.map((each) => JSON.stringify(each)).join(', ')
  return `no ${noun} is named ${JSON.stringify(name)}; existing ${noun}s: ${names || 'none'}`
}

/** What was probably meant: `workers` for `worker`, `entriesMax` for `maxEntries`, `ttlMs` for `ttl`. */
export function nearestOf(name: string, known: readonly string[]): string | undefined {
  const near = known.map((other) => [distance(name, other), other] as const)
  const [nearest] = near.sort(([a], [b]) => a - b)
  return nearest !== undefined && nearest[0] <= Math.max(1, name.length / 3) ? nearest[1] : undefined
}

/** 1 for the beginning of a name, the same words in another order included. */
function distance(name: string, other: string): number {
  const [a, b] = [name.toLowerCase(), other.toLowerCase()]
  const isBeginning = Math.min(a.length, b.length) > 2 && (a.startsWith(b) || b.startsWith(a))
  return isBeginning || wordsOf(name) === wordsOf(other) ? 1 : edits(a, b)
}

/** The words of a name in the order of the alphabet. */
function wordsOf(name: string): string {
  return name
    .split(/(?=[A-Z])|-/)
    .map((word) => word.toLowerCase())
    .sort()
    .join('-')
}

/** How many characters are added, dropped, replaced or swapped with their neighbour to make `b` of `a`. */
function edits(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const above = rows[i - 1]
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwapped ? rows[i - 2][j - 2] + 1 : Infinity
      row.push(Math.min(replaced, swapped, above[j] + 1, row[j - 1] + 1))
    }
    rows.push(row)
  }
  return rows[a.length][b.length]
}

/**
 * Check that the options which a caller has passed are those of an existing object; absent ones may be any.
 * @param existing The object, as the error names it: `the zone "cpu"`.
 * @param asked The settings that the options make. @param found Those of the object.
 * @throws What `wrong` makes, of the first option that differs.
 */
export function checkSame<Settings extends object>(
  call: string,
  existing: string,
  options: Readonly<Partial<Record<keyof Settings, unknown>>>,
  asked: Settings,
  found: Settings,
  wrong: Wrong,
): void {
  for (const name of Object.keys(asked) as (keyof Settings & string)[]) {
    if (!Object.hasOwn(options, name) || options[name] === undefined) continue
    const value = settingText(found[name])
    if (settingText(asked[name]) !== value)
      throw wrong(`${call}: ${name}`, `${value}, as ${existing} exists with it`, options[name])
  }
}

/** JSON has no Infinity, which is the absence of a limit. */
function settingText(value: unknown): string {
  return typeof value === 'number' ? String(value) : JSON.stringify(value)
}
