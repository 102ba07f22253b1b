/**
 * The root of every error Corespun throws on purpose.
 *
 * One subclass per public module, each with fixed codes and typed facts; the sentence is built from the
 * facts, so a program decides by `code` and reads `facts`, and only people read `message`. Codes are API.
 * Bugs inside Corespun are assertions (see assert.ts), never one of these.
 */

/** For each code of a module: how the facts become the sentence. */
export type Sentences<Codes extends object> = {
  readonly [Code in keyof Codes]: (facts: Codes[Code]) => string
}

/** What each subclass has: its table, as a static property. */
interface Sentenced<Codes extends object> {
  readonly sentences: Sentences<Codes>
}

/**
 * An error with a code that is API and facts that are data.
 *
 * `Codes` maps each code to the type of its facts. A subclass has its table of sentences as a static
 * property, so no message is written where an error is thrown.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { CorespunError, store } from 'corespun'
 *
 * try {
 *   store.get('missing')
 * } catch (error) {
 *   assert.ok(error instanceof CorespunError)
 *   assert.equal(error.code, 'STORE_UNKNOWN')
 * }
 * ```
 */
export abstract class CorespunError<
  Codes extends object,
  Code extends keyof Codes = keyof Codes,
> extends Error {
  /** Which failure this is; compare this, never `message`. */
  readonly code: Code
  /** What the failure is about: names, limits and values, frozen. */
  readonly facts: Readonly<Codes[Code]>

  /**
   * @param code The failure.
   * @param facts What it is about.
   * @param options `cause`: the error that led to this one.
   */
  constructor(code: Code, facts: Codes[Code], options?: ErrorOptions) {
    super((new.target as unknown as Sentenced<Codes>).sentences[code](facts), options)
    this.code = code
    this.facts = Object.freeze({ ...facts })
  }

  /** The name of its class, such as `ZoneError`. */
  override get name(): string {
    return this.constructor.name
  }
}

/** A received value as a message shows it: short, on one line, also a Proxy that throws when it is read. */
export function shown(value: unknown): string {
  try {
    return nameOf(value)
  } catch {
    return 'a Proxy that throws'
  }
}

function nameOf(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)
    case 'bigint':
      return `${value}n`
    case 'function':
      return value.name === '' ? 'an anonymous function' : `function ${value.name}`
    case 'object':
      if (value === null) return 'null'
      return Array.isArray(value) ? `an array of ${value.length}` : objectShown(value)
    default:
      return String(value)
  }
}

/** An object by its class: `a plain object`, `a Promise`, `an AbortController`. */
function objectShown(value: object): string {
  const made: unknown = (value as { constructor?: unknown }).constructor
  const isNamed = typeof made === 'function' && typeof made.name === 'string' && made.name !== ''
  if (isNamed && made !== Object) return withArticle(made.name)
  // Generators and iterators have no class of their own, but a tag.
  const tag: unknown = (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag]
  if (typeof tag === 'string' && tag !== '') return withArticle(tag)
  return isNamed ? 'a plain object' : 'an object without a class name'
}

function withArticle(name: string): string {
  return `${/^[AEIO]/i.test(name) ? 'an' : 'a'} ${name}`
}
