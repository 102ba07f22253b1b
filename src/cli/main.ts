#!/usr/bin/env node
/**
 * The `corespun` program: hands the process to the command and ends it with the command's exit code.
 *
 * It ends by `process.exit`, after both output streams took everything: a user's module may have left a timer
 * or a socket open, and a finished job should not wait for it.
 */
import { command } from './command.ts'
import type { OpenZone } from './run/mapper.ts'
import type { StopSignal } from './run/run.ts'
import { withoutEchoes } from './signals.ts'

const signals: readonly StopSignal[] = ['SIGINT', 'SIGTERM']

/**
 * Loaded on demand: help and wrong arguments need no workers, and a missing native core is reported in one
 * line.
 */
const openZone: OpenZone = async (settings) => {
  const [{ zone }, { installTypeScript }] = await Promise.all([
    import('../zone/index.ts'),
    import('../zone/internal.ts'),
  ])
  // Before the workers start: those of Nodes that strip no types take the hooks over from this thread.
  installTypeScript()
  const own = zone.create('corespun run', settings)
  // What an item left behind and then threw: its record is written, and the others go on.
  own.onError((error) => console.error('corespun: an error behind an item was not caught:', error))
  return own
}

// Every worker's output is piped into these two: from the eleventh on Node would warn of a leak.
process.stdout.setMaxListeners(0)
process.stderr.setMaxListeners(0)

// Writing a message to a closed terminal must not crash the process.
process.stderr.on('error', () => {})
process.stdout.on('error', () => {})

const code = await command(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  folder: process.cwd(),
  openZone,
  onSignal(listener) {
    const counted = withoutEchoes(listener)
    for (const signal of signals) process.on(signal, counted)
    return () => {
      for (const signal of signals) process.off(signal, counted)
    }
  },
  exit: (now) => process.exit(now),
})
for (const stream of [process.stdout, process.stderr]) await new Promise((done) => stream.write('', done))
process.exit(code)
