/**
 * The parts of a multipart form, one after the other, while it arrives.
 *
 * A file is a stream, and nothing of it is read before its reader asks, so memory does not depend on its
 * length. Bytes become parts by `@fastify/busboy`, which is small and maintained, and has no dependencies; it
 * is loaded by the first form. Limits are compared here, so that an error names the part. Defaults: those of
 * {@link readForm}.
 */
import type { Busboy } from '@fastify/busboy'
import type { EventEmitter } from 'node:events'
import type { Readable } from 'node:stream'
import type { MIMEType } from 'node:util'
import { integer, optionsOf, requireShortened } from '../../base/index.ts'
import { StatusError } from '../app/status-error.ts'
import { wrong } from '../message/limits.ts'

/** Limits of {@link readForm} and {@link formParts}; a form beyond them gets 413. */
export interface FormLimits {
  /** Most fields and files together. Default 100. */
  readonly partsMax?: number
  /** Most characters of a field's value. Default 65,536. */
  readonly fieldCharsMax?: number
  /** Most bytes of one file, or a function that returns them for a file. Default: the limit of the body. */
  readonly fileBytesMax?: number | ((file: FileInfo) => number)
}

/** What the head of a file's part states. The client writes it: neither is to be trusted. */
export interface FileInfo {
  /** The name of the field. */
  readonly name: string
  /** The name of the file, as the client sent it: it may contain slashes. */
  readonly fileName: string
  /** Its content type, in lower case. */
  readonly type: string
}

/** A field of a form. */
export interface FormField {
  /** A field, not a file. */
  readonly kind: 'field'
  /** The name of the field. */
  readonly name: string
  /** Its text. */
  readonly value: string
}

/** A file of a form. */
export interface FormFile extends FileInfo {
  /** A file, not a field. */
  readonly kind: 'file'
  /** Its bytes; read it, or the next step drops them. */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>
}

/** A part of a form. */
export type FormPart = FormField | FormFile

const NO_LIMIT = 2 ** 40
const FILE_BYTES = integer(0, NO_LIMIT, NO_LIMIT)
/** The limits by name, complete. */
export const FORM_LIMITS = {
  partsMax: integer(0, NO_LIMIT, 100),
  fieldCharsMax: integer(0, NO_LIMIT, 65_536),
  fileBytesMax: {
    expected: `${FILE_BYTES.expected}, or a function`,
    accepts: (most: unknown) => typeof most === 'function' || FILE_BYTES.accepts(most),
    default: NO_LIMIT as NonNullable<FormLimits['fileBytesMax']>,
  },
}
export const MULTIPART = 'multipart/form-data'
const BOUNDARY = /^[^"\\\r\n]{1,256}$/
/** Most bytes of the head of a part: its name, its file's, a type. */
const HEAD_BYTES_MAX = 8192
/** What ends a boundary: the parser counts it to the head. */
const CRLF_BYTES = 2
const NO_DISPOSITION = 'a part has no valid content-disposition'
/** Most UTF-8 bytes of a UTF-16 character. */
const CHAR_BYTES_MAX = 3

/**
 * Iterates over the parts of a multipart form in their order. Each step drops what was not read of the file
 * before it, or waits for who reads it. Leaving the loop drops the rest of the form.
 * @throws {StatusError} With status 413 beyond the limits, 415 for another content type, 400 if malformed or
 *   cut off.
 * @throws {HttpError} `HTTP_ARGUMENT` for invalid limits, and the errors of reading a body.
 * @throws {TypeError} If the body has been read already.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, formParts } from 'corespun/http'
 *
 * async function* sizes(request: Request) {
 *   for await (const part of formParts(request, { fileBytesMax: 2 ** 30 })) {
 *     if (part.kind === 'field') continue
 *     let bytes = 0
 *     for await (const chunk of part.stream) bytes += chunk.length
 *     yield `${part.fileName}: ${bytes}\n`
 *   }
 * }
 * const form = new FormData()
 * form.set('file', new File(['12345'], 'five.txt'))
 * const app = createApp({ routes: { '/': { POST: sizes } } })
 * const response = await app.inject('/', { method: 'POST', body: form })
 * assert.equal(await response.text(), 'five.txt: 5\n')
 * ```
 */
export async function* formParts(request: Request, limits?: FormLimits): AsyncGenerator<FormPart, undefined> {
  const bounds = optionsOf(limits, FORM_LIMITS, wrong, 'formParts()')
  const boundary = formType(request, [MULTIPART]).params.get('boundary')
  if (request.bodyUsed || request.body?.locked === true)
    throw new TypeError('formParts: the body has been read already')
  if (boundary === null || !BOUNDARY.test(boundary)) throw malformed('its content type has no valid boundary')
  const { Busboy } = requireShortened('busboy.cjs', '@fastify/busboy') as typeof import('@fastify/busboy')
  const parser = new Busboy({
    headers: { 'content-type': `${MULTIPART}; boundary="${boundary}"` },
    preservePath: true,
    limits: {
      parts: bounds.partsMax,
      headerSize: CRLF_BYTES + HEAD_BYTES_MAX + 1, // one more shows that there are more
      fieldSize: bounds.fieldCharsMax * CHAR_BYTES_MAX,
    },
  })
  yield* new PartReader(parser, request.body, bounds).parts()
  return undefined
}

/** The part of a MIMEType in use, so that the published types do not need those of Node. */
interface FormType {
  readonly essence: string
  readonly params: { get(name: string): string | null }
}

/** The content type of a form. @throws {StatusError} 415 for another one than these. */
export function formType(request: Request, accepted: readonly string[]): FormType {
  let type: MIMEType | undefined
  try {
    type = new (process.getBuiltinModule('node:util').MIMEType)(request.headers.get('content-type') ?? '')
  } catch {
    // not a content type
  }
  if (type !== undefined && accepted.includes(type.essence)) return type
  throw new StatusError(415, 'the body must be a form', { code: 'FORM_EXPECTED' })
}

/** A file, and when its part ends: its bytes have been read or dropped. */
interface OpenFile {
  readonly part: FormFile
  readonly readable: Readable
  readonly over: Promise<void>
}

type Parser = InstanceType<typeof Busboy>

/** The insides of a busboy, which cuts long heads and skips parts without an event. */
interface Inside {
  readonly _parser: { readonly parser: EventEmitter & { readonly _hparser: Heads } }
}
interface Heads {
  readonly buffer: string
  _finish: () => void
}

class PartReader {
  readonly #parser: Parser
  readonly #body: ReadableStream<Uint8Array> | null
  readonly #fieldCharsMax: number
  readonly #fileBytesMax: NonNullable<FormLimits['fileBytesMax']>
  /** Parts of the bytes that were parsed last. */
  readonly #found: (FormField | OpenFile)[] = []
  /** Files that are not read to their end. */
  readonly #open = new Set<OpenFile>()
  /** Whether the head of the part that arrives has not ended. */
  #isInHead = false
  #error: unknown
  #isOver = false
  #wake: (() => void) | undefined

  constructor(
    parser: Parser,
    body: ReadableStream<Uint8Array> | null,
    { partsMax, fieldCharsMax, fileBytesMax }: Required<FormLimits>,
  ) {
    this.#parser = parser
    this.#body = body
    this.#fieldCharsMax = fieldCharsMax
    this.#fileBytesMax = fileBytesMax
    parser
      .on('field', (name, value, _, isCut) => this.#onField(name, value, isCut))
      .on('file', (name, readable, fileName, _, type) => this.#onFile(readable, { name, fileName, type }))
      .on('partsLimit', () => this.#fail(tooMany(partsMax)))
      .on('error', (error) => this.#fail(malformed('it is invalid or cut off', error)))
      .on('finish', () => {
        this.#closeHead()
        this.#end()
      })
    this.#watchHeads((parser as unknown as Inside)._parser.parser)
  }

  async *parts(): AsyncGenerator<FormPart, undefined> {
    void this.#feed()
    try {
      for (;;) {
        const found = await this.#next()
        if (found === undefined) return undefined
        if ('part' in found) {
          yield found.part
          await this.#passed(found)
        } else yield found
      }
    } finally {
      this.#isOver = true
      for (const { readable } of this.#open) readable.destroy()
      this.#parser.destroy()
    }
  }

  async #next(): Promise<FormField | OpenFile | undefined> {
    while (this.#found.length === 0) {
      if (this.#error !== undefined) throw this.#error
      if (this.#isOver) return undefined
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    return this.#found.shift()
  }

  /** Drop a file that nobody reads, or wait for who does. */
  async #passed({ part, over }: OpenFile): Promise<void> {
    if (!part.stream.locked) await part.stream.cancel().catch(() => {}) // its error is that of the form
    await over
    if (this.#error !== undefined) throw this.#error
  }

  /** Never rejects. Each write ends when the parser has room: a file that nobody reads stops it. */
  async #feed(): Promise<void> {
    try {
      for await (const piece of (this.#body ?? []) as AsyncIterable<Uint8Array>) {
        if (this.#isOver) return
        await new Promise<void>((resolve) => {
          this.#parser.once('close', resolve)
          this.#parser.write(piece, () => {
            this.#parser.off('close', resolve)
            resolve()
          })
        })
        if (this.#isOver) return
      }
      this.#parser.end()
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Refuse the parts that the parser cuts or skips. It listens first, so it has decided before this does. */
  #watchHeads(parts: Inside['_parser']['parser']): void {
    const heads = parts._hparser
    const finish = heads._finish
    heads._finish = () => {
      if (heads.buffer.length > CRLF_BYTES + HEAD_BYTES_MAX)
        this.#fail(malformed(`the head of a part is longer than ${HEAD_BYTES_MAX} bytes`))
      finish.call(heads)
    }
    parts.on('part', (part: EventEmitter) => {
      this.#closeHead()
      this.#isInHead = true
      part.on('header', () => {
        this.#isInHead = false
        if (part.listenerCount('data') === 0) this.#fail(malformed(NO_DISPOSITION))
      })
    })
  }

  /** The next part, or the end, has arrived: a head that has not ended is refused. */
  #closeHead(): void {
    if (this.#isInHead) this.#fail(malformed(NO_DISPOSITION))
  }

  #onField(name: string | undefined, value: string, isCut: boolean): void {
    const most = this.#fieldCharsMax
    if (name === undefined) this.#fail(malformed('a part has no name'))
    else if (isCut || value.length > most)
      this.#fail(tooMuch(`the field ${named(name)} is longer than ${most} characters`))
    else this.#put({ kind: 'field', name, value })
  }

  #onFile(readable: Readable, info: FileInfo): void {
    readable.on('error', () => {}) // its reader receives it
    const { name, fileName = '', type } = info as Partial<FileInfo> & Pick<FileInfo, 'type'>
    if (name === undefined) return void this.#fail(malformed('a part has no name'))
    const stated = { name, fileName, type: type.toLowerCase() }
    const given = this.#fileBytesMax
    const bytesMax = typeof given === 'number' ? given : given(stated)
    const over = new Promise<void>((resolve) => readable.once('close', resolve))
    const stream = this.#streamed(readable, name, bytesMax)
    const file: OpenFile = { part: { kind: 'file', ...stated, stream }, readable, over }
    this.#open.add(file)
    void over.then(() => this.#open.delete(file))
    this.#put(file)
  }

  #streamed(readable: Readable, name: string, bytesMax: number): FormFile['stream'] {
    // Left open when its reader leaves: the parser waits for the end of a file.
    const pieces = readable.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array<ArrayBuffer>>
    let bytes = 0
    return new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        pull: async (controller) => {
          const { done, value } = await pieces.next().catch((error: unknown) => {
            throw this.#error ?? error
          })
          if (done === true) return controller.close()
          bytes += value.byteLength
          if (bytes > bytesMax)
            throw this.#fail(tooMuch(`the file ${named(name)} is longer than ${bytesMax} bytes`))
          controller.enqueue(value)
        },
        cancel: async () => {
          await pieces.return?.()
          readable.resume()
        },
      },
      { highWaterMark: 0 },
    )
  }

  #put(found: FormField | OpenFile): void {
    if (this.#isOver) return
    this.#found.push(found)
    this.#wake?.()
  }

  #end(): void {
    this.#isOver = true
    this.#wake?.()
  }

  /** End the form with an error. Returns the first one. */
  #fail(error: unknown): unknown {
    this.#error ??= error
    for (const { readable } of this.#open) readable.destroy(this.#error as Error)
    this.#end()
    return this.#error
  }
}

export function tooMany(partsMax: number): StatusError {
  return tooMuch(`the form has more than ${partsMax} parts`)
}

export function tooMuch(reason: string): StatusError {
  return new StatusError(413, reason, { code: 'FORM_TOO_LARGE' })
}

function malformed(what: string, cause?: unknown): StatusError {
  return new StatusError(400, `malformed form: ${what}`, { code: 'FORM_MALFORMED', cause })
}

/** A name that a client chose, in a message. */
function named(name: string): string {
  return JSON.stringify(name.slice(0, 100))
}
