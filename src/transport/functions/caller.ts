/**
 * Whose code calls: relative names of modules are resolved against the file that they were written in.
 *
 * Only stacks have that. Nothing here is kept, so code that is called from two files is told apart.
 */
import { withStackLimit } from '../../base/index.ts'

/**
 * The file of the code that called `above`, as its stack shows it; '' when it has none. For resolving the
 * names of modules where they were written. Costs about a microsecond.
 */
export function callerFile(above: Function): string {
  const { prepareStackTrace } = Error
  const canPrepare = Reflect.set(Error, 'prepareStackTrace', (_: Error, sites: NodeJS.CallSite[]) => sites)
  try {
    const holder: { stack?: NodeJS.CallSite[] | string } = {}
    withStackLimit(1, () => Error.captureStackTrace(holder, above))
    const { stack } = holder
    return typeof stack === 'string' ? fileOfFrame(stack) : (stack?.[0]?.getFileName() ?? '')
  } finally {
    if (canPrepare) Reflect.set(Error, 'prepareStackTrace', prepareStackTrace)
  }
}

/** The file of the first frame of a stack in text, which is all that a locked `Error` lets one have. */
function fileOfFrame(stack: string): string {
  return /^ +at (?:.* \()?((?:file:\/\/|\/).*?):\d+:\d+\)?$/m.exec(stack)?.[1] ?? ''
}
