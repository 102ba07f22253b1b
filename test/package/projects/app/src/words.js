/**
 * What the program imports in this thread.
 * With the plugin workers import it too.
 */

/** @param {string} text */
export const shout = (text) => text.toUpperCase()

/** @param {string} text @param {string} mark */
export default (text, mark) => text + mark
