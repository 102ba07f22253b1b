/**
 * Objects with options, checked at the function that takes them.
 *
 * A module describes its options as a table of kinds and gets a complete, frozen record back. Only properties
 * of the object's own are options: what a program, or an attacker, puts on `Object.prototype` is not. An
 * unknown name is refused, so that a misspelt limit is not a missing one. The errors are the module's own.
 */
import { shown } from './errors.ts'

/** The facts of an error about an argument or an option. */
export interface ArgumentFacts {
  /** What it is about, such as `options.timeoutMs`. */
  readonly name: string
  /** What it must be; of an unknown option the advice. */
  readonly expected: string
  readonly received: string
  /** The name of an option that does not exist. */
  readonly unknown?: string
}

/** The sentence of an error about an argument or an option. */
export function argumentSentence({ name, expected, received, unknown }: ArgumentFacts): string {
  if (unknown !== undefined) return `unknown option ${JSON.stringify(unknown)}; ${expected}`
  return `${name} must be ${expected}; received ${received}`
}

/** Makes the error for a value that an argument cannot have. */
export type Wrong<E extends Error = Error> = (
  name: string,
  expected: string,
  received: unknown,
  unknown?: string,
) => E

/** A module's {@link Wrong}, from what makes its error. */
export function refuser<E extends Error>(make: (facts: ArgumentFacts) => E): Wrong<E> {
  return (name, expected, received, unknown) => {
    const facts = { name, expected, received: shown(received) }
    return make(unknown === undefined ? facts : { ...facts, unknown })
  }
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

/** `true` or `false`. */
export function flag<T = boolean>(otherwise: T): Kind<boolean | T> {
  return { expected: 'true or false', accepts: (value) => typeof value === 'boolean', default: otherwise }
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

/** `value`, or its default when it is `undefined`. @throws what `wrong` makes. */
export function valueOfKind<T>(name: string, value: unknown, kind: Kind<T>, wrong: Wrong): T {
  if (value === undefined) return kind.default
  if (!kind.accepts(value)) throw wrong(name, kind.expected, value)
  return value as T
}

/**
 * The options that an object has of its own, those that are absent with their defaults.
 * @param what How an error names the object: `options`. @param prefix How it names one: `options.`.
 * @throws what `wrong` makes, for what is not an object, for an unknown name, and for a wrong value.
 */
export function optionsOf<Kinds extends Readonly<Record<string, Kind<unknown>>>>(
  given: unknown,
  kinds: Kinds,
  wrong: Wrong,
  what = 'options',
  prefix = `${what}.`,
): { readonly [Name in keyof Kinds]: Kinds[Name]['default'] } {
  const fields = ownOptions(given, Object.keys(kinds), wrong, what, prefix)
  const values: Record<string, unknown> = {}
  for (const name of Object.keys(kinds))
    values[name] = valueOfKind(prefix + name, fields[name], kinds[name] as Kind<unknown>, wrong)
  return Object.freeze(values) as never
}

/** One option that an object has of its own, on paths too hot for a record. */
export function ownOption<T extends object, Name extends keyof T>(given: T, name: Name): T[Name] | undefined {
  return Object.hasOwn(given, name) ? given[name] : undefined
}

/** The same before the values are checked: a record of all names in `known`, each read once. */
export function ownOptions<Name extends string>(
  given: unknown,
  known: readonly Name[],
  wrong: Wrong,
  what = 'options',
  prefix = `${what}.`,
): Record<Name, unknown> {
  const values = {} as Record<Name, unknown>
  if (given !== undefined) {
    if (given === null || typeof given !== 'object' || Array.isArray(given))
      throw wrong(what, 'an object', given)
    for (const name of Object.keys(given))
      if (!known.includes(name as Name))
        throw wrong(prefix + name, advice(name, known), (given as never)[name], name)
  }
  for (const name of known)
    values[name] =
      given !== undefined && Object.hasOwn(given as object, name) ? (given as never)[name] : undefined
  return values
}

function advice(name: string, known: readonly string[]): string {
  const near = known.map((other) => [edits(name.toLowerCase(), other.toLowerCase()), other] as const)
  const [nearest] = near.sort(([a], [b]) => a - b)
  if (nearest !== undefined && nearest[0] <= Math.max(1, name.length / 3))
    return `did you mean "${nearest[1]}"?`
  return known.length === 1 ? `the option is ${known[0]}` : `the options are ${known.join(', ')}`
}

/** How many characters are added, dropped, replaced or swapped with their neighbour to make `b` of `a`. */
function edits(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const above = rows[i - 1]!
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwapped ? rows[i - 2]![j - 2]! + 1 : Infinity
      row.push(Math.min(replaced, swapped, above[j]! + 1, row[j - 1]! + 1))
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}
