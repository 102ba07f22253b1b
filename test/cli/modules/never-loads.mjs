/**
 * A module whose top-level await never settles.
 * Plain Node ends with a warning here; a worker has a loop that keeps running.
 */
await new Promise(() => {})

export default (item) => item
