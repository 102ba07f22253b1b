/**
 * Repeats what a server has not confirmed, until it has.
 *
 * Only for what may be done twice: a write by revision, a read, an addition of an item with an id.
 */
import type { Clock, Connected, Messages } from './engine/engine.ts'
import { mayPass } from './errors.ts'

const RETRY_MS = 250
/** How long who leaves waits for servers. */
const LEAVE_MS = 1000

/**
 * @param goesOn Whether it is repeated, when it was repeated for so long. Default: for ever. What was refused
 *   is repeated too, as by a disk that is full.
 * @throws {FleetError} At once what repeating does not change; `FLEET_CLOSED` when the connection has ended.
 */
export async function certainly<Value>(
  { clock }: Pick<Connected, 'clock'>,
  work: () => Promise<Value>,
  goesOn: (spentMs: number) => boolean = () => true,
): Promise<Value> {
  const begunMs = clock.nowMs()
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!mayPass(error) || !goesOn(clock.nowMs() - begunMs)) throw error
    }
    await pause(clock, RETRY_MS)
  }
}

/**
 * What is opened by the first who needs it, and again after a failure: a server that is not ready may be so
 * later.
 */
export function opened<Value>(open: () => Promise<Value>): () => Promise<Value> {
  let opening: Promise<Value> | undefined
  return () => {
    if (opening === undefined) {
      opening = open()
      opening.catch(() => (opening = undefined))
    }
    return opening
  }
}

/**
 * What was sent is with the servers, and what they had delivered was received: for whoever leaves, and waits
 * only for a moment for servers that are away.
 */
export async function flushed(messages: Messages): Promise<void> {
  let end = (): void => {}
  const late = new Promise<void>((resolve) => (end = messages.clock.after(LEAVE_MS, resolve)))
  await Promise.race([messages.flush().catch(() => {}), late])
  end()
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve))
}
