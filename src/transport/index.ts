/**
 * `corespun/transport`: values into bytes and back, for threads, stores, disks and networks.
 *
 * Which values travel, which are refused, how a class is registered: docs/design/transport.md. The other
 * folders of this package import internal.ts, which does not rehearse by itself.
 * @module corespun/transport
 */
// oxlint-disable-next-line import/no-unassigned-import -- connects the transport
import './setup.ts'
import { rehearse } from './rehearsal.ts'

export { register, transportable } from './classes/classes.ts'
export type { Class } from './class-entry.ts'
export type { ClassOptions } from './classes/classes.ts'
export { TransportError } from './errors.ts'
export type { TransportCodes } from './errors.ts'
export { FunctionError, type FunctionCodes } from './functions/function-errors.ts'
export { emittedUrl, lifted } from './functions/functions.ts'

export { type CodecOptions, type DecodeOptions, decode, encode } from './codec.ts'
export { isTransportable } from './frame.ts'
export { move } from './classes/memory.ts'

rehearse()
