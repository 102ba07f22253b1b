/**
 * The end of a server on `node:diagnostics_channel`: when it begins to refuse what is new, and when all is
 * over.
 *
 * A server in a zone publishes both once, in the thread that closes it; its workers publish their own.
 */
import { channel } from 'node:diagnostics_channel'

/** The message of `corespun:http:closing`: a server has begun to close. */
export interface HttpClosingEvent {
  /** Its URL. */
  readonly url: string
  /** How long open requests may take, ms. */
  readonly timeoutMs: number
  /** How long it accepts connections before that, ms. */
  readonly delayMs: number
}

/** The message of `corespun:http:closed`. */
export interface HttpClosedEvent {
  /** Its URL. */
  readonly url: string
  /** How long it took, ms. */
  readonly ms: number
  /** Requests that were cut off, because they took longer. */
  readonly cut: number
}

const begun = channel('corespun:http:closing')
const over = channel('corespun:http:closed')

/** Closes a server, and publishes that. */
export async function closing(
  url: string,
  limits: Pick<HttpClosingEvent, 'timeoutMs' | 'delayMs'>,
  cut: () => number | Promise<number>,
  close: () => Promise<void>,
): Promise<void> {
  const begunMs = performance.now()
  if (begun.hasSubscribers) begun.publish({ url, ...limits } satisfies HttpClosingEvent)
  try {
    await close()
  } finally {
    const ms = performance.now() - begunMs
    if (over.hasSubscribers) over.publish({ url, ms, cut: await cut() } satisfies HttpClosedEvent)
  }
}
