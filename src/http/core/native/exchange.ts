/**
 * One request of the native core and its response.
 *
 * It reads from a record in shared memory on demand. `retain` copies the record only after the microtasks of
 * the batch: by then most promised responses are complete and need no copy. The response is written to the
 * core's out region, from which the core takes it at the end of the batch.
 */
import type { Certificate, CoreFile, Exchange, FilePart } from '../core.ts'
import type { Hub } from '../../websocket/hub.ts'
import type { Grant, Wire, WireEvents } from '../../websocket/wire.ts'
import { HttpError } from '../../errors.ts'
import { pairsOf } from '../lines.ts'
import { FIELD_WORDS, Flag, Method, NO_TARGET, Pull, REQUEST_WORDS, Reply, Request } from './layout.ts'
import type { Listed, NativeLink } from './link.ts'
import { isName, latin1At } from './text.ts'

/** Names of methods by number. */
const METHODS = Object.keys(Method).map((name) => name.toUpperCase())

/** Bits of an exchange's state. */
const State = {
  started: 1,
  ended: 2,
  aborted: 4,
  listed: 8,
  read: 16,
  retained: 32,
  kept: 64,
  closed: 128,
} as const

/** The state of an exchange that outlives its batch, or streams. */
class Rest {
  /** The record and the bytes of the request: the core's, or a copy. */
  words: Int32Array
  bytes: Uint8Array
  /** Where `bytes` begin in the inbound region. */
  base = 0
  address: string | undefined = undefined
  certificate: Certificate | undefined = undefined
  pulling: { resolve(piece: Uint8Array | undefined): void; reject(error: Error): void } | undefined =
    undefined
  draining: (() => void) | undefined = undefined
  onClose: (() => void) | undefined = undefined

  constructor(words: Int32Array, bytes: Uint8Array) {
    this.words = words
    this.bytes = bytes
  }
}

/**
 * One is allocated per request, so it is small: fields that few need are in {@link Rest}.
 */
export class NativeExchange implements Exchange, Listed {
  readonly slot: number
  readonly stamp: number
  readonly method: string
  readonly target: string
  readonly targetNumber: number
  onAbort: (() => void) | undefined = undefined
  /** The next one with the same slot. */
  next: Listed | undefined = undefined
  private readonly link: NativeLink
  /** Where the record begins in the words. */
  private at: number
  private state = 0
  /** Bytes of pieces since the core was asked whether the client reads slowly. */
  private unasked = 0
  private rest: Rest | undefined = undefined

  /** The request whose record begins at word `at`. */
  constructor(link: NativeLink, at: number) {
    const { words } = link
    this.link = link
    this.at = at
    this.slot = words[at + Request.slot]!
    this.stamp = words[at + Request.stamp]!
    const method = words[at + Request.method]
    this.method = method === 0 ? link.text(at + Request.methodAt) : METHODS[method]
    const number = words[at + Request.target]
    this.targetNumber = number
    if ((words[at + Request.kind] & Flag.newTarget) === 0 && number !== NO_TARGET) {
      this.target = link.targets[number]!
    } else {
      this.target = link.text(at + Request.targetAt)
      if (number !== NO_TARGET) link.targets[number] = this.target
    }
  }

  get aborted(): boolean {
    return (this.state & State.aborted) !== 0
  }

  get isServerClosing(): boolean {
    return this.link.isClosing
  }

  get isClosed(): boolean {
    return (this.state & State.closed) !== 0
  }

  get onClose(): (() => void) | undefined {
    return this.rest?.onClose
  }

  set onClose(listener: (() => void) | undefined) {
    this.grown().onClose = listener
  }

  get remoteAddress(): string {
    return (this.grown().address ??= this.link.remote(this.slot, this.stamp))
  }

  get scheme(): 'http' | 'https' {
    return this.link.scheme
  }

  get clientCertificate(): Certificate | undefined {
    return (this.grown().certificate ??= this.link.clientCertificate(this.slot, this.stamp))
  }

  header(name: string): string | undefined {
    const { words, bytes, base } = this.rest ?? this.link
    let found: string | undefined
    let at = this.at + REQUEST_WORDS
    for (let left = words[this.at + Request.fields]; left > 0; left--, at += FIELD_WORDS) {
      const lengths = words[at + 1]
      if ((lengths & 0xffff) !== name.length || !isName(bytes, words[at] - base, name)) continue
      const value = latin1At(bytes, words[at + 2] - base, lengths >>> 16)
      found = found === undefined ? value : `${found}${name === 'cookie' ? '; ' : ', '}${value}`
    }
    return found
  }

  headerPairs(): string[] {
    const { words, bytes, base } = this.rest ?? this.link
    const pairs: string[] = []
    let at = this.at + REQUEST_WORDS
    for (let left = words[this.at + Request.fields]; left > 0; left--, at += FIELD_WORDS) {
      const lengths = words[at + 1]
      pairs.push(latin1At(bytes, words[at] - base, lengths & 0xffff))
      pairs.push(latin1At(bytes, words[at + 2] - base, lengths >>> 16))
    }
    return pairs
  }

  get hasNoKey(): boolean {
    return ((this.rest ?? this.link).words[this.at + Request.kind] & Flag.connect) !== 0
  }

  get bodyBytes(): number {
    const { words } = this.rest ?? this.link
    const low = words[this.at + Request.lengthLow]
    const high = words[this.at + Request.lengthHigh]
    return low === -1 && high === -1 ? -1 : high * 0x1_0000_0000 + (low >>> 0)
  }

  bodyNow(): Uint8Array | undefined {
    const { words, bytes, base } = this.rest ?? this.link
    const { at } = this
    if ((words[at] & Flag.whole) === 0) return undefined
    const start = words[at + Request.bodyAt] - base
    return bytes.subarray(start, start + words[at + Request.bodyBytes])
  }

  pull(): Promise<Uint8Array | undefined> {
    if ((this.state & State.read) !== 0) return Promise.resolve(undefined)
    // Without a copy of its own, its memory may contain another request by now.
    if ((this.state & (State.ended | State.kept)) === State.ended) return Promise.reject(this.bodyError())
    const body = this.bodyNow()
    if (body !== undefined) {
      this.state |= State.read
      return Promise.resolve(body.byteLength === 0 ? undefined : body.slice())
    }
    if ((this.state & State.ended) !== 0) return Promise.reject(this.bodyError())
    const found = this.link.pull(this.slot, this.stamp)
    if (typeof found === 'object') return this.link.inTurn(found)
    if (found === Pull.end) {
      this.state |= State.read
      return Promise.resolve(undefined)
    }
    if (found !== Pull.wait) return Promise.reject(this.link.bodyError(found))
    this.list()
    return new Promise((resolve, reject) => {
      this.grown().pulling = { resolve, reject }
    })
  }

  retain(): void {
    if ((this.state & (State.retained | State.ended)) !== 0) return
    this.state |= State.retained
    this.list()
    this.link.keepLater(this)
  }

  /**
   * The batch's memory is reused: copy the request, unless its response has been sent. The handler of a
   * disconnected client continues to read it.
   */
  keep(): void {
    if ((this.state & (State.ended | State.aborted)) === State.ended) return
    this.state |= State.kept
    const rest = this.grown()
    const { at } = this
    const { words, bytes } = this.link
    const headEnd = words[at + Request.bodyAt]
    // Where its input begins: fields without a value have that offset, which may be before the method.
    const start = headEnd - words[at + Request.headBytes]
    const end = (words[at] & Flag.whole) === 0 ? headEnd : headEnd + words[at + Request.bodyBytes]
    rest.words = words.slice(at, at + REQUEST_WORDS + words[at + Request.fields] * FIELD_WORDS)
    rest.bytes = bytes.slice(start, end)
    rest.base = start
    this.at = 0
  }

  respond(status: number, type: number, headers: string, body: string | Uint8Array | undefined): void {
    if ((this.state & (State.started | State.ended)) !== 0) return
    this.link.respond(this, status, type, headers, body) // throws before anything is written
    this.state |= State.ended
    if ((this.state & State.listed) !== 0) this.close()
  }

  findFile(folder: string, path: string, index: string): CoreFile | undefined {
    return this.link.findFile(folder, path, index)
  }

  respondFile(status: number, type: number, headers: string, part: FilePart): boolean {
    if ((this.state & (State.started | State.ended)) !== 0) return true
    if (!this.link.respondFile(this, status, type, headers, part)) return false
    this.state |= State.ended
    if ((this.state & State.listed) !== 0) this.close()
    return true
  }

  start(status: number, type: number, headers: string, length: number | undefined): void {
    if ((this.state & (State.started | State.ended)) !== 0) return
    this.link.start(this, status, type, headers, length)
    this.state |= State.started
    this.list()
  }

  write(chunk: Uint8Array): boolean {
    if (!this.isStreaming()) return true
    this.unasked += chunk.byteLength
    if (this.unasked < this.link.askBytes) {
      this.link.writeSoon(this, chunk)
      return true
    }
    this.unasked = 0
    return this.link.write(this, chunk)
  }

  drained(): Promise<void> {
    if (!this.isStreaming() || !this.link.isFull(this)) return Promise.resolve()
    return new Promise((resolve) => {
      this.grown().draining = resolve
    })
  }

  end(trailers?: string): void {
    if (!this.isStreaming()) return
    if (trailers === undefined) return this.finish(Reply.end)
    this.link.endWith(this, trailers) // throws before anything is written
    this.over()
  }

  trailerPairs(): string[] {
    return pairsOf(this.link.trailers(this.slot, this.stamp))
  }

  hint(headers: string): boolean {
    return (this.state & (State.started | State.ended)) === 0 && this.link.hint(this, headers)
  }

  abort(): void {
    if ((this.state & State.ended) === 0) this.finish(Reply.abort)
  }

  get hub(): Hub {
    return this.link.hub
  }

  upgrade(grant: Grant, events: WireEvents): Wire {
    if ((this.state & (State.started | State.ended)) !== 0)
      throw new HttpError('HTTP_UPGRADE', { reason: 'it has its response already' })
    const wire = this.link.sockets.begin(this, grant, events)
    this.state |= State.ended
    if ((this.state & State.listed) !== 0) this.close()
    return wire
  }

  /** `onExchange` has returned: without a response so far, keep the request. */
  settle(): void {
    if ((this.state & State.ended) === 0) this.retain()
  }

  /** The body can be pulled again. */
  onBody(): void {
    const pulling = this.rest?.pulling
    if (pulling === undefined) return
    this.grown().pulling = undefined
    this.pull().then(pulling.resolve, pulling.reject)
  }

  /** The written bytes have been sent. */
  onDrained(): void {
    const draining = this.rest?.draining
    if (draining === undefined) return
    this.grown().draining = undefined
    draining()
  }

  /** The client has disconnected, or sends nothing more. */
  onDisconnect(): void {
    if (this.aborted) return
    this.state |= State.aborted
    this.onAbort?.()
  }

  /** The connection is closed: the rest of the response is dropped. */
  onClosed(): void {
    const wasAborted = this.aborted
    this.state |= State.ended | State.aborted | State.closed
    this.close()
    this.onDrained()
    this.onClose?.()
    if (!wasAborted) this.onAbort?.()
  }

  private isStreaming(): boolean {
    return (this.state & (State.started | State.ended)) === State.started
  }

  private finish(kind: number): void {
    this.link.record(kind, this, undefined)
    this.over()
  }

  /** Its response is complete, or given up. */
  private over(): void {
    this.state |= State.ended
    if ((this.state & State.listed) !== 0) this.close()
  }

  private grown(): Rest {
    return (this.rest ??= new Rest(this.link.words, this.link.bytes))
  }

  /** Why its body cannot be read. */
  private bodyError(): HttpError {
    if (this.aborted) return new HttpError('HTTP_CLIENT_DISCONNECTED', { during: 'its body' })
    return new HttpError('HTTP_REQUEST_ENDED', { what: 'the body' })
  }

  private list(): void {
    if ((this.state & State.listed) !== 0) return
    this.state |= State.listed
    this.link.list(this)
  }

  /** It has ended: it receives no more events, and a pull in progress rejects. */
  private close(): void {
    this.state &= ~State.listed
    this.link.unlist(this)
    const pulling = this.rest?.pulling
    if (pulling === undefined) return
    this.grown().pulling = undefined
    pulling.reject(this.bodyError())
  }
}
