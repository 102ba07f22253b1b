/**
 * What the command line needs of arrows that users do not.
 *
 * For the other folders of this package; not part of its API.
 */
export { disableHops } from './remote/hop.ts'
