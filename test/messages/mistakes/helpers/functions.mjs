/**
 * What the rows of the command line call.
 *
 * One function for each way to fail, and one that does not.
 */
export const number = 5
export const len = (path) => path.length
export const big = () => ({ sizes: [5n] })
export const slow = () => new Promise((resolve) => setTimeout(resolve, 60_000))
export const exits = () => process.exit(1)
