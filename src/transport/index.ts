/**
 * `skein/transport`: values into bytes and back, for threads, stores, disks and networks.
 *
 * What can travel, what is refused and how a class joins in: docs/design/transport.md.
 */
import { native, Table } from '../native/index.ts'
import { register } from './classes/classes.ts'
import { TransportError } from './errors.ts'
import { FunctionError } from './functions/function-errors.ts'
import { setFunctionTable } from './functions/functions.ts'
import type { ScriptPlace } from './functions/origin.ts'
import { setProcessTables } from './process.ts'

export { handleOf, register, registerHandle, transportable } from './classes/classes.ts'
export type { Class } from './classes/class-entry.ts'
export type { ClassOptions, HandleOptions } from './classes/classes.ts'
export { TransportError } from './errors.ts'
export type { TransportCodes } from './errors.ts'
export { FunctionError } from './functions/function-errors.ts'
export { callerFile } from './functions/caller.ts'
export {
  codeNumber,
  functionByNumber,
  functionNumber,
  moduleFunctionNumber,
  seenExportNumber,
  seenFunctionNumber,
  setFunctionTable,
  setPreparation,
} from './functions/functions.ts'
export type { FunctionTable } from './functions/functions.ts'
export {
  FrameWriter,
  isTransportable,
  marshall,
  processFrame,
  publicFrame,
  readFrame,
  unmarshall,
} from './frame.ts'
export { move } from './classes/memory.ts'
export { setProcessTables } from './process.ts'
export type { ProcessTables } from './process.ts'

const placeNumbers = new Int32Array(4)
const placeBytes = new Uint8Array(placeNumbers.buffer)

function scriptPlaceOf(fn: Function): ScriptPlace | undefined {
  placeNumbers[0] = 0
  const file = native.functionOrigin(fn, placeBytes)
  const [scriptId, line, column, isModule] = placeNumbers as unknown as [number, number, number, number]
  if (scriptId === 0) return undefined
  return { scriptId, file: typeof file === 'string' ? file : '', line, column, isModule: isModule === 1 }
}

register(TransportError, { cid: 'skein.TransportError' })
register(FunctionError, { cid: 'skein.FunctionError' })

setProcessTables(native)
setFunctionTable({
  intern: (key) => native.intern(Table.functions, key),
  interned: (number) => native.interned(Table.functions, number),
  known: native.functionKnown,
  remember: native.functionRemember,
  origin: scriptPlaceOf,
})
