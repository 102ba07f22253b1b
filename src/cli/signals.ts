/**
 * Signals as a person means them: one Ctrl-C counts once, however often it arrives.
 *
 * A terminal sends it to everything that runs in it, and programs such as npm hand theirs on to what they
 * started, so under `npx corespun` it comes twice within milliseconds. A second one means "at once" to our
 * commands, so an echo must not be taken for it.
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
