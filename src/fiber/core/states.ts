/**
 * The states of a fiber that others look at, as bits of its `flags`.
 *
 * The rest of the bits are in fiber.ts and nobody else's.
 */

/** It has ended. */
export const DONE = 1
/** It has ended with a value. */
export const OK = 2
/** Its exit was received, or is waited for. */
export const OBSERVED = 128
