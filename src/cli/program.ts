/**
 * The process of `corespun`: hands itself to the command and ends with the command's exit code.
 *
 * It ends by `process.exit`, after both output streams took everything: a user's module may have left a timer
 * or a socket open, and a finished job should not wait for it.
 */
import { subscribe } from 'node:diagnostics_channel'
import type { WorkerEvent } from '../zone/index.ts'
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
  const hasEnded = trackWorkers()
  const own = zone.create('corespun run', settings)
  // What an item left behind and then threw: its record is written, and the others go on.
  own.onError((error) => console.error('corespun: an error behind an item was not caught:', error))
  return {
    execute: (module, name, args, options) => own.execute(module, name, args, options),
    module: (url) => own.module(url),
    close: () => Promise.race([own.close(), hasEnded()]),
  }
}

/**
 * Returns a function whose promise resolves when each worker that was ready has ended. One that is still
 * starting has run nothing, and the end of the process need not wait for it: few items are done before that.
 */
function trackWorkers(): () => Promise<void> {
  const ready = new Set<string>()
  let check = (): void => {}
  subscribe('corespun:worker:ready', (event) => void ready.add((event as WorkerEvent).worker))
  subscribe('corespun:worker:ended', (event) => {
    ready.delete((event as WorkerEvent).worker)
    check()
  })
  return async () => {
    // Results may be faster than the message that their worker is ready.
    for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate)
    await new Promise<void>((resolve) => {
      check = () => void (ready.size === 0 && resolve())
      check()
    })
  }
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
