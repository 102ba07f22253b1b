/**
 * JSON of bodies, by programs that know how the last ones looked.
 *
 * A route is sent the same kind of thing again and again. Once a text with the same first key has come often
 * enough its layout becomes a program (program.ts), which reads texts of that layout several times as fast as
 * `JSON.parse` does; every other text is the engine's. So are errors: a program that does not take a text
 * says nothing. Memory and work are bounded whatever clients send: a table of fixed size, texts of a bounded
 * size, a share of the thread's time for learning; and layouts that do not keep what they promise are learned
 * ever more seldom.
 */
import { textOf } from '../native-text.ts'
import { Cursor, MISS } from './cursor.ts'
import { layoutOf } from './layout.ts'
import { type Program, programOf } from './program.ts'

/** Shorter texts are parsed as fast as they are recognised; longer ones would be held twice. */
const [BYTES_MIN, BYTES_MAX] = [48, 256 * 1024]
/** Texts from which a layout is learned. */
const LEARNED_BYTES_MAX = 32 * 1024
/** Texts of one kind begin alike: up to their first colon, which comes within so many bytes or not at all. */
const HEAD_BYTES_MAX = 64
const COLON = 58
const KINDS_MAX = 64
/** Texts of a kind that come before its layout is learned; each time twice as many. */
const [LEARN_AFTER, LEARN_AFTER_MAX] = [16, 1 << 20]
/** Texts in a row that a kind may lose its place to, at most. */
const STRENGTH_MAX = 1024
/** A program that misses more than one text in so many is given up. */
const HITS_PER_MISS = 8
const CREDIT_MAX = 8 * HITS_PER_MISS
/** A text in which the engine was asked about more than one part in so many bytes is as bad as a miss. */
const BYTES_PER_ASKED = 64
/**
 * What learning takes is this part of a thread's time at most: clients choose what is learned. And after so
 * many programs one comes in so many ms: the engine keeps the code of those that are given up for a while.
 */
const [LEARNING_PART, PROGRAMS_AT_ONCE, PROGRAM_MS] = [1 / 100, 256, 10_000]

/** The engine's own, whatever the application puts in its place later. */
const { parse } = JSON

/** Makes a value of a text, as `JSON.parse` does. @throws {SyntaxError} As `JSON.parse`. */
export type ParseJson = (bytes: Uint8Array) => unknown

/** A program for texts like this one, if it pays. */
export type Learn = (bytes: Uint8Array) => Program | undefined

/** A parser with a memory of its own. @param learn Another way to learn, @param now and clock, for tests. */
export function jsonParser(learn: Learn = learned, now = () => performance.now()): ParseJson {
  const kinds = new Array<Kind | undefined>(KINDS_MAX).fill(undefined)
  const cursor = new Cursor()
  const lessons = new Lessons(learn, now)

  return (bytes) => {
    const { byteLength } = bytes
    const head = byteLength < BYTES_MIN || byteLength > BYTES_MAX ? undefined : headOf(bytes)
    if (head === undefined) return parsed(bytes)
    const place = head & (KINDS_MAX - 1)
    const kind = kinds[place]
    if (kind?.head === head) return kind.parse(bytes, cursor)
    // Two kinds in one place: the one that comes more often stays.
    if (kind === undefined || (kind.strength -= 1) < 0) kinds[place] = new Kind(head, lessons)
    return parsed(bytes)
  }
}

/** When something may be learned. */
class Lessons {
  readonly #learn: Learn
  readonly #now: () => number
  #count = 0
  #nextMs = 0

  constructor(learn: Learn, now: () => number) {
    this.#learn = learn
    this.#now = now
  }

  /** Whether it is time for one. */
  isDue(): boolean {
    return this.#now() >= this.#nextMs
  }

  learn(bytes: Uint8Array): Program | undefined {
    const startMs = this.#now()
    const program = this.#learn(bytes)
    const endMs = this.#now()
    this.#count += 1
    const leastMs = this.#count > PROGRAMS_AT_ONCE ? PROGRAM_MS : 0
    this.#nextMs = endMs + Math.max((endMs - startMs) / LEARNING_PART, leastMs)
    return program
  }
}

/** Texts that begin alike. */
class Kind {
  readonly head: number
  readonly #lessons: Lessons
  /** Texts that came, less those of others that wanted its place. */
  strength = 1
  #program: Program | undefined
  /** Texts that came while there was no program, and how many there must be. */
  #seenCount = 1
  #learnAt = LEARN_AFTER
  /** Texts that were read, less those that were not, times what a miss may cost. */
  #credit = 0

  constructor(head: number, lessons: Lessons) {
    this.head = head
    this.#lessons = lessons
  }

  parse(bytes: Uint8Array, cursor: Cursor): unknown {
    if (this.strength < STRENGTH_MAX) this.strength += 1
    const program = this.#program
    if (program === undefined) return this.#watch(bytes)
    cursor.open(bytes)
    try {
      const value = program(cursor)
      if (cursor.askedCount * BYTES_PER_ASKED > bytes.byteLength) this.#missed()
      else if (this.#credit < CREDIT_MAX) this.#credit += 1
      return value
    } catch (miss) {
      if (miss !== MISS) throw miss
    } finally {
      cursor.close()
    }
    this.#missed()
    return parsed(bytes)
  }

  #missed(): void {
    this.#credit -= HITS_PER_MISS
    if (this.#credit < 0) this.#program = undefined
  }

  #watch(bytes: Uint8Array): unknown {
    const value = parsed(bytes)
    this.#seenCount += 1
    if (this.#seenCount < this.#learnAt || !this.#lessons.isDue()) return value
    this.#seenCount = 0
    this.#learnAt = Math.min(2 * this.#learnAt, LEARN_AFTER_MAX)
    this.#program = this.#lessons.learn(bytes)
    this.#credit = CREDIT_MAX
    return value
  }
}

function learned(bytes: Uint8Array): Program | undefined {
  const layout = bytes.byteLength > LEARNED_BYTES_MAX ? undefined : layoutOf(bytes)
  return layout === undefined ? undefined : programOf(layout)
}

/** A number for what stands before the first colon; `undefined` where none is near. */
function headOf(bytes: Uint8Array): number | undefined {
  let hash = 0x811c9dc5 // FNV-1a
  for (let at = 0; at < HEAD_BYTES_MAX && at < bytes.byteLength; at += 1) {
    const byte = bytes[at]!
    if (byte === COLON) return hash
    hash = Math.imul(hash ^ byte, 0x01000193)
  }
  return undefined
}

function parsed(bytes: Uint8Array): unknown {
  return parse(textOf(bytes))
}
