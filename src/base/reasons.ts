/**
 * Any thrown thing as the reason part of a one-line message: what a person needs of it, without its stack.
 *
 * The sentences around it are those of the modules' own errors; programs compare codes and never read this.
 */

/** Where Corespun's own frames lie. */
const OWN = new URL('..', import.meta.url).href

/** What was thrown. Errors of the file system become the words people know ("no such file or directory"). */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return oneLine(String(thrown))
  const known = systemReasons.get((thrown as NodeJS.ErrnoException).code ?? '')
  if (known !== undefined) return known
  return oneLine(thrown.name === 'Error' ? thrown.message : `${thrown.name}: ${thrown.message}`)
}

/** Longest line: the longest sentence of an error with its advice, behind the places that it names. */
const LINE_CHARS_MAX = 1000

/**
 * `text` on one line, at most 1000 characters of it. A longer one is cut in its middle: what it is about
 * stands at its start, and what to do at its end.
 */
export function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  if (line.length <= LINE_CHARS_MAX) return line
  const half = LINE_CHARS_MAX / 2
  return `${line.slice(0, half - 3)} ... ${line.slice(2 - half)}`
}

/** Why a module did not load, with the place; V8 puts that of a syntax error in front of the stack. */
export function loadReason(thrown: unknown): string {
  const reason = reasonOf(thrown)
  if (!(thrown instanceof Error)) return reason
  const stack = (thrown.stack ?? '').split(OWN)[0] // from there on it is ours
  const place = /^(file:\/\/\S+:\d+|\/\S+:\d+)$/m.exec(stack) ?? /(file:\/\/[^\s()]+:\d+:\d+)/.exec(stack)
  return place === null ? reason : `${reason} (${place[1].replace(/^file:\/\//, '')})`
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
