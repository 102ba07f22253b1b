/**
 * A module that exports no app.
 *
 * For `serve({ app })` and for `corespun serve`.
 */
export const x = 1
