/**
 * `corespun/transport`: values into bytes and back, for threads, stores, disks and networks.
 *
 * Which values travel, which are refused, how a class is registered: docs/design/transport.md.
 */
import { native, Table } from '../native/index.ts'
import { register } from './classes/classes.ts'
import { TransportError } from './errors.ts'
import { FunctionError } from './functions/function-errors.ts'
import { setFunctionTable } from './functions/functions.ts'
import type { ScriptLocation } from './functions/origin.ts'
import { setProcessTables } from './process.ts'

export { register, transportable } from './classes/classes.ts'
export type { Class } from './classes/class-entry.ts'
export type { ClassOptions } from './classes/classes.ts'
export { TransportError } from './errors.ts'
export type { TransportCodes } from './errors.ts'
export { FunctionError, type FunctionCodes } from './functions/function-errors.ts'
export { emittedUrl, lifted } from './functions/functions.ts'
export type { LiftedImport, LiftedSource } from './functions/lifted.ts'

export { type CodecOptions, type DecodeOptions, decode, encode, marshall, unmarshall } from './codec.ts'
export { isTransportable } from './frame.ts'
export { move } from './classes/memory.ts'

const locationNumbers = new Int32Array(4)
const locationBytes = new Uint8Array(locationNumbers.buffer)

function scriptLocationOf(fn: Function): ScriptLocation | undefined {
  locationNumbers[0] = 0
  const file = native.functionOrigin(fn, locationBytes)
  // By index: an iterator that the program has replaced would get hold of the memory.
  const numbers = locationNumbers as unknown as readonly [number, number, number, number]
  const scriptId = numbers[0]
  if (scriptId === 0) return undefined
  const isModule = numbers[3] === 1
  const name = typeof file === 'string' ? file : ''
  return { scriptId, file: name, line: numbers[1], column: numbers[2], isModule }
}

register(TransportError, { cid: 'corespun.TransportError' })
register(FunctionError, { cid: 'corespun.FunctionError' })

setProcessTables(native)
setFunctionTable({
  intern: (key) => native.intern(Table.functions, key),
  interned: (number) => native.interned(Table.functions, number),
  known: native.functionKnown,
  remember: native.functionRemember,
  origin: scriptLocationOf,
})
