/**
 * A module without any function.
 * `corespun run` says so in one line.
 */
export const one = 1
