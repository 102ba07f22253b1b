/**
 * The stacks of errors, in programs that have changed how they are made.
 *
 * Hardened programs freeze `Error` or lock its properties, as `node --frozen-intrinsics` does. A program's
 * own `Error.prepareStackTrace`, which the engine calls when a stack is first read, may throw. Errors keep
 * the stack that the program allows, or none; nothing else depends on it.
 */

/** Call `make` while new stacks have at most `framesMax` frames. */
export function withStackLimit<Made>(framesMax: number, make: () => Made): Made {
  const before = setLimit(framesMax)
  if (before === undefined) return make()
  try {
    return make()
  } finally {
    setLimit(before)
  }
}

/** Returns the limit before; `undefined` where it cannot be changed. */
function setLimit(framesMax: number): number | undefined {
  try {
    const { stackTraceLimit } = Error
    return Reflect.set(Error, 'stackTraceLimit', framesMax) ? stackTraceLimit : undefined
  } catch {
    // An accessor that throws.
    return undefined
  }
}

/**
 * The property `stack` of an error; `undefined` where the program's `Error.prepareStackTrace` throws.
 * @throws what a getter of the error itself throws.
 */
export function stackIn(error: object): unknown {
  try {
    return (error as { stack?: unknown }).stack
  } catch (thrown) {
    if (!preparesStacks()) throw thrown
    return undefined
  }
}

/** Set the stack of an error that is being made. */
export function setStack(error: object, stack: unknown): void {
  try {
    hide(error, 'stack', stack)
  } catch {
    // Node 20 formats the old one first.
    Reflect.deleteProperty(error, 'stack')
    hide(error, 'stack', stack)
  }
}

/** Define a property of an error as the language defines its own: not enumerable. */
export function hide(error: object, key: string, value: unknown): void {
  Object.defineProperty(error, key, { value, writable: true, enumerable: false, configurable: true })
}

function preparesStacks(): boolean {
  const own = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
  return own !== undefined && (own.get !== undefined || own.value !== undefined)
}
