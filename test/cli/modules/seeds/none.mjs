/**
 * A program without a check.
 *
 * As one that has forgotten to call it.
 */
export const forgotten = true
