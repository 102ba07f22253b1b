/**
 * Functions that workers load by name, from another package of the workspace.
 * They need no plugin.
 */
import { shout } from '@workspace/words'

/** @param {string} text */
export const shouted = (text) => shout(text)
