/**
 * One version of the app of `corespun serve --watch`: what `corespun serve` does, in a process of its own.
 *
 * It reports to the process that watches over the channel between them, and stops as for SIGTERM when that
 * channel is closed: because the next version serves, or because the watching process has ended.
 */
import { HELP, usage } from '../arguments.ts'
import { ExitCode } from '../errors.ts'
import type { CommandContext } from '../run/run.ts'
import { serve } from './serve.ts'
import { readServeArguments } from './serve-arguments.ts'

/** The word on the command line; `first` or `next`, a port and the words of `corespun serve` follow. */
export const VERSION_COMMAND = 'serve-version'

/** What a version reports: it serves, or it cannot listen because the version before does. */
export type VersionMessage =
  | { readonly kind: 'serving'; readonly port: number }
  | { readonly kind: 'port-taken' }

/**
 * Serve until a signal comes or the watching process closes the channel.
 * @returns As `serve`.
 * @throws {CliError} As `serve`.
 */
export async function serveVersion(words: readonly string[], context: CommandContext): Promise<number> {
  const [order, port, ...rest] = words
  const isNext = order === 'next'
  const given = readServeArguments(rest, process.env.CORESPUN_HTTP_CORE, context.folder)
  if (given === HELP || process.send === undefined) throw usage('only serve --watch starts serve-version')
  const options = isNext && port !== '0' ? { ...given, port: Number(port) } : given
  const report = (message: VersionMessage): void => void process.send?.(message)
  try {
    return await serve(options, stoppedByDisconnect(context), {
      order: isNext ? 'next' : 'first',
      onServing: ({ port }) => report({ kind: 'serving', port }),
    })
  } catch (error) {
    if (!isNext || (error as { code?: unknown }).code !== 'HTTP_PORT_TAKEN') throw error
    report({ kind: 'port-taken' })
    return ExitCode.ok
  }
}

function stoppedByDisconnect(context: CommandContext): CommandContext {
  return {
    ...context,
    onSignal(listener) {
      const ignore = context.onSignal(listener)
      const onDisconnect = (): void => listener('SIGTERM')
      process.once('disconnect', onDisconnect)
      return () => {
        process.off('disconnect', onDisconnect)
        ignore()
      }
    },
  }
}
