/**
 * Where things lie in the checkout: the one place that knows its folders.
 *
 * Everything is an absolute path or a function of one, so scripts work from any current folder.
 */
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'

/** The checkout. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** What set-up and the tests remember between runs; ignored by git, safe to delete. */
export const MEMORY = join(ROOT, '.set-up')
/** Where the compiled core lies in a checkout; src/native/load.ts looks here. */
export const NATIVE = join(ROOT, 'dist', 'native')

/** @param {...string} parts A path below the checkout. */
export function inRoot(...parts) {
  return join(ROOT, ...parts)
}
