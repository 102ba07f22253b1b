/**
 * Signals as a person means them: one Ctrl-C counts once, however often it arrives.
 *
 * A terminal sends it to everything that runs in it, and programs such as npm hand theirs on to what they
 * started, so under `npx corespun` it comes twice within milliseconds. A second one means "at once" to our
 * commands, so an echo must not be taken for it. SIGTERM to npm ends npm and its shell alone, so what npm has
 * started takes the end of its parent for the signal.
 */
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

/** How often what npm has started looks for its parent. */
const PARENT_MS = 200

/**
 * Calls `orphaned` once when the parent of this process has ended, if npm has started it; a process that
 * another program has started may be meant to outlive it. One that has a channel to its parent watches that.
 */
export function watchParent(orphaned: () => void): () => void {
  const { npm_command: command, npm_lifecycle_event: script } = process.env
  if ((command ?? script) === undefined || process.send !== undefined) return () => {}
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    orphaned()
  }, PARENT_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** The first signal; a second one ends the process. */
export function firstSignal(context: CommandContext): {
  readonly first: Promise<StopSignal>
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
  return { first, ignore }
}
