/**
 * Whole frames, in memory that is shared with the native core (`FrameWriter`, `readFrame`) or of their own.
 *
 * All functions may be called from a save or load hook: the inner call uses another writer or reader.
 */
import { CorespunError } from '../base/index.ts'
import { TransportError } from './errors.ts'
import {
  DEPTH_MAX,
  FORMAT_VERSION,
  FRAME_BYTES_MAX,
  HEADER_BYTES,
  MODE_PROCESS,
  MODE_PROCESS_TOKEN,
  MODE_SELF_CONTAINED,
  TOKEN_BYTES,
} from './format.ts'
import { Graph } from './write/graph.ts'
import { areKindsLeft, arePlainLeft, countLeaves } from './write/kinds.ts'
import { forgetMoved } from './classes/memory.ts'
import { processTables, processToken } from './process.ts'
import { isStackOverflow, refused } from './refused.ts'
import { ReadShapeTable } from './read/read-shapes.ts'
import { Reader } from './read/reader.ts'
import { ShapeTable } from './classes/shapes.ts'
import { Refusal } from './sink.ts'
import { HookError } from './read/source.ts'
import { writeText } from './text.ts'
import { RETRY } from './write/writer-state.ts'
import { Writer } from './write/writer.ts'

/** Memory of an idle writer; a larger frame gets memory of its own. */
const SCRATCH_BYTES = 65_536

/** Times that a frame may be larger than at the attempt before. */
const GROW_MAX = 3

const writeShapes = new ShapeTable()
const readShapes = new ReadShapeTable()
let frameLast = 0

/** Writes frames into the same memory again and again. */
export class FrameWriter {
  /** The whole last frame, when it did not fit into the scratch memory. */
  overflow: Uint8Array | undefined = undefined
  /** Length of the last frame. */
  frameBytes = 0
  /** Ids of the buffers that the last frame keeps alive until it is read. */
  attachments: number[] = []
  /** Buffers lent to the last frame that are still attached in this thread. */
  lent: ArrayBuffer[] = []
  readonly #scratch: Uint8Array
  readonly #writer: Writer
  #isBusy = false

  readonly #isKept: boolean

  /**
   * @param scratch Where frames are written.
   * @param isKept Frames are read more than once: they have shapes from the first value on, because a frame
   *   without shapes takes up to ten times as long to read.
   */
  constructor(scratch: Uint8Array, isKept = false) {
    this.#scratch = scratch
    this.#isKept = isKept
    this.#writer = new Writer(scratch, writeShapes, isKept)
  }

  /**
   * Whether the next frames may refer to what only this process has: shared and moved memory, handles. False
   * for the frames of a process that has the numbers of this one.
   */
  get isInside(): boolean {
    return this.#writer.isInside
  }

  set isInside(isInside: boolean) {
    this.#writer.isInside = isInside
  }

  /**
   * Write `value` as a frame at `offset` of the scratch memory.
   * @param rootName The name of the value in the paths of errors: with `args`, `args[1].user`.
   * @param lends Moved memory stays attached in this thread until {@link FrameWriter.letGo}.
   * @param isProcess Of process mode; otherwise self-contained.
   * @returns Where the frame ends; -1 when it did not fit, and `overflow` holds it.
   * @throws {TransportError} with the path of the part that cannot travel; then nothing was moved.
   */
  write(value: unknown, offset: number, rootName = 'value', lends = false, isProcess = true): number {
    if (this.overflow !== undefined) this.overflow = undefined
    if (this.attachments.length > 0) this.attachments = []
    if (this.lent.length > 0) this.lent = []
    // Called by a save hook: the scratch memory belongs to the outer frame.
    const isInner = this.#isBusy
    const writer = isInner ? new Writer(new Uint8Array(1024), writeShapes, this.#isKept) : this.#writer
    this.#isBusy = true
    try {
      writer.isProcess = isProcess
      if (!isProcess) writer.isInside = false
      const end = writeFrame(writer, value, isInner ? 0 : offset, rootName)
      this.frameBytes = writer.bytes === this.#scratch ? end - offset : end
      // Attachments of frames that hooks wrote meanwhile are not this frame's.
      if (this.attachments.length > 0) this.attachments = []
      if (this.lent.length > 0) this.lent = []
      if (writer.commitments.length > 0) {
        ;[this.attachments, this.lent] = commit(writer, value, rootName)
        if (!lends) this.letGo()
      }
      if (writer.bytes === this.#scratch) return end
      this.overflow = writer.bytes.subarray(0, end)
      return -1
    } finally {
      writer.end()
      if (!isProcess) writer.isInside = true
      if (!isInner) {
        if (writer.bytes !== this.#scratch) writer.into(this.#scratch)
        this.#isBusy = false
      }
    }
  }

  /** Detach the buffers lent to the last frame, which the core has accepted. */
  letGo(): void {
    const { lent } = this
    this.lent = []
    detach(lent)
  }
}

/**
 * Read the frame that lies in `source` from `start` to `end`.
 * @throws {TransportError} when the frame is damaged, or contains what this thread cannot make.
 */
export function readFrame(source: Uint8Array, start: number, end: number): unknown {
  return readFrom(source, start, end, MODE_PROCESS)
}

/**
 * As {@link readFrame}; `modeAlso` is the mode that is accepted besides self-contained frames.
 * @param areViews Bytes of the value are views of `source`.
 */
export function readFrom(
  source: Uint8Array,
  start: number,
  end: number,
  modeAlso: number,
  areViews = false,
): unknown {
  const reader = idleReader ?? new Reader(readShapes)
  idleReader = undefined
  reader.areViews = areViews
  try {
    return reader.frame(source, start, end, modeAlso)
  } catch (error) {
    throw readError(error, reader)
  } finally {
    reader.end()
    idleReader = reader
  }
}

/** The error for what reading threw: errors of load hooks and handles unchanged, else a TransportError. */
function readError(error: unknown, reader: Reader): unknown {
  const thrown = error instanceof HookError ? error.thrown : error
  if (isStackOverflow(thrown)) return new TransportError('TRANSPORT_DEPTH', { depthMax: DEPTH_MAX })
  if (error instanceof HookError || thrown instanceof CorespunError) return thrown
  // A limit of the engine: entries of a Map, characters of a string, memory.
  return reader.error('it contains a value that the engine cannot make', thrown)
}

let idleReader: Reader | undefined
const idleWriters: Writer[] = []

/** A frame of process mode without the token, for {@link readFrame} alone. @throws {TransportError} */
export function processFrame(value: unknown): Uint8Array {
  return newFrame(value, true, false)
}

/** A copy of a frame of process mode with the token, for users: `decode` reads it. */
export function publicFrame(frame: Uint8Array): Uint8Array {
  const copy = new Uint8Array(frame.length + TOKEN_BYTES)
  copy.set(frame)
  addToken(new DataView(copy.buffer), frame.length)
  return copy
}

/** Append the token to the frame of process mode at the start of `view`. */
function addToken(view: DataView, textEnd: number): void {
  const token = processToken()
  view.setUint8(1, MODE_PROCESS_TOKEN)
  view.setInt32(textEnd, token[0], true)
  view.setInt32(textEnd + 4, token[1], true)
}

/** A frame in memory of its own, outside of Buffer's pool: users may transfer it. */
export function newFrame(value: unknown, isProcess: boolean, isPublic: boolean): Uint8Array {
  const writer = idleWriters.pop() ?? new Writer(new Uint8Array(SCRATCH_BYTES), writeShapes)
  const scratch = writer.bytes
  const tokenBytes = isPublic ? TOKEN_BYTES : 0
  try {
    writer.isProcess = writer.isInside = isProcess
    const textEnd = writeFrame(writer, value, 0, 'value', tokenBytes)
    if (writer.commitments.length > 0) detach(commit(writer, value, 'value')[1])
    const { bytes } = writer
    const end = textEnd + tokenBytes
    if (end > bytes.length) return publicFrame(bytes.subarray(0, textEnd))
    if (isPublic) addToken(writer.view, textEnd)
    // Memory that was made for this frame.
    return bytes !== scratch && end === bytes.length ? bytes : bytes.slice(0, end)
  } finally {
    writer.end()
    if (writer.bytes !== scratch) writer.into(scratch)
    idleWriters.push(writer)
  }
}

/**
 * Returns whether `encode(value, { mode: 'process' })` would succeed. Save hooks run.
 * @throws Errors of save hooks and getters.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { isTransportable } from 'corespun/transport'
 *
 * assert.equal(isTransportable(new Map([[1, 'one']])), true)
 * assert.equal(isTransportable(Promise.resolve()), false)
 * ```
 */
export function isTransportable(value: unknown): boolean {
  const writer = new Writer(new Uint8Array(1024), writeShapes)
  try {
    writeFrame(writer, value, 0, 'value')
    return writer.commitments.every(({ buffer }) => !(buffer instanceof ArrayBuffer) || isLendable(buffer))
  } catch (error) {
    if (error instanceof TransportError) return false
    throw error
  } finally {
    writer.end()
  }
}

/** Whether the memory of `buffer` can be moved; true as well where only moving it would show that. */
function isLendable(buffer: ArrayBuffer): boolean {
  const tables = processTables()
  try {
    const probe = new ArrayBuffer(1)
    tables.bufferRelease(tables.bufferLend(probe))
    if (probe.byteLength === 0) return true
    tables.bufferRelease(tables.bufferLend(buffer))
    return true
  } catch {
    return false
  }
}

/**
 * Write a frame at `offset` of the writer's memory, or at the start of larger memory; returns its end.
 * @param spareBytes Left free behind it in larger memory.
 */
function writeFrame(
  writer: Writer,
  value: unknown,
  offset: number,
  rootName: string,
  spareBytes = 0,
): number {
  try {
    let end = complete(writer, value, offset)
    for (let tries = 0; end > writer.bytes.length; tries++) {
      // The first size may be that of a tree, and a graph is larger.
      if (tries === GROW_MAX) throw new Refusal(value, 'refused', 'it changed while it was written')
      let bytes = tries === 0 ? end - offset : end
      if (bytes > FRAME_BYTES_MAX) {
        throw new TransportError('TRANSPORT_TOO_LARGE', { path: rootName, bytes, bytesMax: FRAME_BYTES_MAX })
      }
      // Which objects have shapes changes with each attempt: a value of many may take more bytes again.
      if (tries > 0) bytes = Math.min(bytes + (bytes >> 2), FRAME_BYTES_MAX)
      writer.into(new Uint8Array(bytes + spareBytes))
      end = complete(writer, value, 0)
    }
    return end
  } catch (error) {
    throw refused(error, writer, value, rootName)
  }
}

/** Write the value as a tree, else as a graph; the end may lie behind the end of the memory. */
function complete(writer: Writer, value: unknown, offset: number): number {
  writer.graph = undefined
  const end = attempt(writer, value, offset)
  if (end >= 0) return end
  writer.graph = new Graph()
  attempt(writer, value, offset)
  writer.graph.isLearning = false
  return attempt(writer, value, offset)
}

/** Makes one attempt; returns -1 when the value was written as a tree and is a graph. */
function attempt(writer: Writer, value: unknown, offset: number): number {
  const hasKind = areKindsLeft() && writer.isProcess && !writer.isKept && writer.graph === undefined
  writer.begin(++frameLast, arePlainLeft() && (hasKind || !(writer.isProcess || writer.isKept)))
  // Generated code treats every key that `for-in` finds as an own one. Graphs are written without it.
  if (writer.isPolluted && writer.graph === undefined) return -1
  let bodyEnd: number
  try {
    const from = offset + HEADER_BYTES
    bodyEnd = hasKind ? writer.valueOfKind(value, from) : writer.value(value, from)
  } catch (error) {
    if (error === RETRY) return -1
    throw error
  }
  if (writer.graph === undefined && !writer.isTree()) return -1
  if (areKindsLeft() || arePlainLeft()) countLeaves(writer.leafCount + writer.firstLeafCount, writer.kind)
  const bytes = writer.bytes
  bytes[offset] = FORMAT_VERSION
  bytes[offset + 1] = writer.isProcess ? MODE_PROCESS : MODE_SELF_CONTAINED
  writer.uint32(bodyEnd - offset - HEADER_BYTES, offset + 2)
  let end = bodyEnd
  for (let index = 0; index < writer.chunkCount; index++) end = writeText(bytes, writer.chunks[index], end)
  return writer.text === '' ? end : writeText(bytes, writer.text, end)
}

/** Share or lend the buffers of a frame and write their ids into it; returns the ids and the lent buffers. */
function commit(writer: Writer, root: unknown, rootName: string): [ids: number[], lent: ArrayBuffer[]] {
  const tables = processTables()
  const ids: number[] = []
  const lent: ArrayBuffer[] = []
  for (const { position, buffer } of writer.commitments) {
    try {
      const isMoving = buffer instanceof ArrayBuffer
      const id = isMoving ? tables.bufferLend(buffer) : tables.bufferShare(buffer)
      ids.push(id)
      if (isMoving) lent.push(buffer)
      writer.uint32(id, position)
    } catch (error) {
      for (const id of ids) tables.bufferRelease(id)
      const why = 'its memory cannot be detached: something else uses it'
      throw refused(new Refusal(buffer, 'refused', why, error), writer, root, rootName)
    }
  }
  return [ids, lent]
}

function detach(lent: readonly ArrayBuffer[]): void {
  for (const buffer of lent) {
    processTables().bufferLeave(buffer)
    forgetMoved(buffer)
  }
}
