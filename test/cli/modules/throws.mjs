/**
 * A module that fails while it loads.
 * The line of the throw is part of what `corespun run` tells.
 */
throw new TypeError('not today')
