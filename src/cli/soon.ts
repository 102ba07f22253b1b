/**
 * The control socket of a command that runs for a while.
 *
 * It opens after a second, so that short commands do not pay for its thread: 30 to 45 ms of CPU, 10 to
 * 19 MB. A command runs without it where it cannot be opened, and prints why.
 */
import { isDenied, messageOf, oneLine } from '../base/index.ts'
import type { ControlAction, Observation, ObservedFleet } from '../observe/index.ts'

const AFTER_MS = 1000

interface Observed {
  /** Whose file name, without its ending, is the name of the process. */
  readonly module: string
  readonly observe: boolean
  readonly allowControl?: boolean
  readonly actions?: Readonly<Record<string, ControlAction>>
  readonly fleets?: readonly ObservedFleet[]
}

/** Open the socket soon. The returned function closes it, or leaves it closed. */
export function observeSoon(
  { module, observe, allowControl = false, actions = {}, fleets }: Observed,
  { stderr }: { readonly stderr: { write(text: string): unknown } },
): () => void {
  if (!observe || process.env['CORESPUN_OBSERVE'] === 'off') return () => {}
  let opened: Promise<Observation | undefined> | undefined
  const open = async (): Promise<Observation | undefined> => {
    try {
      const { observe } = await import('../observe/index.ts')
      const { nameOf } = await import('../observe/internal.ts')
      return await observe({
        name: nameOf(module, 'corespun'),
        allowControl,
        actions,
        ...(fleets && { fleets }),
      })
    } catch (error) {
      // As every other process under `--permission`, unless that allows it.
      if (!isDenied(error))
        stderr.write(`corespun: no control socket for corespun top: ${oneLine(messageOf(error))}\n`)
      return undefined
    }
  }
  const timer = setTimeout(() => void (opened = open()), AFTER_MS).unref()
  return () => {
    clearTimeout(timer)
    void opened?.then((observation) => observation?.close())
  }
}
