/**
 * What the command line and fleets need of arrows that users do not.
 *
 * For the other folders of this package; not part of its API.
 */
export { disableHops } from './remote/hop.ts'
export { runPart } from './remote/far-worker.ts'
