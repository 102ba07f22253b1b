/**
 * A call with streams among its arguments, in the caller's thread.
 *
 * The transport has refused the arguments; here the streams are taken out of them, and each gets a link. A
 * source is not touched before the zone has accepted the call. When the task has ended, sources that have not
 * are closed, and a call that succeeds waits for that, unless a source is producing an item.
 */
import { Status } from '../../../native/index.ts'
import { ValueCall, failureOf } from '../../call/call.ts'
import { messagesMaxOf } from '../end.ts'
import { channelLinks } from '../link.ts'
import type { Ahead } from '../../call/call-options.ts'
import { sendDeeper } from '../waits.ts'
import type { SourceFailure } from './called.ts'
import { Outgoing } from './ends.ts'
import { streamsIn } from './found.ts'

export { streamsIn }

const TASK = new URL('./called.js', import.meta.url)

export interface StreamingZone {
  readonly ahead: Ahead
  readonly isIsolated: boolean
  /** Submits a call of an export. @throws {ZoneError} the refusal. */
  submit(module: URL, name: string, args: unknown[], call: ValueCall): void
}

/** Sends the call of the function `fn`; rejects it with `refusal` when `args` contain no stream. */
export function sendWithStreams(
  zone: StreamingZone,
  fn: number,
  args: readonly unknown[],
  call: ValueCall,
  refusal: unknown,
): void {
  const found = streamsIn(args)
  if (found === undefined) return call.reject(refusal)
  const { ahead, isIsolated } = zone
  const pairs = found.sources.map(() => channelLinks(messagesMaxOf(ahead), isIsolated))
  const outgoing = found.sources.map((source, index) => new Outgoing(pairs[index][0], ahead, source))
  const theres = pairs.map(([, there]) => there)
  try {
    const streamed = new ArgumentsCall(call, outgoing)
    const sent = [fn, found.value, found.positions, theres, ahead]
    sendDeeper(found.sources, 0, () => zone.submit(TASK, 'callWithStreams', sent, streamed))
  } catch (error) {
    for (const each of outgoing) each.close()
    return call.reject(error)
  }
  for (const each of outgoing) void each.begin()
}

/** The call; its outcome is that of `inner`. */
class ArgumentsCall extends ValueCall {
  #inner: ValueCall
  readonly #sources: readonly Outgoing[]
  #isStreamed = false

  constructor(inner: ValueCall, sources: readonly Outgoing[]) {
    super(inner.zone, nothing, nothing)
    this.#inner = inner
    this.#sources = sources
  }

  override ended(status: number, bytes: Uint8Array, start: number, end: number): void {
    if (status !== Status.done) return this.fail(failureOf(this.zone, status, bytes, start, end))
    const closing = this.#close()
    if (closing === undefined) return this.#inner.ended(status, bytes, start, end)
    const inner = this.#inner
    if (this.#isStreamed)
      return void closing.then(
        () => inner.ended(status, bytes, 0, 0),
        (why: unknown) => inner.closed(why),
      )
    try {
      // Read at once: the memory that it refers to is let go.
      const value = inner.receive(bytes, start, end)
      inner.resolve(closing.then(() => value))
    } catch (error) {
      inner.fail(error)
    }
  }

  override fail(why: unknown): void {
    void this.#close()?.catch(nothing)
    const { corespunSource: index } = (why ?? {}) as Partial<SourceFailure>
    const source = index === undefined ? undefined : this.#sources[index]?.failure
    if (source === undefined) this.#inner.fail(why)
    else this.#inner.reject(source.why)
  }

  override late(why: unknown): void {
    void this.#close()?.catch(nothing)
    this.#inner.late(why)
  }

  override refuse(why: unknown): void {
    void this.#close()?.catch(nothing)
    this.#inner.refuse(why)
  }

  override untilRead(read: () => void): boolean {
    return this.#inner.untilRead(read)
  }

  override streamed(make: (call: ValueCall) => ValueCall): ValueCall {
    this.#isStreamed = true
    this.#inner = this.#inner.streamed(make)
    return this
  }

  /** Closes the sources; `undefined` when they have ended. @throws The error of a clean-up. */
  #close(): Promise<void> | undefined {
    const open = this.#sources.filter(({ isOver }) => !isOver)
    for (const each of open) each.stop()
    // One that is producing an item is not waited for.
    const waits = open.filter(({ isReading }) => !isReading).map((each) => each.begin())
    for (const each of this.#sources) each.close()
    const hasFailed = this.#sources.some(({ cleanUpFailure }) => cleanUpFailure !== undefined)
    return waits.length > 0 || hasFailed ? this.#closed(waits) : undefined
  }

  async #closed(waits: readonly Promise<void>[]): Promise<void> {
    await Promise.all(waits)
    const failed = this.#sources.find(({ cleanUpFailure }) => cleanUpFailure !== undefined)
    if (failed?.cleanUpFailure !== undefined) throw failed.cleanUpFailure.why
  }
}

function nothing(): void {}
