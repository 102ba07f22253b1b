/**
 * The package's types in a CommonJS file.
 * Compiled, never run.
 */
import skein = require('skein')

/** The same class as by import. */
export const cpu = skein.zone.create('cpu')
