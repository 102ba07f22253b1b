/**
 * Content codings: which a client accepts (RFC 9110, 12.5.3), and the engines of node:zlib for them.
 *
 * The engines work in libuv's threads, off the event loop. Windows are bounded by what HTTP allows (8 MiB for
 * zstd, RFC 9659), and are smaller for streams, which keep them as long as they last. node:zlib is loaded by
 * the first call, so that servers without compression do not load it.
 */
import type { Transform } from 'node:stream'
import type { BrotliOptions, ZstdOptions } from 'node:zlib'
import type { Coding } from './coding.ts'

/** A compressor of `node:zlib`, or a decompressor. */
export type Engine = Transform & {
  readonly bytesWritten: number
  flush(kind: number, done: () => void): void
}

type Levels = Readonly<Record<Coding, number>>

/** Logarithm of the window of streams: 512 KiB of the last text, which is what a client has to keep too. */
const STREAM_WINDOW = 19
/** The same for whole bodies of up to 4 MiB. */
const WHOLE_WINDOW = 22
/** The same for decoders: 8 MiB, the most that RFC 9659 lets anybody send. */
const ZSTD_WINDOW_MAX = 23

const zlib = (): typeof import('node:zlib') => process.getBuiltinModule('node:zlib')

/** Whether Node has zstd: from 22.15 on. */
export function hasZstd(): boolean {
  return typeof (zlib() as { createZstdCompress?: unknown }).createZstdCompress === 'function'
}

/**
 * The codings of `offered` that `accept-encoding` allows and prefers to no coding, the best first; equally
 * good ones in the order of `offered`.
 */
export function acceptedOf<Name extends string>(header: string | null, offered: readonly Name[]): Name[] {
  if (header === null) return []
  const weights = new Map<string, number>()
  for (const part of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim())
    weights.set(name === 'x-gzip' ? 'gzip' : name, weightOf(parameters))
  }
  const identity = weights.get('identity') ?? 0
  const weightOfCoding = (coding: Name): number => weights.get(coding) ?? weights.get('*') ?? 0
  return offered
    .filter((coding) => weightOfCoding(coding) > 0 && weightOfCoding(coding) >= identity)
    .sort((one, other) => weightOfCoding(other) - weightOfCoding(one))
}

/** A malformed weight is 0: the coding is not used. */
function weightOf(parameters: readonly string[]): number {
  const weight = parameters.find((parameter) => parameter.startsWith('q'))
  if (weight === undefined) return 1
  const [, digits] = /^q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.exec(weight) ?? []
  return Number(digits ?? 0)
}

/** The whole of `bytes` in a coding. */
export function compressed(bytes: Uint8Array, coding: Coding, levels: Levels): Promise<Buffer> {
  const { brotliCompress, gzip, zstdCompress } = zlib()
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, result: Buffer): void =>
      error === null ? resolve(result) : reject(error)
    const level = levels[coding]
    if (coding === 'br') brotliCompress(bytes, brotli(level, WHOLE_WINDOW, bytes.byteLength), done)
    else if (coding === 'zstd') zstdCompress(bytes, zstd(level, WHOLE_WINDOW), done)
    else gzip(bytes, { level }, done)
  })
}

/** A compressor of a stream, and the kind of flush after which a client can read all that was written. */
export function compressor(coding: Coding, levels: Levels): { engine: Engine; flushKind: number } {
  const { constants, createBrotliCompress, createGzip, createZstdCompress } = zlib()
  const level = levels[coding]
  if (coding === 'br') {
    const engine = createBrotliCompress(brotli(level, STREAM_WINDOW)) as Engine
    return { engine, flushKind: constants.BROTLI_OPERATION_FLUSH }
  }
  if (coding === 'zstd') {
    const engine = createZstdCompress(zstd(level, STREAM_WINDOW)) as Engine
    return { engine, flushKind: constants.ZSTD_e_flush }
  }
  return { engine: createGzip({ level }), flushKind: constants.Z_SYNC_FLUSH }
}

/** Makes decompressors by the names of codings in requests. */
export function decompressors(): ReadonlyMap<string, () => Engine> {
  const { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } = zlib()
  const params = { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_MAX }
  const made: [string, () => unknown][] = [
    ['gzip', createGunzip],
    ['x-gzip', createGunzip],
    ['deflate', createInflate],
    ['br', createBrotliDecompress],
  ]
  if (noticesTheEnd()) made.push(['zstd', () => createZstdDecompress({ params })])
  return new Map(made.map(([name, make]) => [name, () => make() as Engine]))
}

/** Whether the zstd of this Node fails for a body that was cut off: that of Node 22 takes it for whole. */
function noticesTheEnd(): boolean {
  if (!hasZstd()) return false
  try {
    zlib().zstdDecompressSync(Uint8Array.of(0x28))
    return false
  } catch {
    return true
  }
}

/** The engine takes more, or has been destroyed. */
export function drained(engine: Engine): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      engine.off('drain', done).off('close', done)
      resolve()
    }
    engine.on('drain', done).on('close', done)
  })
}

function brotli(level: number, window: number, bytes = 0): BrotliOptions {
  const { constants } = zlib()
  return {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: level,
      [constants.BROTLI_PARAM_LGWIN]: window,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes,
    },
  }
}

function zstd(level: number, window: number): ZstdOptions {
  const { constants } = zlib()
  return {
    params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_windowLog]: window },
  }
}
