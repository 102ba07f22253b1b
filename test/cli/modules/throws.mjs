/**
 * A module that fails while it loads.
 * The line of the throw is part of the message of `corespun run`.
 */
throw new TypeError('not today')
