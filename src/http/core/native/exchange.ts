/**
 * One request of the native core and its response.
 *
 * It reads from a record in shared memory on demand. `retain` copies the record only after the microtasks of
 * the batch: by then most promised responses are complete and need no copy. The response is written to the
 * core's out region, from which the core takes it at the end of the batch. Over 400 lines: reading and
 * responding share the state of one small object.
 */
import type { Moment, RequestCount } from '../../../base/index.ts'
import type { Certificate, CoreFile, Exchange, FilePart } from '../../message/core-interface.ts'
import type { Hub } from '../../message/hub.ts'
import type { Grant, Wire, WireEvents } from '../../message/wire.ts'
import { HttpError } from '../../errors.ts'
import { pairsOf } from '../../message/lines.ts'
import { FIELD_WORDS, Flag, Method, NO_TARGET, Pull, Reply, Request } from '../../message/layout.ts'
import type { Listed, NativeLink } from './link.ts'
import { Memory, wordsOf } from './memory.ts'
import type { Peer } from './peers.ts'
import { isName, latin1At } from '../../message/text.ts'

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
  pulling: { resolve(piece: Uint8Array | undefined): void; reject(error: Error): void } | undefined =
    undefined
  draining: (() => void) | undefined = undefined
  onClose: (() => void) | undefined = undefined
  /** Bytes of pieces since the core was asked whether the client reads slowly. */
  unasked = 0
  /** Of a response that is written in pieces: its status, and the bytes of its body so far. */
  status = 0
  bytes = 0
  /** The lines of the trailers, once the body has ended. */
  trailers = ''
}

/**
 * One is allocated per request, so it is small: fields that few need are in {@link Rest}.
 */
export class NativeExchange implements Exchange, Listed {
  declare readonly slot: number
  declare readonly stamp: number
  declare readonly method: string
  declare readonly target: string
  declare readonly targetNumber: number
  onAbort: (() => void) | undefined = undefined
  count: RequestCount | undefined = undefined
  begun: Moment | undefined = undefined
  /** The next one with the same slot. */
  next: Listed | undefined = undefined
  declare private readonly link: NativeLink
  declare private readonly peer: Peer
  /** Where its record and its head are, now and as long as somebody has the request. */
  declare private memory: Memory
  /** Where the record begins in the words. */
  declare private at: number
  private state = 0
  private rest: Rest | undefined = undefined

  /** The request whose record begins at word `at`. */
  constructor(link: NativeLink, at: number) {
    const { words } = link
    this.slot = words[at + Request.slot]!
    this.stamp = words[at + Request.stamp]!
    this.link = link
    this.peer = link.peers[this.slot]!
    this.memory = link.memory
    this.at = at
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

  get isOver(): boolean {
    return (this.state & (State.ended | State.closed)) === State.ended
  }

  get onClose(): (() => void) | undefined {
    return this.rest?.onClose
  }

  set onClose(listener: (() => void) | undefined) {
    this.grown().onClose = listener
  }

  get remoteAddress(): string {
    return this.peer.address
  }

  get remotePort(): number {
    return this.peer.port
  }

  get scheme(): 'http' | 'https' {
    return this.link.scheme
  }

  get clientCertificate(): Certificate | undefined {
    return this.peer.certificate
  }

  header(name: string): string | undefined {
    const { words, bytes, base, shift } = this.opened()
    let found: string | undefined
    const record = this.at - shift
    let at = record + Request.words
    for (let left = words[record + Request.fields]; left > 0; left--, at += FIELD_WORDS) {
      const lengths = words[at + 1]
      if ((lengths & 0xffff) !== name.length || !isName(bytes, words[at] - base, name)) continue
      const value = latin1At(bytes, words[at + 2] - base, lengths >>> 16)
      found = found === undefined ? value : `${found}${name === 'cookie' ? '; ' : ', '}${value}`
    }
    return found
  }

  headerPairs(): string[] {
    const { words, bytes, base, shift } = this.opened()
    const pairs: string[] = []
    const record = this.at - shift
    let at = record + Request.words
    for (let left = words[record + Request.fields]; left > 0; left--, at += FIELD_WORDS) {
      const lengths = words[at + 1]
      pairs.push(latin1At(bytes, words[at] - base, lengths & 0xffff))
      pairs.push(latin1At(bytes, words[at + 2] - base, lengths >>> 16))
    }
    return pairs
  }

  get hasNoKey(): boolean {
    return (this.word(Request.kind) & Flag.connect) !== 0
  }

  get bodyBytes(): number {
    const low = this.word(Request.lengthLow)
    const high = this.word(Request.lengthHigh)
    return low === -1 && high === -1 ? -1 : high * 0x1_0000_0000 + (low >>> 0)
  }

  bodyNow(): Uint8Array | undefined {
    if ((this.word(Request.kind) & Flag.whole) === 0 || this.isBodyLost()) return undefined
    const isKept = (this.state & State.kept) !== 0
    const { bytes } = isKept ? this.memory : this.link // only heads are remembered of all requests
    const start = this.word(Request.bodyAt) - (isKept ? this.memory.base : 0)
    if (this.bodyBytes < 0) this.rememberTrailers()
    return bytes.subarray(start, start + this.word(Request.bodyBytes))
  }

  /** Without a copy of its own, the memory of its body may contain another request by now. */
  private isBodyLost(): boolean {
    return (this.state & (State.ended | State.kept)) === State.ended
  }

  pull(): Promise<Uint8Array | undefined> {
    if ((this.state & State.read) !== 0) return Promise.resolve(undefined)
    const body = this.bodyNow()
    if (body !== undefined) {
      this.state |= State.read
      return Promise.resolve(body.byteLength === 0 ? undefined : new Uint8Array(body))
    }
    if ((this.state & State.ended) !== 0) return Promise.reject(this.bodyError())
    const found = this.link.pull(this.slot, this.stamp)
    if (typeof found === 'object') return this.link.inTurn(found)
    if (found === Pull.end) {
      this.state |= State.read
      if (this.bodyBytes < 0) this.rememberTrailers()
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
    const { at } = this
    const { words, bytes } = this.link
    const headEnd = words[at + Request.bodyAt]
    // Where its input begins: fields without a value have that offset, which may be before the method.
    const start = headEnd - words[at + Request.headBytes]
    const end = (words[at] & Flag.whole) === 0 ? headEnd : headEnd + words[at + Request.bodyBytes]
    this.memory = new Memory(words.slice(at, at + wordsOf(words, at)), at, bytes.slice(start, end), start)
  }

  respond(status: number, type: number, headers: string, body: string | Uint8Array | undefined): void {
    if ((this.state & (State.started | State.ended)) !== 0) return
    const bytes = this.link.respond(this, status, type, headers, body) // throws before anything is written
    this.state |= State.ended
    if (this.count !== undefined) this.counted(status, bytes, false)
    if ((this.state & State.listed) !== 0) this.close()
  }

  findFile(folder: string, path: string, index: string): CoreFile | undefined {
    return this.link.findFile(folder, path, index)
  }

  respondFile(status: number, type: number, headers: string, part: FilePart): boolean {
    if ((this.state & (State.started | State.ended)) !== 0) return true
    if (!this.link.respondFile(this, status, type, headers, part)) return false
    this.state |= State.ended
    if (this.count !== undefined) this.counted(status, part.bytes, false)
    if ((this.state & State.listed) !== 0) this.close()
    return true
  }

  start(status: number, type: number, headers: string, length: number | undefined): void {
    if ((this.state & (State.started | State.ended)) !== 0) return
    this.link.start(this, status, type, headers, length)
    if (this.count !== undefined) this.grown().status = status
    this.state |= State.started
    this.list()
  }

  write(chunk: Uint8Array): boolean {
    if (!this.isStreaming()) return true
    const rest = this.grown()
    rest.unasked += chunk.byteLength
    rest.bytes += chunk.byteLength
    if (rest.unasked < this.link.askBytes) {
      this.link.writeSoon(this, chunk)
      return true
    }
    rest.unasked = 0
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
    this.countEnd(false)
  }

  trailerPairs(): string[] {
    return pairsOf(this.rest?.trailers ?? '')
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
    if ((this.state & State.kept) === 0) this.keep() // a socket may have its request for days
    this.state |= State.ended
    if (this.count !== undefined) this.counted(101, 0, false)
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
    this.countEnd(true)
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
    this.countEnd(kind === Reply.abort)
  }

  /** Its response is complete, or given up. */
  private over(): void {
    this.state |= State.ended
    if ((this.state & State.listed) !== 0) this.close()
  }

  /** Its response has ended, with this status and a body of so many bytes. */
  private counted(status: number, bytes: number, isAborted: boolean): void {
    const { count } = this
    this.count = undefined
    count!.ended(status, bytes, this, isAborted)
  }

  private countEnd(isAborted: boolean): void {
    if (this.count !== undefined) this.counted(this.rest?.status ?? 0, this.rest?.bytes ?? 0, isAborted)
  }

  private grown(): Rest {
    return (this.rest ??= new Rest())
  }

  private opened(): Memory {
    return (this.memory = this.memory.of(this.at))
  }

  /** A word of its record. */
  private word(index: number): number {
    const { words, shift } = this.opened()
    return words[this.at - shift + index]
  }

  /** A chunked body has been read to its end. The core has them until the response has ended. */
  private rememberTrailers(): void {
    this.grown().trailers = this.link.trailers(this.slot, this.stamp)
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
