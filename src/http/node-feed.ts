/**
 * What node:http's parser is given of a connection: small portions, and none while the connection is paused.
 *
 * node:http parses all that one read brings at once, some two thousand requests of a client that pipelines,
 * and each is two objects of kilobytes; and it resumes a paused connection whenever it has read one of them
 * to its end. Here it gets a portion, and the next one when nobody holds the connection; what has been read
 * and not parsed waits as the bytes that it is, a bounded number. Only listeners are moved, so that node:http
 * does with a portion what it does with a read. But what its parser leaves of a portion, behind a request
 * that offers an `Upgrade`, is given to it again here: node:http forgets it, and would take the rest of a
 * body for a request.
 */
import type { Socket } from 'node:net'

/** Bytes of a portion when the one before it held requests: at most some sixty of them. */
const HEADS_BYTES = 1024
/** Bytes of a portion behind one without a request: in a long head, or in a body that comes in chunks. */
const CHUNKS_BYTES = 16 * 1024
/** Bytes that are read while nothing is parsed: an end or a reset is seen only by who reads. */
const HELD_BYTES_MAX = 64 * 1024
/** And the pieces they may come in: each is an object, however small. */
const HELD_PIECES_MAX = 64

/** The parser that node:http has lent to a connection. */
interface Parser {
  execute(bytes: Uint8Array): number | Error
  /** How many bytes of the last portion it has taken. */
  takenBytes: number
}

/** See the file's text. */
export class NodeFeed {
  readonly #socket: Socket
  readonly #parser: Parser
  readonly #parse: (bytes: Uint8Array) => void
  readonly #onEnd: () => void
  readonly #ended: () => void
  readonly #stuck: () => void
  #rest: Uint8Array[] = []
  #restBytes = 0
  #portionBytes = HEADS_BYTES
  /** What is left of a body whose length is known: all of it is one portion. */
  #bodyBytes = 0
  #isFeeding = false
  #isHeld = false
  #hasEnded = false
  #isStopped = false
  #isOver = false

  /**
   * To be made when node:http has just been given the connection, by whoever listens behind it.
   * @param on.ended Told that the client sends nothing more; and once more when all it has sent was parsed.
   * @param on.stuck Told that the parser takes nothing more and does not say why.
   */
  constructor(socket: Socket, { ended, stuck }: { ended: () => void; stuck: () => void }) {
    this.#socket = socket
    this.#stuck = stuck
    this.#parser = withTaken((socket as unknown as { parser: Parser }).parser)
    this.#ended = ended
    const [parse] = socket.listeners('data') as ((bytes: Uint8Array) => void)[]
    // The stream has one of its own, which came first.
    const onEnd = (socket.listeners('end') as (() => void)[]).at(-1)
    this.#parse = parse!.bind(socket)
    this.#onEnd = onEnd!.bind(socket)
    socket.off('data', parse!).off('end', onEnd!)
    socket
      .on('data', (bytes: Uint8Array) => {
        if (this.#isStopped) return
        if (this.#isFull()) {
          // Resumed by node:http for a moment: back into the stream, whose bound is the kernel's signal to
          // wait.
          socket.pause().unshift(bytes)
          return
        }
        this.#rest.push(bytes)
        this.#restBytes += bytes.byteLength
        if (this.#isFull()) socket.pause()
        this.#feed()
      })
      .on('end', () => {
        this.#hasEnded = true
        this.#feed()
        ended()
      })
      .on('resume', () => {
        if (this.#isFull()) socket.pause()
        else this.#feed()
      })
  }

  /** The client sends nothing more, and all it has sent was parsed. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether something has been read that was not parsed. */
  get hasRest(): boolean {
    return this.#rest.length > 0
  }

  /** Nothing is parsed until it is released, whoever resumes the connection. */
  hold(): void {
    this.#isHeld = true
    if (this.#isFull()) this.#socket.pause()
  }

  /** Go on. */
  release(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    if (this.#socket.isPaused()) this.#socket.resume()
    else this.#feed()
  }

  /** Whether what waits to be parsed is as much as may wait. */
  #isFull(): boolean {
    return this.#isHeld && (this.#restBytes >= HELD_BYTES_MAX || this.#rest.length >= HELD_PIECES_MAX)
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
    this.#restBytes = 0
  }

  #feed(): void {
    const socket = this.#socket
    if (this.#isFeeding) return
    this.#isFeeding = true
    try {
      while (this.#rest.length > 0 && !this.#isHeld && !socket.isPaused() && !socket.destroyed)
        this.#give(this.#next())
    } finally {
      this.#isFeeding = false
    }
    if (!this.#hasEnded || this.#rest.length > 0) return
    this.#hasEnded = false
    this.#isOver = true
    if (!this.#isStopped) this.#onEnd() // node:http may have given its parser to another connection by then
    this.#ended()
  }

  /**
   * Have a portion parsed. What the parser leaves of it comes next; leaving all of it, it keeps to itself
   * that it has given up, as it does until there is another head behind the one with the `Upgrade`.
   */
  #give(portion: Uint8Array): void {
    this.#parser.takenBytes = portion.byteLength
    this.#parse(portion)
    const { takenBytes } = this.#parser
    if (takenBytes === portion.byteLength || this.#isStopped) return
    // Once it has given up, what it counts from is not this portion.
    if (takenBytes <= 0 || takenBytes > portion.byteLength) return this.#stuck()
    const rest = portion.subarray(takenBytes)
    this.#rest.unshift(rest)
    this.#restBytes += rest.byteLength
  }

  #next(): Uint8Array {
    const [first] = this.#rest as [Uint8Array]
    const bytes = Math.max(this.#portionBytes, this.#bodyBytes)
    this.#portionBytes = CHUNKS_BYTES // unless there are requests in this one
    this.#bodyBytes = Math.max(0, this.#bodyBytes - first.byteLength)
    if (first.byteLength <= bytes) this.#rest.shift()
    else this.#rest[0] = first.subarray(bytes)
    const portion = first.subarray(0, bytes)
    this.#restBytes -= portion.byteLength
    return portion
  }
}

/** Have a parser tell how much it takes; it keeps this when it is lent to another connection. */
function withTaken(parser: Parser): Parser {
  if (Object.hasOwn(parser, 'takenBytes')) return parser
  const { execute } = parser
  parser.execute = (bytes) => {
    const taken = execute.call(parser, bytes)
    if (typeof taken === 'number') parser.takenBytes = taken
    return taken
  }
  parser.takenBytes = 0
  return parser
}
