/**
 * Where the folders are, seen from the compiled files in bench/dist/harness.
 *
 * Only this file counts `..`.
 */
import { fileURLToPath } from 'node:url'

/** Folder of bench/dist. */
export const DIST_FOLDER = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')
export const BENCH_FOLDER = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
export const PACKAGE_FOLDER = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')
/** Folder of the dated records. */
export const RECORDS_FOLDER = `${BENCH_FOLDER}/records`
