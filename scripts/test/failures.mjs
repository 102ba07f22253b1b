/**
 * A reporter for Node's test runner that prints only what failed, for the end of a long run.
 *
 * The whole report of a suite has thousands of lines, and where only the end of it is kept (by CI, by a
 * terminal) the failure is not in it. One entry per failed test: its file, its name, the error's message and
 * the first lines of its stack. A test that failed because one inside it did is left out; a file that failed
 * by itself (it crashed, it left something behind) comes with the last it wrote to stderr.
 */
import { relative, resolve } from 'node:path'

const STACK_LINES = 6
const STDERR_LINES = 8

/**
 * @param {AsyncIterable<{type: string, data: any}>} events What the runner reports.
 * @returns {AsyncGenerator<string>}
 */
export default async function* failures(events) {
  const stderr = new Map()
  const crashed = []
  for await (const { type, data } of events) {
    if (type === 'test:stderr') remember(stderr, data)
    const failedFile = failedIn(type, data)
    if (failedFile !== undefined) yield `  ${relative(process.cwd(), failedFile)} has failed\n`
    if (type !== 'test:fail' || data.todo) continue
    const { error, duration_ms: ms } = data.details
    if (error?.failureType === 'subtestsFailed') continue
    const file = relative(process.cwd(), data.file ?? '')
    const ofFile = data.nesting === 0 && file !== '' && data.name.endsWith(file)
    if (ofFile) crashed.push(data.file)
    yield `✖ ${ofFile ? file : `${file}: ${data.name}`} (${Math.round(ms)} ms)\n${indented(textOf(error))}`
  }
  // Some Nodes report a file's output after its end.
  for (const file of crashed) {
    yield `  ${relative(process.cwd(), file)} wrote last:\n${indented(stderr.get(resolve(file)) ?? [])}`
  }
}

/** The file that an event ends, if tests in it have failed; they may be defined in a helper of it. */
function failedIn(type, { file, name, nesting, success, details }) {
  if (type === 'test:summary') return success ? undefined : file
  const isFile = type === 'test:complete' && nesting === 0 && name === file
  return isFile && details?.error?.failureType === 'subtestsFailed' ? file : undefined
}

/** Its path is relative on some Nodes. */
function remember(stderr, { file: given, message }) {
  const file = resolve(given)
  const lines = [...(stderr.get(file) ?? []), ...message.trimEnd().split('\n')]
  stderr.set(file, lines.slice(-STDERR_LINES))
}

/** The runner wraps what a test threw. */
function textOf(error) {
  const cause = error?.cause ?? error
  const text = typeof cause?.stack === 'string' ? cause.stack : String(cause?.message ?? cause)
  const message = String(cause?.message ?? '').split('\n').length
  return text.split('\n').slice(0, message + STACK_LINES)
}

function indented(lines) {
  return lines.map((line) => `    ${line}\n`).join('')
}
