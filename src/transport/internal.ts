/**
 * Frames in memory of the caller's, the table of functions, handles.
 *
 * For the other folders of this package; not part of its API.
 */
import './index.ts'

export { handleOf, registerHandle } from './classes/classes.ts'
export type { HandleOptions } from './classes/classes.ts'
export { callerFile } from './functions/caller.ts'
export { readFunctionText } from './functions/captures.ts'
export type { LiftedSource } from './functions/lifted.ts'
export { MAIN_MODULE } from './functions/main-module.ts'
export {
  codeNumber,
  functionByNumber,
  functionNumber,
  moduleFunctionNumber,
  seenExportNumber,
  seenFunctionNumber,
  setPreparation,
} from './functions/functions.ts'
export { parseSource, type SyntaxNode } from './functions/parser.ts'
export { FrameWriter, processFrame, publicFrame, readFrame } from './frame.ts'
export { refuseClass } from './refused.ts'
export { beyondTrees } from './read/source.ts'
export { rawText } from './text.ts'
