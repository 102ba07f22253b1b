/**
 * One request of the native core and its answer.
 *
 * Made from a record in shared memory and reading from it when asked; `retain` copies what it was made from.
 * What it answers goes into the core's out region; the core takes it at the end of the batch.
 */
import { type Exchange } from './core.ts'
import { HttpError } from './errors.ts'
import {
  FIELD_WORDS,
  Flag,
  METHODS,
  NO_TARGET,
  Pull,
  REQUEST_WORDS,
  Reply,
  Request,
} from './native-layout.ts'
import type { Listed, NativeLink } from './native-link.ts'
import { isName, latin1At } from './native-text.ts'

/** How far the answer is. */
const Phase = { waiting: 0, streaming: 1, ended: 2 } as const

/** See the file's text. */
export class NativeExchange implements Exchange, Listed {
  readonly slot: number
  readonly stamp: number
  readonly method: string
  readonly target: string
  onAbort: (() => void) | undefined = undefined
  aborted = false
  /** The next one that is listed under the same slot. */
  next: Listed | undefined = undefined
  private readonly link: NativeLink
  private words: Int32Array
  /** Where the record begins in `words`. */
  private at: number
  private bytes: Uint8Array
  /** What to take from an offset in the record to have one in `bytes`. */
  private base = 0
  private phase: number = Phase.waiting
  private isListed = false
  private isRetained = false
  private isRead = false
  private address: string | undefined = undefined
  private pulling: { resolve(piece: Uint8Array | undefined): void; reject(error: Error): void } | undefined =
    undefined
  private draining: (() => void) | undefined = undefined

  /** The request whose record begins at word `at`. */
  constructor(link: NativeLink, at: number) {
    const { words, inbound } = link
    this.link = link
    this.words = words
    this.bytes = inbound
    this.at = at
    this.slot = words[at + Request.slot]!
    this.stamp = words[at + Request.stamp]!
    const method = words[at + Request.method]!
    this.method =
      method === 0
        ? latin1At(inbound, words[at + Request.methodAt]!, words[at + Request.methodBytes]!)
        : METHODS[method]!
    const number = words[at + Request.target]!
    if ((words[at + Request.kind]! & Flag.newTarget) !== 0 || number === NO_TARGET) {
      const target = latin1At(inbound, words[at + Request.targetAt]!, words[at + Request.targetBytes]!)
      this.target = target
      if (number !== NO_TARGET) link.targets[number] = target
    } else {
      this.target = link.targets[number]!
    }
  }

  get remoteAddress(): string {
    return (this.address ??= this.link.remote(this.slot, this.stamp))
  }

  header(name: string): string | undefined {
    const { words, bytes, base } = this
    let found: string | undefined
    let at = this.at + REQUEST_WORDS
    for (let left = words[this.at + Request.fields]!; left > 0; left--, at += FIELD_WORDS) {
      const lengths = words[at + 1]!
      if ((lengths & 0xffff) !== name.length || !isName(bytes, words[at]! - base, name)) continue
      const value = latin1At(bytes, words[at + 2]! - base, lengths >>> 16)
      found = found === undefined ? value : `${found}${name === 'cookie' ? '; ' : ', '}${value}`
    }
    return found
  }

  headerPairs(): string[] {
    const { words, bytes, base } = this
    const pairs: string[] = []
    let at = this.at + REQUEST_WORDS
    for (let left = words[this.at + Request.fields]!; left > 0; left--, at += FIELD_WORDS) {
      const lengths = words[at + 1]!
      pairs.push(latin1At(bytes, words[at]! - base, lengths & 0xffff))
      pairs.push(latin1At(bytes, words[at + 2]! - base, lengths >>> 16))
    }
    return pairs
  }

  get bodyBytes(): number {
    const low = this.words[this.at + Request.lengthLow]!
    const high = this.words[this.at + Request.lengthHigh]!
    return low === -1 && high === -1 ? -1 : high * 0x1_0000_0000 + (low >>> 0)
  }

  bodyNow(): Uint8Array | undefined {
    const { words, at } = this
    if ((words[at]! & Flag.whole) === 0) return undefined
    const start = words[at + Request.bodyAt]! - this.base
    return this.bytes.subarray(start, start + words[at + Request.bodyBytes]!)
  }

  pull(): Promise<Uint8Array | undefined> {
    if ((this.words[this.at]! & Flag.whole) !== 0) {
      const body = this.isRead || this.words[this.at + Request.bodyBytes] === 0 ? undefined : this.bodyNow()
      this.isRead = true
      return Promise.resolve(body?.slice())
    }
    if (this.isRead) return Promise.resolve(undefined)
    if (this.aborted || this.phase === Phase.ended) return Promise.reject(this.gone('its body'))
    const found = this.link.pull(this.slot, this.stamp)
    if (typeof found === 'object') return Promise.resolve(found)
    if (found === Pull.end) {
      this.isRead = true
      return Promise.resolve(undefined)
    }
    if (found !== Pull.wait) return Promise.reject(this.link.bodyError(found))
    this.list()
    return new Promise((resolve, reject) => {
      this.pulling = { resolve, reject }
    })
  }

  retain(): void {
    if (this.isRetained || this.phase === Phase.ended) return
    this.isRetained = true
    const { words, at, bytes } = this
    const start = words[at + Request.methodAt]!
    const headEnd = words[at + Request.bodyAt]!
    const end = (words[at]! & Flag.whole) === 0 ? headEnd : headEnd + words[at + Request.bodyBytes]!
    this.words = words.slice(at, at + REQUEST_WORDS + words[at + Request.fields]! * FIELD_WORDS)
    this.at = 0
    this.bytes = bytes.slice(start, end)
    this.base = start
    this.list()
  }

  respond(status: number, type: number, headers: string, body: string | Uint8Array | undefined): void {
    if (this.phase !== Phase.waiting) return
    this.phase = Phase.ended
    this.link.respond(this, status, type, headers, body)
    if (this.isListed) this.unlist()
  }

  start(status: number, type: number, headers: string, length: number | undefined): void {
    if (this.phase !== Phase.waiting) return
    this.phase = Phase.streaming
    this.list()
    this.link.start(this, status, type, headers, length)
  }

  write(chunk: Uint8Array): boolean {
    if (this.phase !== Phase.streaming) return true
    return this.link.write(this, chunk)
  }

  drained(): Promise<void> {
    if (this.phase !== Phase.streaming || !this.link.isFull(this)) return Promise.resolve()
    return new Promise((resolve) => {
      this.draining = resolve
    })
  }

  end(): void {
    if (this.phase !== Phase.streaming) return
    this.phase = Phase.ended
    this.link.record(Reply.end, this, 0, '', undefined)
    this.unlist()
  }

  abort(): void {
    if (this.phase === Phase.ended) return
    this.phase = Phase.ended
    this.link.record(Reply.abort, this, 0, '', undefined)
    this.unlist()
  }

  /** The batch is over and nothing was answered: keep what the request was made from. */
  settle(): void {
    if (this.phase !== Phase.ended) this.retain()
  }

  /** The body can be pulled again. */
  onBody(): void {
    const { pulling } = this
    this.pulling = undefined
    if (pulling !== undefined) this.pull().then(pulling.resolve, pulling.reject)
  }

  /** What was written has left. */
  onDrained(): void {
    const { draining } = this
    this.draining = undefined
    draining?.()
  }

  /** The client has gone, or at least sends nothing more. */
  onGone(): void {
    if (this.aborted) return
    this.aborted = true
    const { pulling, onAbort } = this
    this.pulling = undefined
    pulling?.reject(this.gone('its body'))
    this.onDrained()
    onAbort?.()
  }

  private gone(during: string): HttpError {
    return new HttpError('HTTP_CLIENT_GONE', { during })
  }

  private list(): void {
    if (this.isListed) return
    this.isListed = true
    this.link.list(this)
  }

  private unlist(): void {
    this.isListed = false
    this.link.unlist(this)
  }
}
