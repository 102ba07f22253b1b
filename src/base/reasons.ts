/**
 * A thrown value as the reason part of a one-line message, without its stack.
 *
 * Programs compare codes and never read it.
 */
import { shown } from './errors.ts'
import { stackIn } from './stacks.ts'

/** The message of what was thrown; errors of the file system as in a shell ("no such file or directory"). */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return oneLine(String(thrown))
  const known = systemReasons.get((thrown as NodeJS.ErrnoException).code ?? '')
  if (known !== undefined) return known
  return oneLine(thrown.name === 'Error' ? thrown.message : `${thrown.name}: ${thrown.message}`)
}

/** The message of an error; any other thrown value as errors show it. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : shown(thrown)
}

/** The stack of an error; any other thrown value as text. */
export function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? String(stackIn(thrown) ?? thrown.message) : String(thrown)
}

/** Whether Node's permission model (`--permission`) has refused something, or that is the cause. */
export function isDenied(thrown: unknown): boolean {
  const { code, cause } = Object(thrown) as { readonly code?: unknown; readonly cause?: unknown }
  return [code, (Object(cause) as { readonly code?: unknown }).code].includes('ERR_ACCESS_DENIED')
}

/** Whether a thrown value is an `AbortError`: the reason of a signal that is aborted without one. */
export function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'AbortError'
}

/** Longest line: the longest message of an error, with its advice and the paths that it names. */
const LINE_CHARS_MAX = 1000

/** What a terminal obeys, or shows in another order; messages may contain what others have sent. */
const OBEYED = /[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu

/**
 * `text` on one line without control characters, at most 1000 characters of it. A longer one is cut in its
 * middle: its start is the subject, and its end the advice.
 */
export function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').replace(OBEYED, '\uFFFD').trim()
  if (line.length <= LINE_CHARS_MAX) return line
  const half = LINE_CHARS_MAX / 2
  return `${line.slice(0, half - 3)} ... ${line.slice(2 - half)}`
}

const systemReasons: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'no such file or directory'],
  ['EACCES', 'permission denied'],
  ['EPERM', 'not permitted'],
  ['EISDIR', 'it is a directory'],
  ['ENOTDIR', 'a part of its path is not a directory'],
  ['ELOOP', 'too many symbolic links'],
  ['EMFILE', 'too many open files'],
  ['ENOSPC', 'no space left on the device'],
  ['EIO', 'input/output error'],
])
