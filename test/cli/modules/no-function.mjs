/**
 * A module without any function.
 * `skein run` says so in one line.
 */
export const one = 1
