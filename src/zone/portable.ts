/**
 * Errors that cannot be carried, reduced to what can.
 *
 * An error on its way must not be lost to a second one, so the last resort is a description in words.
 */
import { inspect } from 'node:util'
import { TransportError } from '../transport/index.ts'

/** An error that cannot be carried, reduced to what can; `why` it cannot, where even that fails. */
export function portable(value: unknown, why: unknown): unknown {
  try {
    return value instanceof Error ? reduced(value) : portableWhy(why)
  } catch {
    return portableWhy(why)
  }
}

/** Reading a hostile value can throw anything: what is thrown is told in words. */
function portableWhy(why: unknown): unknown {
  if (why instanceof TransportError) return why
  return new TypeError(
    `the function threw a value that cannot be read: ${inspect(why, { depth: 0, customInspect: false })}`,
  )
}

/** Its class's name, message, code and stack. */
function reduced(value: Error): Error {
  const plain = new Error(String(value.message))
  Object.defineProperty(plain, 'name', {
    value: String(value.name),
    configurable: true,
    writable: true,
  })
  if (typeof value.stack === 'string') plain.stack = value.stack
  const code: unknown = (value as { code?: unknown }).code
  return typeof code === 'string' || typeof code === 'number' ? Object.assign(plain, { code }) : plain
}
