/**
 * Waits for servers that are not there yet, as when a host and its servers start together.
 *
 * Only that nobody is there, and that a server does not confirm, passes by waiting. What a server refuses, or
 * TLS, is thrown at once.
 */
import { CorespunError, oneLine } from '../../base/index.ts'

/** The first pause, and the longest: each is twice as long as the one before. */
const PAUSE_MS = { min: 250, max: 10_000 }

/**
 * What `open` resolves with; `undefined` when `stop` comes first.
 * @param waits Called once, with why it waits.
 * @throws What `open` rejects with, unless it may be otherwise later.
 */
export async function untilThere<Value>(
  open: () => Promise<Value>,
  stop: Promise<unknown>,
  waits: (why: string) => void,
): Promise<Value | undefined> {
  const stopped = stop.then(() => undefined)
  for (let pauseMs = PAUSE_MS.min; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS.max)) {
    try {
      return await Promise.race([stopped, open()])
    } catch (error) {
      if (!isAway(error)) throw error
      if (pauseMs === PAUSE_MS.min) waits(oneLine(error.message))
    }
    if (!(await isOver(pauseMs, stop))) return undefined
  }
}

function isAway(error: unknown): error is CorespunError<object> {
  if (!(error instanceof CorespunError)) return false
  const { code, facts } = error as { readonly code: unknown; readonly facts: { readonly isAway?: boolean } }
  return code === 'FLEET_TIMEOUT' || (code === 'FLEET_CONNECT' && facts.isAway === true)
}

/** False: `stop` came before. */
async function isOver(pauseMs: number, stop: Promise<unknown>): Promise<boolean> {
  let timer
  const over = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(true), pauseMs)))
  const isFirst = await Promise.race([stop.then(() => false), over])
  clearTimeout(timer)
  return isFirst
}
