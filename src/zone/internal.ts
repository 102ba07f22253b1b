/**
 * The end of one worker, and the loader of TypeScript.
 *
 * For the other folders of this package; not part of its API.
 */
export { installTypeScript } from './worker/loader/index.ts'
export { endWorker } from './api/zones.ts'
