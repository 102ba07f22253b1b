/**
 * Errors that cannot be carried, reduced to what can.
 *
 * An error on its way must not be lost to a second one, so what cannot travel is left out field by field; the
 * last resort is a description in words.
 */
import { inspect } from 'node:util'
import { hide, setStack, stackIn } from '../../base/index.ts'
import { TransportError, isTransportable } from '../../transport/internal.ts'

/** How deep the causes of an error are reduced; further down they are left out. */
const CAUSES_MAX = 8

/** An error that cannot be carried, reduced to what can; `why` it cannot, where even that fails. */
export function portable(value: unknown, why: unknown): unknown {
  try {
    return value instanceof Error ? reduced(value, CAUSES_MAX) : portableWhy(why)
  } catch {
    return portableWhy(why)
  }
}

/** A value as text, whatever it is. */
export function stringOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    return inWords(value)
  }
}

/** A description that runs no code of the value. */
function inWords(value: unknown): string {
  try {
    return inspect(value, { depth: 0, customInspect: false })
  } catch {
    return `${typeof value === 'function' ? 'a function' : 'an object'} that cannot be shown`
  }
}

/** Reading a hostile value can throw anything. */
function portableWhy(why: unknown): unknown {
  if (why instanceof TransportError) return why
  return new TypeError(
    `the function threw a value whose properties throw when they are read: ${inWords(why)}`,
  )
}

/**
 * Its class, or the next one above that can be carried, under its name; message and stack; causes reduced in
 * the same way; and the fields that can travel.
 */
function reduced(value: Error, causesMax: number): Error {
  let prototype = Object.getPrototypeOf(value) as object | null
  for (; prototype !== null && prototype !== Object.prototype; prototype = Object.getPrototypeOf(prototype)) {
    const made = bareOf(value)
    Object.setPrototypeOf(made, prototype)
    copyParts(value, made, causesMax)
    if (canTravel(made)) return made
  }
  const plain = bareOf(value)
  hide(plain, 'name', String(value.name))
  return plain
}

/** An error of no particular class with the message and the stack of another one. */
function bareOf(value: Error): Error {
  const message = String(value.message)
  const made = value instanceof DOMException ? new DOMException(message, value.name) : new Error(message)
  const stack = stackIn(value)
  if (typeof stack === 'string') setStack(made, stack)
  return made
}

function copyParts(value: Error, made: Error, causesMax: number): void {
  const name = String(value.name)
  if (nameOf(made) !== name) hide(made, 'name', name)
  for (const key of ['cause', 'errors']) {
    if (!Object.hasOwn(value, key) || Object.prototype.propertyIsEnumerable.call(value, key)) continue
    const part = carried(value, key, causesMax)
    if (part !== undefined) hide(made, key, part.value)
  }
  for (const key of Object.keys(value)) {
    const part = carried(value, key, causesMax)
    if (part === undefined) continue
    Object.defineProperty(made, key, {
      value: part.value,
      configurable: true,
      enumerable: true,
      writable: true,
    })
  }
}

/** `undefined` where the getter of the class throws. */
function nameOf(made: Error): string | undefined {
  try {
    return String(made.name)
  } catch {
    return undefined
  }
}

/** A part of an error as it can travel; `undefined` when it cannot. */
function carried(owner: Error, key: string, causesMax: number): { readonly value: unknown } | undefined {
  try {
    const value: unknown = (owner as unknown as Record<string, unknown>)[key]
    if (isTransportable(value)) return { value }
    if (causesMax === 0) return undefined
    if (value instanceof Error) return { value: reduced(value, causesMax - 1) }
    // Errors of an AggregateError, which may contain anything; the order is kept.
    if (!Array.isArray(value) || !value.some((each) => each instanceof Error)) return undefined
    return { value: value.map((each: unknown) => reducedElement(each, causesMax - 1)) }
  } catch {
    // Reading it throws: it cannot travel.
    return undefined
  }
}

function reducedElement(value: unknown, causesMax: number): unknown {
  if (canTravel(value)) return value
  return value instanceof Error ? reduced(value, causesMax) : inWords(value)
}

/** As `isTransportable`, also where a getter or a hook throws. */
export function canTravel(value: unknown): boolean {
  try {
    return isTransportable(value)
  } catch {
    return false
  }
}
