/**
 * Signals as a person means them: one Ctrl-C counts once, however often it arrives.
 *
 * A terminal sends it to everything that runs in it, and programs such as npm hand theirs on to what they
 * started, so under `npx corespun` it comes twice within milliseconds. A second one means "at once" to our
 * commands, so an echo must not be taken for it. What ends npm ends its shell at most, so what npm has
 * started takes the end of npm for the signal.
 */
import { readFileSync } from 'node:fs'
import { ExitCode } from './errors.ts'
import type { CommandContext, StopSignal } from './run/run.ts'

/** Until then a signal that has just come is an echo: longer than handing on takes, shorter than patience. */
const ECHO_MS = 300

/**
 * `listener` without the echoes: the same signal again within 300 ms of one that counted is dropped.
 * @param nowMs The clock; tests pass their own.
 */
export function withoutEchoes(
  listener: (signal: StopSignal) => void,
  nowMs: () => number = () => performance.now(),
): (signal: StopSignal) => void {
  const countedMs = new Map<StopSignal, number>()
  return (signal) => {
    const now = nowMs()
    const before = countedMs.get(signal)
    if (before !== undefined && now - before < ECHO_MS) return
    countedMs.set(signal, now)
    listener(signal)
  }
}

/** How often what npm has started looks for npm. */
const PARENT_MS = 200

/**
 * Calls `orphaned` once when npm has started this process and has ended; a process that another program has
 * started may be meant to outlive it. One that has a channel to its parent watches that.
 */
export function watchParent(orphaned: () => void): () => void {
  const { npm_command: command, npm_lifecycle_event: script } = process.env
  if ((command ?? script) === undefined || process.send !== undefined) return () => {}
  const parent = process.ppid
  const npm = npmAbove(parent)
  const timer = setInterval(() => {
    if (process.ppid === parent && isAlive(npm)) return
    clearInterval(timer)
    orphaned()
  }, PARENT_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** How far above npm is: a shell and what its script starts are between. */
const ABOVE_MAX = 4

/** The process of npm, pnpm or yarn above `parent`, which is a shell that outlives it; else `parent`. */
function npmAbove(parent: number): number {
  const { npm_execpath: path = 'npm' } = process.env
  try {
    for (let pid = parent, above = 0; above < ABOVE_MAX; above += 1) {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      if (words.startsWith('npm ') || words.split('\0').includes(path)) return pid
      // The name, in parentheses, may contain anything; state and parent follow it.
      pid = Number(
        readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) \S+ /s, '')
          .split(' ')[0],
      )
    }
  } catch {
    // Linux has /proc; elsewhere the parent alone is watched.
  }
  return parent
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** The first signal; a second one ends the process. */
export function firstSignal(context: CommandContext): {
  readonly first: Promise<StopSignal>
  /** As a first signal. */
  readonly now: () => void
  readonly ignore: () => void
} {
  let resolveFirst: ((signal: StopSignal) => void) | undefined
  const first = new Promise<StopSignal>((resolve) => (resolveFirst = resolve))
  const ignore = context.onSignal((signal) => {
    if (resolveFirst === undefined)
      return context.exit(signal === 'SIGINT' ? ExitCode.interrupted : ExitCode.terminated)
    resolveFirst(signal)
    resolveFirst = undefined
  })
  return { first, now: () => resolveFirst?.('SIGTERM'), ignore }
}
