/**
 * `Error.stackTraceLimit`, where it can be changed.
 *
 * Hardened programs freeze `Error` or lock its properties, as `node --frozen-intrinsics` does. Errors made
 * there keep the stack that the program allows; nothing else depends on the limit.
 */

/** Call `make` while new stacks have at most `framesMax` frames. */
export function withStackLimit<Made>(framesMax: number, make: () => Made): Made {
  const { stackTraceLimit } = Error
  if (!Reflect.set(Error, 'stackTraceLimit', framesMax)) return make()
  try {
    return make()
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
  }
}
