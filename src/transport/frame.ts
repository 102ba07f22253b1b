/**
 * Whole frames: the doors of the codec.
 *
 * Inside a process, `FrameWriter` writes into memory that the native core knows and `readFrame` reads from
 * it. `marshall` and `unmarshall` are for everybody. All of them may be called again from within a save or
 * load hook: the inner call gets a writer or reader of its own.
 */
import { oneOf, ownOptions, shown, CorespunError, valueOfKind } from '../base/index.ts'
import { TransportError, wrong } from './errors.ts'
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
import { forgetMoved } from './classes/memory.ts'
import { pathOf, pathOfDepth, pathOfRevoked } from './path.ts'
import { platformNameOf } from './classes/platform.ts'
import { processTables, processToken } from './process.ts'
import { ReadShapeTable } from './read/read-shapes.ts'
import { Reader } from './read/reader.ts'
import { ShapeTable } from './classes/shapes.ts'
import { Refusal } from './write/sink.ts'
import { HookError } from './functions/source.ts'
import { writeText } from './text.ts'
import { RETRY, TOO_DEEP, Writer } from './write/writer.ts'

/** Bytes `marshall` starts with, and goes back to after a larger frame. */
const SCRATCH_BYTES = 65_536

/** Times a frame may turn out larger than it was. */
const GROW_MAX = 3

const writeShapes = new ShapeTable()
const readShapes = new ReadShapeTable()
let frameLast = 0

/**
 * Writes frames of this process into memory given once.
 */
export class FrameWriter {
  /** The whole last frame, when it did not fit into the scratch memory. */
  overflow: Uint8Array | undefined = undefined
  /** Length of the last frame. */
  frameBytes = 0
  /** Ids of the buffers that the last frame keeps alive until somebody reads it. */
  attachments: number[] = []
  /** Buffers whose memory the last frame was lent, and which have not left this thread yet. */
  lent: ArrayBuffer[] = []
  readonly #scratch: Uint8Array
  readonly #writer: Writer
  #isBusy = false

  /** @param scratch Where frames are written. */
  constructor(scratch: Uint8Array) {
    this.#scratch = scratch
    this.#writer = new Writer(scratch, writeShapes)
  }

  /**
   * Write `value` as a frame at `offset` of the scratch memory.
   * @param rootName What an error calls the value: `args` makes it say `args[1].user`.
   * @param lends Memory that was given away stays here too, until {@link FrameWriter.letGo}.
   * @returns Where the frame ends; -1 when it did not fit, and `overflow` holds it.
   * @throws {TransportError} naming the path of the part that cannot travel; nothing was moved then.
   */
  write(value: unknown, offset: number, rootName = 'value', lends = false): number {
    if (this.overflow !== undefined) this.overflow = undefined
    if (this.attachments.length > 0) this.attachments = []
    if (this.lent.length > 0) this.lent = []
    // Called from within a save hook: the frame under construction keeps the scratch memory.
    const isInner = this.#isBusy
    const writer = isInner ? new Writer(new Uint8Array(1024), writeShapes) : this.#writer
    this.#isBusy = true
    try {
      writer.isProcess = true
      const end = writeFrame(writer, value, isInner ? 0 : offset, rootName)
      this.frameBytes = writer.bytes === this.#scratch ? end - offset : end
      // What a hook wrote meanwhile is not this frame's.
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
      if (!isInner) {
        if (writer.bytes !== this.#scratch) writer.into(this.#scratch)
        this.#isBusy = false
      }
    }
  }

  /** The last frame was accepted: what it was lent leaves this thread. */
  letGo(): void {
    const { lent } = this
    this.lent = []
    leave(lent)
  }
}

/**
 * Read the frame that lies in `source` from `start` to `end`.
 * @throws {TransportError} when it is no frame, a damaged one, or names what this thread does not know.
 */
export function readFrame(source: Uint8Array, start: number, end: number): unknown {
  return read(source, start, end, MODE_PROCESS)
}

function read(source: Uint8Array, start: number, end: number, modeAlso: number): unknown {
  const reader = idleReader ?? new Reader(readShapes)
  idleReader = undefined
  try {
    return reader.frame(source, start, end, modeAlso)
  } catch (error) {
    throw readError(error, reader)
  } finally {
    reader.end()
    idleReader = reader
  }
}

/** What the caller of a read is told: what a load hook or the owner of a handle threw; else our own error. */
function readError(error: unknown, reader: Reader): unknown {
  const thrown = error instanceof HookError ? error.thrown : error
  if (isStackOverflow(thrown)) return new TransportError('TRANSPORT_DEPTH', { depthMax: DEPTH_MAX })
  if (error instanceof HookError || thrown instanceof CorespunError) return thrown
  // A Map of more entries than the engine has room for, a text longer than it makes, no memory.
  return reader.error('it holds what cannot be made', thrown)
}

let idleReader: Reader | undefined
const idleWriters: Writer[] = []

/**
 * The bytes of `value`.
 * @param options.mode `'self-contained'` (the default): readable anywhere, on any supported Node, for ever;
 *   carries no functions, handles or shared memory. `'process'`: smaller, carries them too, readable in this
 *   process only. Nobody can see when the last copy of such bytes is gone, so shared memory in them is kept
 *   until the process ends, and moved memory until it has been read. Arguments, results, stores and channels
 *   let go of both by themselves.
 * @throws {TransportError} naming the path of the part that cannot travel.
 */
export function marshall(
  value: unknown,
  options?: { readonly mode?: 'process' | 'self-contained' },
): Uint8Array {
  const isProcess = isOfProcess('marshall()', options)
  return newFrame(value, isProcess, isProcess)
}

/**
 * The bytes of `value` for {@link readFrame}, which no user holds.
 * @throws {TransportError} naming the path of the part that cannot travel.
 */
export function processFrame(value: unknown): Uint8Array {
  return newFrame(value, true, false)
}

/**
 * A copy of a frame of this process, made for {@link readFrame}, that users may hold: `unmarshall` reads it.
 */
export function publicFrame(frame: Uint8Array): Uint8Array {
  const copy = new Uint8Array(frame.length + TOKEN_BYTES)
  copy.set(frame)
  addToken(new DataView(copy.buffer), frame.length)
  return copy
}

/** Make the process frame at the start of `view` one that users may hold: the token follows its text. */
function addToken(view: DataView, textEnd: number): void {
  const token = processToken()
  view.setUint8(1, MODE_PROCESS_TOKEN)
  view.setInt32(textEnd, token[0], true)
  view.setInt32(textEnd + 4, token[1], true)
}

/** True when `frame` ends with the token of this process; how long that takes says nothing of the token. */
function isTokened(frame: Uint8Array): boolean {
  if (frame.length < TOKEN_BYTES) return false
  const token = processToken()
  const at = frame.length - TOKEN_BYTES
  return ((int32At(frame, at) ^ token[0]) | (int32At(frame, at + 4) ^ token[1])) === 0
}

function int32At(bytes: Uint8Array, at: number): number {
  const low = bytes[at] | (bytes[at + 1] << 8)
  return low | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)
}

/** A frame in memory of its own, not in a pool as of Buffer: users may transfer it. */
function newFrame(value: unknown, isProcess: boolean, isPublic: boolean): Uint8Array {
  const writer = idleWriters.pop() ?? new Writer(new Uint8Array(SCRATCH_BYTES), writeShapes)
  try {
    writer.isProcess = isProcess
    const textEnd = writeFrame(writer, value, 0, 'value')
    if (writer.commitments.length > 0) leave(commit(writer, value, 'value')[1])
    const end = isPublic ? textEnd + TOKEN_BYTES : textEnd
    if (end > writer.bytes.length) return publicFrame(writer.bytes.subarray(0, textEnd))
    if (isPublic) addToken(writer.view, textEnd)
    return writer.bytes.slice(0, end)
  } finally {
    writer.end()
    if (writer.bytes.length > SCRATCH_BYTES) writer.into(new Uint8Array(SCRATCH_BYTES))
    idleWriters.push(writer)
  }
}

/**
 * The value of a frame that `marshall` made.
 * @param options.mode `'self-contained'` (the default): frames from anywhere; one that names functions,
 *   handles or memory of a process is refused before anything of it is read. `'process'`: also those that
 *   `marshall(value, { mode: 'process' })` or a result's `payload` wrote in this process. Anybody's other
 *   bytes are refused then too, but who has seen such a frame can make others: keep them in the process.
 * @throws {TransportError} when `frame` is no frame, a damaged one, or names what this thread does not know.
 *   Nothing else is thrown, but what a load hook of yours throws.
 */
export function unmarshall(
  frame: Uint8Array,
  options?: { readonly mode?: 'process' | 'self-contained' },
): unknown {
  if (!(frame instanceof Uint8Array)) throw wrong('unmarshall(): frame', 'a Uint8Array', frame)
  const isProcess = isOfProcess('unmarshall()', options)
  // Frames as threads hand them to each other have no token, so nobody can vouch for this one.
  if (!isProcess || frame[1] === MODE_SELF_CONTAINED) return read(frame, 0, frame.length, MODE_SELF_CONTAINED)
  if (isTokened(frame)) return read(frame, 0, frame.length - TOKEN_BYTES, MODE_PROCESS_TOKEN)
  if (frame[1] !== MODE_PROCESS && frame[1] !== MODE_PROCESS_TOKEN)
    return read(frame, 0, frame.length, MODE_SELF_CONTAINED)
  throw new TransportError('TRANSPORT_PROCESS_FRAME', { why: 'this process did not write it' })
}

const OPTIONS = new Set(['mode'])
const MODE = oneOf(['process', 'self-contained'], 'self-contained')

/** Whether the mode that `call` is asked for is `process`. @throws {TransportError} `TRANSPORT_ARGUMENT`. */
function isOfProcess(call: string, options: { readonly mode?: string } | undefined): boolean {
  if (options === undefined) return false
  const { mode } = ownOptions(options, OPTIONS, wrong, call)
  return valueOfKind(call, 'mode', mode, MODE, wrong) === 'process'
}

/**
 * True when `marshall(value, {mode: 'process'})` would succeed. Save hooks run.
 * @throws What a save hook or a getter throws.
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

/**
 * True when the memory of `buffer` could be moved; true as well where that cannot be asked without doing it.
 */
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
 * Write a frame at `offset` of the writer's memory, or at the start of larger memory; the position of its
 * end.
 */
function writeFrame(writer: Writer, value: unknown, offset: number, rootName: string): number {
  try {
    let end = complete(writer, value, offset)
    for (let tries = 0; end > writer.bytes.length; tries++) {
      // The first size may be too small by what a graph takes more than a tree; the third cannot be.
      if (tries === GROW_MAX) throw new Refusal(value, 'refused', 'it changed while it was written')
      const bytes = tries === 0 ? end - offset : end
      if (bytes > FRAME_BYTES_MAX) {
        throw new TransportError('TRANSPORT_TOO_LARGE', { path: rootName, bytes, bytesMax: FRAME_BYTES_MAX })
      }
      writer.into(new Uint8Array(bytes))
      end = complete(writer, value, 0)
    }
    return end
  } catch (error) {
    throw explained(error, writer, value, rootName)
  }
}

/** Write the value as a tree, or as the graph that it is; the end may lie behind the end of the memory. */
function complete(writer: Writer, value: unknown, offset: number): number {
  writer.graph = undefined
  const end = attempt(writer, value, offset)
  if (end >= 0) return end
  writer.graph = new Graph()
  attempt(writer, value, offset)
  writer.graph.isLearning = false
  return attempt(writer, value, offset)
}

/** One attempt; -1 when the value was taken for a tree and is none. */
function attempt(writer: Writer, value: unknown, offset: number): number {
  writer.begin(++frameLast)
  // Generated code takes what a `for-in` finds for an object's own; as a graph nothing is written by it.
  if (writer.isPolluted && writer.graph === undefined) return -1
  let bodyEnd: number
  try {
    bodyEnd = writer.value(value, offset + HEADER_BYTES)
  } catch (error) {
    if (error === RETRY) return -1
    throw error
  }
  if (writer.graph === undefined && !writer.isTree()) return -1
  const bytes = writer.bytes
  bytes[offset] = FORMAT_VERSION
  bytes[offset + 1] = writer.isProcess ? MODE_PROCESS : MODE_SELF_CONTAINED
  writer.uint32(bodyEnd - offset - HEADER_BYTES, offset + 2)
  let end = bodyEnd
  for (let index = 0; index < writer.chunks.length; index++) end = writeText(bytes, writer.chunks[index], end)
  return writer.text === '' ? end : writeText(bytes, writer.text, end)
}

/**
 * Share or lend the memory of a frame: the ids, as they now stand in it, and the buffers that are to leave.
 */
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
      const why = 'its memory belongs to something that does not let go of it'
      throw explained(new Refusal(buffer, 'refused', why, error), writer, root, rootName)
    }
  }
  return [ids, lent]
}

function leave(lent: readonly ArrayBuffer[]): void {
  for (const buffer of lent) {
    processTables().bufferLeave(buffer)
    forgetMoved(buffer)
  }
}

/** What the caller is told: a refusal gets its path, everything else stays what it is. */
function explained(error: unknown, writer: Writer, root: unknown, rootName: string): unknown {
  const savedOf = (object: object) => writer.savedOf(object)
  if (error === TOO_DEEP || isStackOverflow(error)) {
    const path = pathOfDepth(root, rootName, DEPTH_MAX, savedOf)
    return new TransportError('TRANSPORT_DEPTH', { path, depthMax: DEPTH_MAX })
  }
  if (error instanceof TypeError && error.message.includes('revoked')) {
    // Of a Proxy that was revoked the engine refuses everything, in words that name no place.
    const path = pathOfRevoked(root, rootName, savedOf)
    if (path === undefined) return error
    const facts = { path, what: 'a Proxy', why: 'it was revoked' }
    return new TransportError('TRANSPORT_REFUSED', facts, { cause: error })
  }
  if (!(error instanceof Refusal)) return error
  const path = pathOf(root, rootName, error.value, savedOf)
  const options = error.cause === undefined ? undefined : { cause: error.cause }
  if (error.kind === 'function')
    return new TransportError('TRANSPORT_FUNCTION', { path, why: error.why }, options)
  if (error.kind === 'class') {
    const made: unknown = (error.value as { constructor?: { name?: unknown } }).constructor?.name
    const className = typeof made === 'string' && made !== '' ? made : 'without a name'
    const base = platformNameOf(Object.getPrototypeOf(error.value) as object)
    const facts = base === undefined ? { path, className } : { path, className, base }
    return new TransportError('TRANSPORT_CLASS_UNREGISTERED', facts)
  }
  return new TransportError('TRANSPORT_REFUSED', { path, what: shown(error.value), why: error.why }, options)
}

function isStackOverflow(error: unknown): boolean {
  return error instanceof RangeError && error.message.includes('call stack')
}
