/**
 * What the command line, fleets and durable runs need of arrows that users do not.
 *
 * For the other folders of this package; not part of its API.
 */
export { disableHops } from './remote/hop.ts'
export { type ArrowNode, OpCode, partsOf } from './build/node.ts'
export { runPart } from './remote/far-worker.ts'
