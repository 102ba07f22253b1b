/**
 * A module that fails while it loads.
 */
throw new TypeError('not today')
