/**
 * The state of a frame that a writer has under construction: memory, text, the objects met so far.
 *
 * The base of Writer (writer.ts), which writes the values. Values without sharing and cycles pay almost
 * nothing for identity: the first attempt assumes a tree and records only the *leaves*, the objects that
 * contain no other object. If any object is met twice, then so is the first leaf below it, or there is a
 * cycle and the nesting does not end. Either throws `RETRY`, and frame.ts starts again with every object in
 * a table: once to find the objects that are met again, once to write.
 */
import type { ClassWriter } from '../class-entry.ts'
import { DEPTH_MAX, Resizables, TAG_DEFINE, TAG_REFERENCE, TREE_DEPTH_MAX } from '../format.ts'
import type { Graph } from './graph.ts'
import { areDistinct, isSet } from './leaves.ts'
import { Refusal, type Commitment, type Position } from '../sink.ts'

/** Thrown by a writer that assumed a tree and found something else. */
export const RETRY: unique symbol = Symbol('retry')
/** Thrown by a writer that reached {@link DEPTH_MAX}. */
export const TOO_DEEP: unique symbol = Symbol('too deep')

/**
 * Leaves at which they are compared although the frame is not complete, so that no graph unfolds without
 * bound.
 */
const LEAVES_FIRST_CHECK = 1024
/** Factor from the first check's leaves to the second's: each check looks at all leaves so far once more. */
const LEAVES_SECOND_FACTOR = 64
/** Factor from each further check to the next: up to it a graph is unfolded in vain. */
const LEAVES_FURTHER_FACTOR = 4
/** Leaves for which an idle writer keeps memory. */
const LEAVES_KEPT_MAX = 65_536
/** Chunks of text for which an idle writer keeps room. */
const CHUNKS_KEPT_MAX = 16

export class WriterState {
  bytes: Uint8Array
  view: DataView
  isProcess = true
  /** The reader shares the memory and the handles of this process, not its numbers alone. */
  isInside = true
  /** Plain objects and arrays are written by plain.ts. */
  isPlain = false
  /** Characters of strings since the last finished chunk. */
  text = ''
  /** The first {@link chunkCount} are of this frame. */
  readonly chunks: string[] = []
  chunkCount = 0
  readonly commitments: Commitment[] = []
  graph: Graph | undefined = undefined
  leafCount = 0
  /** Leaves of a value that the engine wrote, as JSON or by its serializer; none of them was met twice. */
  firstLeafCount = 0
  /** The kind of the value of the frame, or -1 where it was not looked at. */
  kind = -1
  /**
   * A leaf was written with its keys. It may be written by its shape as well when it is met again, so
   * contents in the frame do not show whether two leaves are one object.
   */
  hasKeyedLeaf = false
  depth = 0
  frame = 0
  /** Object.prototype has enumerable properties, so what a `for-in` finds may be nobody's own. */
  isPolluted = false
  readonly #leaves: (object | undefined)[] = new Array<object | undefined>(LEAVES_FIRST_CHECK).fill(undefined)
  #leafFrom = new Int32Array(LEAVES_FIRST_CHECK)
  #leafTo = new Int32Array(LEAVES_FIRST_CHECK)
  #leavesCheckAt = LEAVES_FIRST_CHECK
  /** Leaves of earlier attempts at the frame, which still lie there. */
  #leavesHeld = 0
  blockCount = 0
  /** The writer of the last object of a registered class: a guess for the next one in the same field. */
  lastClass: ClassWriter | undefined = undefined
  #resizables: Resizables | undefined = undefined
  readonly #saved = new Map<object, unknown>()

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** Write into other memory from now on. */
  into(bytes: Uint8Array): void {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /**
   * Forget the last attempt at a frame; `frame` is a number no other attempt in this thread has.
   * @param isPlain By plain loops, as long as it has no graph.
   */
  begin(frame: number, isPlain: boolean): void {
    this.frame = frame
    this.isPlain = isPlain && this.graph === undefined
    this.blockCount = 0
    this.depth = 0
    if (this.leafCount > this.#leavesHeld) this.#leavesHeld = this.leafCount
    this.leafCount = 0
    this.firstLeafCount = 0
    this.kind = -1
    this.hasKeyedLeaf = false
    this.#leavesCheckAt = LEAVES_FIRST_CHECK
    this.text = ''
    if (this.chunkCount > 0) this.#dropChunks()
    if (this.commitments.length > 0) this.commitments.length = 0
    this.lastClass = undefined
    this.#resizables = undefined
    this.isPolluted = false
    for (const _ in Object.prototype) this.isPolluted = true
  }

  /** Let go of everything a frame held on to. */
  end(): void {
    const leaves = this.#leaves
    const held = Math.max(this.leafCount, this.#leavesHeld)
    if (held > LEAVES_KEPT_MAX) {
      leaves.length = LEAVES_FIRST_CHECK
      this.#leafFrom = new Int32Array(LEAVES_FIRST_CHECK)
      this.#leafTo = new Int32Array(LEAVES_FIRST_CHECK)
    }
    for (let index = Math.min(held, leaves.length) - 1; index >= 0; index--) leaves[index] = undefined
    this.leafCount = this.#leavesHeld = 0
    this.graph = undefined
    this.text = ''
    if (this.chunkCount > 0) this.#dropChunks()
    if (this.commitments.length > 0) this.commitments.length = 0
    if (this.#saved.size > 0) this.#saved.clear()
  }

  /** True when no leaf was met twice, so that the frame is complete. Called without a graph. */
  isTree(): boolean {
    const count = this.leafCount
    return count < 2 || this.#areDistinct(count)
  }

  /** Emptying the array would have the next frame allocate it again. */
  #dropChunks(): void {
    const { chunks } = this
    if (chunks.length > CHUNKS_KEPT_MAX) chunks.length = 0
    else for (let index = 0; index < this.chunkCount; index++) chunks[index] = ''
    this.chunkCount = 0
  }

  uint32(number: number, at: Position): Position {
    const bytes = this.bytes
    bytes[at] = number
    bytes[at + 1] = number >> 8
    bytes[at + 2] = number >> 16
    bytes[at + 3] = number >> 24
    return at + 4
  }

  float64(number: number, at: Position): Position {
    if (at + 8 <= this.bytes.length) this.view.setFloat64(at, number, true)
    return at + 8
  }

  raw(source: Uint8Array, at: Position): Position {
    if (at + source.length <= this.bytes.length) this.bytes.set(source, at)
    return at + source.length
  }

  saved(object: object, make: () => unknown): unknown {
    if (!this.#saved.has(object)) this.#saved.set(object, make())
    return this.#saved.get(object)
  }

  /** What a save hook returned for `object` in this frame. */
  savedOf(object: object): unknown {
    return this.#saved.get(object)
  }

  /** See {@link Sink}. @throws `RETRY` without a graph, a {@link Refusal} with one. */
  resizable(buffer: ArrayBuffer, length: number, lengthMax: number): void {
    const why = (this.#resizables ??= new Resizables()).tooMuch(length, lengthMax)
    if (why === undefined) return
    // Taken for a tree, a buffer that is met twice counts twice.
    if (this.graph === undefined) throw RETRY
    throw new Refusal(buffer, 'refused', why)
  }

  opened(object: object, isOpen: boolean): void {
    if (isOpen) this.graph?.open.add(object)
    else this.graph?.open.delete(object)
  }

  /** Negative: the object is written as a reference, and ~result is where the next value goes. */
  met(graph: Graph, object: object, at: Position): Position {
    const number = graph.meet(object)
    if (number === -2) return at
    if (number === -1) {
      this.bytes[at] = TAG_DEFINE
      return at + 1
    }
    if (graph.open.has(object)) {
      throw new Refusal(object, 'refused', 'a cycle leads back to an object whose load hook must run first')
    }
    this.bytes[at] = TAG_REFERENCE
    return ~this.uint32(number, at + 1)
  }

  enter(): number {
    if (++this.depth > TREE_DEPTH_MAX) this.deep()
    return this.leafCount
  }

  /** The object is written; `mark` is the number of leaves when it was begun. */
  leave(mark: number, object: object, from: Position, to: Position): void {
    this.depth--
    if (mark === this.leafCount && this.graph === undefined) this.leaf(object, from, to)
  }

  /** No other object was met in this one. @throws `RETRY` when the leaf was met before. */
  leaf(object: object, from: Position, to: Position): void {
    const leaf = this.leafCount++
    if (leaf === this.#leafFrom.length) this.#growLeaves()
    this.#leaves[leaf] = object
    this.#leafFrom[leaf] = from
    this.#leafTo[leaf] = to
    if (leaf + 1 !== this.#leavesCheckAt) return
    if (!this.#areDistinct(leaf + 1)) throw RETRY
    this.#leavesCheckAt *= leaf + 1 === LEAVES_FIRST_CHECK ? LEAVES_SECOND_FACTOR : LEAVES_FURTHER_FACTOR
  }

  #areDistinct(count: number): boolean {
    if (this.isPlain || this.hasKeyedLeaf) return isSet(this.#leaves.slice(0, count))
    return areDistinct({ objects: this.#leaves, from: this.#leafFrom, to: this.#leafTo }, this.bytes, count)
  }

  #growLeaves(): void {
    this.#leafFrom = doubled(this.#leafFrom)
    this.#leafTo = doubled(this.#leafTo)
  }

  /** Deeper than a tree should be. @throws `RETRY` without a graph, `TOO_DEEP` with one. */
  deep(): void {
    if (this.graph === undefined) throw RETRY
    if (this.depth > DEPTH_MAX) throw TOO_DEEP
  }
}

function doubled(numbers: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const twice = new Int32Array(numbers.length * 2)
  twice.set(numbers)
  return twice
}
