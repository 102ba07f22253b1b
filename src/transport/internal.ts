/**
 * The transport for the other folders of this package: what users have, frames in memory of the caller's, the
 * table of functions, handles.
 *
 * Not part of the package's API.
 */
// oxlint-disable-next-line import/no-unassigned-import -- connects the transport
import './setup.ts'

export { handleOf, register, registerHandle, transportable } from './classes/classes.ts'
export { move } from './classes/memory.ts'
export { encode } from './codec.ts'
export { TransportError } from './errors.ts'
export type { TransportCodes } from './errors.ts'
export { FunctionError } from './functions/function-errors.ts'
export { isGeneratingForbidden } from './generate.ts'
export type { HandleOptions } from './classes/classes.ts'
export { callerFile } from './functions/caller.ts'
export { readFunctionText } from './functions/captures.ts'
export { labelOfKey } from './functions/compile.ts'
export { capturesOf, type LiftedSource } from './functions/lifted.ts'
export { MAIN_MODULE } from './functions/main-module.ts'
export {
  calledArguments,
  calledNumber,
  codeNumber,
  functionByNumber,
  functionNumber,
  lifted,
  moduleFunctionNumber,
  seenExportNumber,
  seenFunctionNumber,
  setPreparation,
  textNumber,
} from './functions/functions.ts'
export { parseSource, type SyntaxNode } from './functions/parser.ts'
export {
  bindingOf,
  type Binding,
  isFunction,
  type ModuleNames,
  namesOf,
  type Scope,
} from './functions/scopes.ts'
export { processToken } from './process.ts'
export { FrameWriter, isTransportable, processFrame, publicFrame, readFrame } from './frame.ts'
export { rehearse } from './rehearsal.ts'
export { isRefusal, isRefusedClass, refuseClass } from './refused.ts'
export { toBeFrozen } from './read/fractions.ts'
export { beyondTrees } from './read/source.ts'
export { rawText } from './text.ts'
