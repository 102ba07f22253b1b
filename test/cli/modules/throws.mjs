/**
 * A module that fails while it loads.
 * The line of the throw is part of what `skein run` tells.
 */
throw new TypeError('not today')
