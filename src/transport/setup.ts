/**
 * The transport of this thread, connected to the tables of the process, with its own errors registered.
 *
 * Loaded by both doors, index.ts and internal.ts.
 */
import { native, Table } from '../native/index.ts'
import { register } from './classes/classes.ts'
import { TransportError } from './errors.ts'
import { FunctionError } from './functions/function-errors.ts'
import { setFunctionTable } from './functions/functions.ts'
import type { ScriptLocation } from './functions/origin.ts'
import { setProcessTables } from './process.ts'

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
