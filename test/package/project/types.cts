/**
 * The package's types in a CommonJS file.
 * Compiled, never run.
 */
import corespun = require('corespun')

/** The same class as by import. */
export const cpu = corespun.zone.create('cpu')
