/**
 * A package of the workspace that functions import which are sent.
 * It lies behind a link, outside of node_modules.
 */

/** @param {string} text */
export const shout = (text) => text.toUpperCase()
