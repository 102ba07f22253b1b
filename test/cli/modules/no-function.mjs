/**
 * A module without any function.
 */
export const one = 1
