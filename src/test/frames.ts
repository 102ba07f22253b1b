/**
 * The line of the program that has called.
 *
 * Lines of Node and of this package are passed over.
 */
import { withStackLimit } from '../base/index.ts'

/** The folder of this package's code. */
const HERE = /^.*\/(?:lib|dist|src|joined)\//.exec(import.meta.url)?.[0] ?? new URL('.', import.meta.url).href
export const FRAMES_MAX = 40
const POSITION = /(?:\(|at |async )((?:file:\/\/|\/|[A-Z]:\\)[^()]*?):(\d+):\d+\)?$/

/** Where the program's own code has called, as `file:line`; empty if no line is its own. */
export function frameOf(): string {
  const [file, line] = callerIn(withStackLimit(FRAMES_MAX, () => new Error('here')))
  return file && `${file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1)}:${line}`
}

/** The file and the line of the innermost call of the program's own. */
export function callerIn(error: Error): [file: string, line: string] {
  for (const text of String(error.stack).split('\n').slice(1)) {
    const [, file, line] = POSITION.exec(text) ?? []
    if (file === undefined || text.includes('/node_modules/')) continue
    const isOurs = (file.startsWith('file:') ? file : `file://${file}`).startsWith(HERE)
    if (!isOurs || /\.test\.\w+$/.test(file)) return [file.replace(/^file:\/\//, ''), line]
  }
  return ['', '']
}
