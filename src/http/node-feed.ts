/**
 * What node:http's parser is given of a connection: small portions, and none while the connection is paused.
 *
 * node:http parses all that one read brings at once, some two thousand requests of a client that pipelines,
 * and each is two objects of kilobytes; and it resumes a paused connection whenever it has read one of them
 * to its end. Here it gets a portion, and the next one when nobody holds the connection; what has been read
 * and not parsed waits as the bytes that it is. Only listeners are moved, so that node:http does with a
 * portion what it does with a read.
 */
import type { Socket } from 'node:net'

/** Bytes of a portion when the one before it held requests: at most some sixty of them. */
const HEADS_BYTES = 1024
/** Bytes of a portion behind one without a request: in a long head, or in a body that comes in chunks. */
const CHUNKS_BYTES = 16 * 1024

/** See the file's text. */
export class NodeFeed {
  readonly #socket: Socket
  readonly #parse: (bytes: Uint8Array) => void
  readonly #onEnd: () => void
  #rest: Uint8Array[] = []
  #portionBytes = HEADS_BYTES
  /** What is left of a body whose length is known: all of it is one portion. */
  #bodyBytes = 0
  #isFeeding = false
  #isHeld = false
  #hasEnded = false
  #isStopped = false

  /** To be made when node:http has just been given the connection, by whoever listens behind it. */
  constructor(socket: Socket) {
    this.#socket = socket
    const [parse] = socket.listeners('data') as ((bytes: Uint8Array) => void)[]
    // The stream has one of its own, which came first.
    const onEnd = (socket.listeners('end') as (() => void)[]).at(-1)
    this.#parse = parse!.bind(socket)
    this.#onEnd = onEnd!.bind(socket)
    socket.off('data', parse!).off('end', onEnd!)
    socket
      .on('data', (bytes: Uint8Array) => {
        if (this.#isStopped) return
        if (this.#isHeld) {
          // Resumed by node:http for a moment: back into the stream, whose bound is the kernel's signal to
          // wait.
          socket.pause().unshift(bytes)
          return
        }
        this.#rest.push(bytes)
        this.#feed()
      })
      .on('end', () => {
        this.#hasEnded = true
        this.#feed()
      })
      .on('resume', () => {
        if (this.#isHeld) socket.pause()
        else this.#feed()
      })
  }

  /** Nothing is parsed until it is released, whoever resumes the connection. */
  hold(): void {
    this.#isHeld = true
    this.#socket.pause()
  }

  /** Go on. */
  release(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#socket.resume()
  }

  /** The portion held a request, whose body has so many bytes; 0 when it has none, or chunks. */
  note(bodyBytes: number): void {
    this.#portionBytes = HEADS_BYTES
    this.#bodyBytes = bodyBytes
  }

  /** Nothing more is parsed: the connection is about to close. What still comes is thrown away. */
  stop(): void {
    this.#isStopped = true
    this.#rest = []
  }

  #feed(): void {
    const socket = this.#socket
    if (this.#isFeeding) return
    this.#isFeeding = true
    try {
      while (this.#rest.length > 0 && !this.#isHeld && !socket.isPaused() && !socket.destroyed)
        this.#parse(this.#next())
    } finally {
      this.#isFeeding = false
    }
    if (!this.#hasEnded || this.#rest.length > 0) return
    this.#hasEnded = false
    this.#onEnd()
  }

  #next(): Uint8Array {
    const [first] = this.#rest as [Uint8Array]
    const bytes = Math.max(this.#portionBytes, this.#bodyBytes)
    this.#portionBytes = CHUNKS_BYTES // unless there are requests in this one
    this.#bodyBytes = Math.max(0, this.#bodyBytes - first.byteLength)
    if (first.byteLength <= bytes) this.#rest.shift()
    else this.#rest[0] = first.subarray(bytes)
    return first.subarray(0, bytes)
  }
}
