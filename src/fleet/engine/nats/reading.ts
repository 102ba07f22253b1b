/**
 * Reads a stream by the numbers of its messages, for users that may not make consumers.
 *
 * A consumer would be faster, and could send what it reads to any subject: so users with roles may not make
 * one (server-config.ts). A stream of values is followed; the messages themselves show when to look again,
 * and a timer finds what they do not: deletions by the server, and what was lost on the way.
 */
import type { NatsConnection } from '@nats-io/transport-node'
import { CLOCK, type End, PAGE_BYTES_MAX, type Page, type Paging, revisionOf } from '../engine.ts'
import { FleetError, hasCode } from '../../errors.ts'
import { reasonOf } from '../../../base/index.ts'
import { confirmed } from './confirmed.ts'
import type { Stored, Streams } from './stored.ts'

/** A message arrives here before the stream has it, and then the stream is read again so much later. */
const SOON_MS = 20
const POLL_MS = 1000

/** What is followed. */
interface Followed {
  readonly connection: NatsConnection
  readonly streams: Streams
  readonly stream: string
  /** The subject of all its messages. */
  readonly subject: string
  on(stored: Stored): void
  over(why: FleetError): void
}

/**
 * Call `on` with each message of a stream, from a sequence on, until it is ended. Resolves when there is
 * nothing more for now.
 * @throws {FleetError} As `confirmed`.
 */
export async function follow(followed: Followed, from: number): Promise<End> {
  const { connection, streams, stream, subject, on, over } = followed
  let [isOver, isReading, isAsked] = [false, false, false]
  let next = from
  let endTimer: End = () => {}
  const drain = async (): Promise<void> => {
    while (!isOver) {
      const found = await confirmed(`reading ${stream}`, streams.next(stream, subject, next))
      if (found === undefined || isOver) return
      next = found.sequence + 1
      on(found)
    }
  }
  const look = async (): Promise<void> => {
    isReading = true
    const before = next
    isAsked = false
    try {
      await drain()
    } catch (error) {
      if (!hasCode(error, 'FLEET_TIMEOUT', 'FLEET_ENGINE')) return end(error)
    }
    isReading = false
    later(isAsked && next === before ? SOON_MS : isAsked ? 0 : POLL_MS)
  }
  const later = (ms: number): void => {
    endTimer()
    if (!isOver) endTimer = CLOCK.after(ms, () => void look())
  }
  const end = (error?: unknown): void => {
    if (isOver) return
    isOver = true
    endTimer()
    hints.unsubscribe()
    if (error !== undefined)
      over(error instanceof FleetError ? error : new FleetError('FLEET_CLOSED', { reason: reasonOf(error) }))
  }
  const callback = (): void => {
    isAsked = true
    if (!isReading) later(0)
  }
  const hints = connection.subscribe(subject, { callback })
  void connection.closed().then((error) => end(error ?? 'the connection is closed'))
  try {
    await drain()
  } catch (error) {
    end()
    throw error
  }
  later(SOON_MS)
  return () => end()
}

/**
 * A part of the messages of a subject, without marks of deletions, up to a sequence.
 * @throws {FleetError} As `confirmed`.
 */
export async function readPage<Item>(
  { streams, stream, subject }: Pick<Followed, 'streams' | 'stream' | 'subject'>,
  { after = '0', itemsMax }: Paging,
  itemOf: (stored: Stored) => Item | undefined,
  until = Infinity,
): Promise<Page<Item>> {
  const items: Item[] = []
  let [last, bytes] = [revisionOf(after), 0]
  for (;;) {
    const found = await confirmed(`listing ${stream}`, streams.next(stream, subject, last + 1))
    if (found === undefined || found.sequence > until) return { items, next: undefined }
    if (items.length === itemsMax || bytes >= PAGE_BYTES_MAX) return { items, next: String(last) }
    last = found.sequence
    const item = found.isMark ? undefined : itemOf(found)
    if (item === undefined) continue
    items.push(item)
    bytes += found.bytes.length
  }
}

/** The first `count` messages of a subject, one behind the other. */
export async function readAll(
  streams: Streams,
  stream: string,
  subject: string,
  count: number,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for (let from = 0; parts.length < count;) {
    const found = await streams.next(stream, subject, from)
    if (found === undefined) break
    parts.push(found.bytes)
    from = found.sequence + 1
  }
  return Buffer.concat(parts)
}
