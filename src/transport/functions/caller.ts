/**
 * The file of the calling code, against which relative module names are resolved.
 *
 * Only a stack shows it. Nothing is cached: one function may be called from two files.
 */
import { withStackLimit } from '../../base/index.ts'

/** The file of the code that called `above`; '' when it is unknown. Takes about a microsecond. */
export function callerFile(above: Function): string {
  const before = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace') ?? NOTHING
  const canPrepare = Reflect.defineProperty(Error, 'prepareStackTrace', SITES)
  try {
    const holder: { stack?: NodeJS.CallSite[] | string } = {}
    withStackLimit(1, () => Error.captureStackTrace(holder, above))
    const { stack } = holder
    return typeof stack === 'string' ? fileOfFrame(stack) : (stack?.[0]?.getFileName() ?? '')
  } catch {
    // The program's own `Error.prepareStackTrace`, which cannot be replaced, throws.
    return ''
  } finally {
    if (canPrepare) Reflect.defineProperty(Error, 'prepareStackTrace', before)
  }
}

const NOTHING: PropertyDescriptor = {
  value: undefined,
  writable: true,
  enumerable: true,
  configurable: true,
}
const SITES: PropertyDescriptor = { ...NOTHING, value: (_: Error, sites: NodeJS.CallSite[]) => sites }

/** The file of the first frame of a stack in text: with a frozen `Error` there is only the text. */
function fileOfFrame(stack: string): string {
  return /^ +at (?:.* \()?((?:file:\/\/|\/).*?):\d+:\d+\)?$/m.exec(stack)?.[1] ?? ''
}
