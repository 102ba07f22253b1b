/**
 * What the jobs of process.mjs call.
 *
 * No two runs return the same, so that two results of a key would differ.
 */
export const work = (key) => `${key} by ${process.pid} ${Math.random()}`
