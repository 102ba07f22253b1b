/**
 * Functions that workers load by name.
 * They need no plugin.
 */
import { shout } from './words.js'

/** @param {string} text */
export const shouted = (text) => shout(text)
