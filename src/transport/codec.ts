/**
 * `encode` and `decode`: values into bytes that users hold, and back.
 *
 * A frame of process mode that users hold ends with a token of the process, so that `decode` refuses such a
 * frame from anywhere else. Frames that threads exchange have no token, and `decode` never reads those.
 */
import { oneOf, ownOptions, valueOfKind } from '../base/index.ts'
import { TransportError, wrong } from './errors.ts'
import { MODE_PROCESS, MODE_PROCESS_TOKEN, MODE_SELF_CONTAINED, TOKEN_BYTES } from './format.ts'
import { newFrame, readFrom } from './frame.ts'
import { processToken } from './process.ts'

/** What a frame may contain and who can read it. */
export interface CodecOptions {
  /**
   * `'self-contained'` (the default): any supported version of Node on any machine can read the frame; it
   * contains no functions, handles or shared memory. `'process'`: the frame is smaller, may contain those,
   * and only the process that wrote it can read it.
   */
  readonly mode?: 'process' | 'self-contained'
}

/** How a frame is read. */
export interface DecodeOptions extends CodecOptions {
  /**
   * `'copy'` (the default): every buffer of the value has memory of its own. `'view'`: a Uint8Array that
   * covers its whole buffer, and a Buffer that is part of a larger one, become views of `frame` without a
   * copy. They change when the memory of `frame` changes, and keep all of it alive.
   */
  readonly bytes?: 'copy' | 'view'
}

/**
 * Encode `value` as bytes in memory of their own.
 *
 * Shared memory in a frame of process mode is kept until the process ends, and moved memory until the frame
 * is decoded, because copies of the frame cannot be counted.
 * @param options `mode`: `'self-contained'` by default.
 * @throws {TransportError} with the path of the part that cannot be encoded: `TRANSPORT_REFUSED`,
 *   `TRANSPORT_CLASS_UNREGISTERED`, `TRANSPORT_FUNCTION`, `TRANSPORT_DEPTH` or `TRANSPORT_TOO_LARGE`.
 *   `TRANSPORT_ARGUMENT` when an option is wrong. Errors of save hooks and getters pass unchanged.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { decode, encode } from 'corespun/transport'
 *
 * const bytes = encode({ seen: new Set([1, 2]), at: new Date(0) })
 * assert.deepEqual(decode(bytes), { seen: new Set([1, 2]), at: new Date(0) })
 * ```
 */
export function encode(value: unknown, options?: CodecOptions): Uint8Array {
  const isProcess = isOfProcess(options)
  return newFrame(value, isProcess, isProcess)
}

/**
 * Decode bytes that {@link encode} returned. Reading a self-contained frame runs no code of the frame, so
 * its bytes may come from a network; bound their length.
 * @param options `mode`: `'self-contained'` by default. `'process'` also reads frames of process mode that
 *   this process wrote. Keep such frames in the process: they contain its token. `bytes`: `'copy'` by
 *   default; `'view'` reads bytes without a copy.
 * @throws {TransportError} `TRANSPORT_MALFORMED` when the bytes are not a frame or a damaged one;
 *   `TRANSPORT_PROCESS_FRAME` for a frame of process mode that was not asked for, or of another process;
 *   `TRANSPORT_CLASS_UNKNOWN`, `TRANSPORT_CLASS_VERSION`, `TRANSPORT_KIND_UNKNOWN`,
 *   `TRANSPORT_HANDLE_UNKNOWN`, `TRANSPORT_DEPTH` or `TRANSPORT_VERSION` when this thread cannot read it;
 *   `TRANSPORT_ARGUMENT` when an argument is wrong. Errors of load hooks pass unchanged.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { decode, encode } from 'corespun/transport'
 *
 * const double = decode(encode((n: number) => n * 2, { mode: 'process' }), { mode: 'process' })
 * assert.equal((double as (n: number) => number)(21), 42)
 * assert.throws(() => decode(new Uint8Array(8)), { code: 'TRANSPORT_VERSION' })
 * ```
 */
export function decode(frame: Uint8Array, options?: DecodeOptions): unknown {
  if (!(frame instanceof Uint8Array)) throw wrong('decode(): frame', 'a Uint8Array', frame)
  const { isProcess, areViews } = readOptions(options)
  if (!isProcess || frame[1] === MODE_SELF_CONTAINED)
    return readFrom(frame, 0, frame.length, MODE_SELF_CONTAINED, areViews)
  if (hasToken(frame)) return readFrom(frame, 0, frame.length - TOKEN_BYTES, MODE_PROCESS_TOKEN, areViews)
  if (frame[1] !== MODE_PROCESS && frame[1] !== MODE_PROCESS_TOKEN)
    return readFrom(frame, 0, frame.length, MODE_SELF_CONTAINED, areViews)
  throw new TransportError('TRANSPORT_PROCESS_FRAME', { why: 'this process did not write it' })
}

const ENCODE_OPTIONS = new Set(['mode'])
const DECODE_OPTIONS = new Set(['mode', 'bytes'])
const MODE = oneOf(['process', 'self-contained'], 'self-contained')
const BYTES = oneOf(['copy', 'view'], 'copy')

function isOfProcess(options: CodecOptions | undefined): boolean {
  if (options === undefined) return false
  const { mode } = ownOptions(options, ENCODE_OPTIONS, wrong, 'encode()')
  return valueOfKind('encode()', 'mode', mode, MODE, wrong) === 'process'
}

function readOptions(options: DecodeOptions | undefined): { isProcess: boolean; areViews: boolean } {
  if (options === undefined) return { isProcess: false, areViews: false }
  const { mode, bytes } = ownOptions(options, DECODE_OPTIONS, wrong, 'decode()')
  return {
    isProcess: valueOfKind('decode()', 'mode', mode, MODE, wrong) === 'process',
    areViews: valueOfKind('decode()', 'bytes', bytes, BYTES, wrong) === 'view',
  }
}

/** Whether `frame` ends with the token of this process, compared in constant time. */
function hasToken(frame: Uint8Array): boolean {
  if (frame.length < TOKEN_BYTES) return false
  const token = processToken()
  const at = frame.length - TOKEN_BYTES
  return ((int32At(frame, at) ^ token[0]) | (int32At(frame, at + 4) ^ token[1])) === 0
}

function int32At(bytes: Uint8Array, at: number): number {
  const low = bytes[at] | (bytes[at + 1] << 8)
  return low | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)
}
