/**
 * The process of `corespun`: hands itself to the command and ends with the command's exit code.
 *
 * It ends by `process.exit`, after both output streams took everything: a user's module may have left a timer
 * or a socket open, and a finished job should not wait for it.
 */
import { reasonOf } from '../base/index.ts'
import { command } from './command.ts'
import { CliError } from './errors.ts'
import type { OpenZone } from './run/mapper.ts'
import type { StopSignal } from './run/run.ts'
import { watchParent, withoutEchoes } from './signals.ts'

const signals: readonly StopSignal[] = ['SIGINT', 'SIGTERM']

/**
 * Loaded on demand: help and wrong arguments need no workers, and a missing native core is reported in one
 * line.
 */
const openZone: OpenZone = async (settings) => {
  const { installTypeScript, openZone: open } = await import('./run/workers.ts')
  // Before the workers start: those of Nodes that strip no types take the hooks over from this thread.
  installTypeScript()
  return open(settings)
}

// Every worker's output is piped into these two: from the eleventh on Node would warn of a leak.
process.stdout.setMaxListeners(0)
process.stderr.setMaxListeners(0)

// Writing a message to a closed terminal must not crash the process.
process.stderr.on('error', () => {})
process.stdout.on('error', () => {})

const code = await command(process.argv.slice(2), {
  // Made on first use: Node loads its streams of files for it, and most runs name files.
  get stdin() {
    return process.stdin
  },
  stdout: process.stdout,
  stderr: process.stderr,
  get folder() {
    return currentFolder()
  },
  openZone,
  onSignal(listener) {
    const counted = withoutEchoes(listener)
    const ignoreParent = watchParent(() => counted('SIGTERM'))
    const received = (signal: StopSignal): void => {
      ignoreParent()
      counted(signal)
    }
    for (const signal of signals) process.on(signal, received)
    return () => {
      ignoreParent()
      for (const signal of signals) process.off(signal, received)
    }
  },
  exit: (now) => process.exit(now),
})
for (const stream of [process.stdout, process.stderr]) await new Promise((done) => stream.write('', done))
process.exit(code)

/** @throws {CliError} `CLI_INPUT_UNREADABLE` when it was removed. */
function currentFolder(): string {
  try {
    return process.cwd()
  } catch (cause) {
    throw new CliError(
      'CLI_INPUT_UNREADABLE',
      { input: 'the current folder', reason: reasonOf(cause) },
      { cause },
    )
  }
}
