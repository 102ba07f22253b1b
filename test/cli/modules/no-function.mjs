/**
 * A module without any function.
 * `corespun run` reports it in one line.
 */
export const one = 1
