/**
 * Static files: `'/assets/*': files('./public')`.
 *
 * It is part of Corespun because it needs the router's path and the core, which sends open files by itself. A
 * request cannot reach a file outside of the folder (by `..`, an escape or a symbolic link) or one whose name
 * begins with a dot. The response is read from one open file, so it never mixes two versions, and its date is
 * sent when no other version can have the same. Defaults: `index.html`, `cache-control: no-cache`.
 */
import { type Stats, statSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { posix, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Kind, anything, flag, messageOf, optionsOf, text } from '../../base/index.ts'
import type { Coding } from '../coding/coding.ts'
import { acceptedOf } from '../coding/codings.ts'
import type { CoreFile, Exchange } from '../message/core-interface.ts'
import { HttpError } from '../errors.ts'
import { FileBody } from '../fetch/file-body.ts'
import { type HeaderLines, headerLines } from '../fetch/headers.ts'
import { exchangeOf } from '../fetch/request.ts'
import { type ResponseBody, CorespunResponse, preparedResponse } from '../fetch/response.ts'
import { wrong } from '../message/limits.ts'
import type { HttpRequest } from '../app/routes.ts'
import { StatusError } from '../app/status-error.ts'
import { type Found, found, missing, pathOf, validatorsOf } from './files-on-disk.ts'
import { typeOf } from './media-types.ts'
import { decide, type Validators } from './ranges.ts'

/** Options of {@link files}. */
export interface FilesOptions {
  /** The file to send for a folder, at its URL with a slash; '' sends 404. Default 'index.html'. */
  readonly index?: string
  /** `cache-control` of the responses. Default 'no-cache': stored and revalidated at each use. */
  readonly cacheControl?: string
  /** Further response headers, such as content-security-policy. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Whether `app.js.br`, `app.js.zst` and `app.js.gz` are sent in place of `app.js` to clients that accept
   * them, in this order of preference. One that is older than `app.js` is not. Default false: nobody looks
   * for them.
   */
  readonly precompressed?: boolean
}

const INDEX: Kind<string> = {
  expected: 'the name of a file',
  accepts: (index) => typeof index === 'string' && !/[/\\\0]/.test(index),
  default: 'index.html',
}
const OPTIONS = {
  index: INDEX,
  cacheControl: text('no-cache'),
  headers: anything as Kind<FilesOptions['headers']>,
  precompressed: flag(false),
}

/** What the names of compressed files end with, the best first. */
const ENDINGS: readonly (readonly [Coding, string])[] = [
  ['br', '.br'],
  ['zstd', '.zst'],
  ['gzip', '.gz'],
]
const CODINGS = ENDINGS.map(([coding]) => coding)
const ENDING_OF = new Map(ENDINGS)

/** Longer files are streamed when they are read here. */
const WHOLE_BYTES_MAX = 64 * 1024
/** Versions of files whose headers are kept. */
const VERSIONS_MAX = 1024
/** A file that no core has open. */
const NO_FILE = 0

/**
 * A handler for GET and HEAD. Its pattern ends with `*` or `*name`; a pattern without names serves the index.
 */
export type FilesHandler = (request: HttpRequest) => Promise<Response>

/**
 * Returns a handler that serves the files of a folder.
 * @param folder A path or a file URL of a folder that exists; another may take its name later.
 * @throws {HttpError} `HTTP_ARGUMENT`, or `HTTP_FILES_FOLDER` if there is no such folder. The handler throws
 *   a {@link StatusError} with status 404 for a file that does not exist, and 405 for methods other than GET
 *   and HEAD.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { createApp, files } from 'corespun/http'
 *
 * const app = createApp({ routes: { '/assets/*': files('.') } })
 * assert.equal((await app.inject('/assets/no-such-file')).status, 404)
 * ```
 */
export function files(folder: string | URL, options?: FilesOptions): FilesHandler {
  if (typeof folder !== 'string' && !(folder instanceof URL))
    throw wrong('files(): folder', 'a path or a file URL', folder)
  const root = resolve(folder instanceof URL ? fileURLToPath(folder) : folder)
  const { index, cacheControl, headers, precompressed } = optionsOf(options, OPTIONS, wrong, 'files()')
  requireFolder(root)
  const base = {
    ...(precompressed ? varying(headers) : headers),
    'cache-control': cacheControl,
    'accept-ranges': 'bytes',
  }
  const finder = new Finder({ root, index, base, precompressed })
  return async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new StatusError(405, 'files are read-only', {
        headers: { allow: 'GET, HEAD' },
      })
    const path = pathOf(Object.values(request.params).at(-1) ?? '') // the last name is the path
    const exchange = exchangeOf(request)
    if (exchange?.findFile === undefined) return await finder.onDisk(request, path)
    return finder.inCore(request, path, exchange as Exchange & FileCore)
  }
}

/** @throws {HttpError} `HTTP_FILES_FOLDER`. */
function requireFolder(folder: string): void {
  let stats: Stats | undefined
  try {
    stats = statSync(folder, { throwIfNoEntry: false })
  } catch (cause) {
    throw new HttpError('HTTP_FILES_FOLDER', { folder, reason: messageOf(cause) }, { cause })
  }
  if (stats?.isDirectory() === true) return
  const reason = stats === undefined ? 'it does not exist' : 'it is not a folder'
  throw new HttpError('HTTP_FILES_FOLDER', { folder, reason })
}

/** The headers of responses that depend on `accept-encoding`. */
function varying(headers: FilesOptions['headers']): Record<string, string> {
  const given = Object.entries(headers ?? {})
  const isVary = ([name]: [string, string]): boolean => name.toLowerCase() === 'vary'
  const vary = [...given.filter(isVary).map(([, names]) => names), 'accept-encoding'].join(', ')
  return { ...Object.fromEntries(given.filter((entry) => !isVary(entry))), vary }
}

type FileCore = Required<Pick<Exchange, 'findFile'>>

/** One version of a file. */
interface Version {
  /** Validators of the file. */
  readonly stored: Validators
  /** Validators of the responses: a file and its compressed form have different tags. */
  readonly there: Validators
  /** Headers of every response. */
  readonly shared: Record<string, string>
  /** Headers of a response with the whole file. */
  readonly headers: Record<string, string>
  /** The same, ready to be sent. */
  readonly head: HeaderLines
}

interface FinderParts {
  readonly root: string
  readonly index: string
  readonly base: Record<string, string>
  readonly precompressed: boolean
}

class Finder {
  readonly #root: string
  readonly #index: string
  readonly #base: Record<string, string>
  readonly #precompressed: boolean
  /** By the core's number of the file. */
  readonly #versions = new Map<number, Version>()
  /** The same of files that are the compressed form of another. */
  readonly #encoded = new Map<number, Version>()

  constructor({ root, index, base, precompressed }: FinderParts) {
    this.#root = root
    this.#index = index
    this.#base = base
    this.#precompressed = precompressed
  }

  /** Responds with a file that the core has open and sends itself. */
  inCore(request: HttpRequest, path: string, core: FileCore): Response {
    const nowMs = Date.now()
    const found = core.findFile(this.#root, path, this.#index)
    if (found === undefined) throw missing()
    const moved = found.isIndex ? this.#moved(request, path) : undefined
    if (moved !== undefined) return moved
    if (this.#precompressed) {
      const name = found.isIndex ? posix.join(path, this.#index) : path
      for (const coding of acceptedOf(request.headers.get('accept-encoding'), CODINGS)) {
        const encoded = name + ENDING_OF.get(coding)!
        const other = core.findFile(this.#root, encoded, '')
        if (other === undefined || modifiedNs(other) < modifiedNs(found)) continue
        return this.#sentByCore(request, encoded, other, nowMs, coding)
      }
    }
    return this.#sentByCore(request, path, found, nowMs)
  }

  #sentByCore(request: HttpRequest, path: string, found: CoreFile, nowMs: number, coding?: Coding): Response {
    const { file } = found
    const versions = coding === undefined ? this.#versions : this.#encoded
    let version = versions.get(file)
    if (version === undefined) {
      const plain = coding === undefined ? path : path.slice(0, -ENDING_OF.get(coding)!.length)
      const there = validatorsOf(BigInt(found.bytes), modifiedNs(found), nowMs)
      version = this.#version(there, found.isIndex ? this.#index : plain, coding)
      if (versions.size >= VERSIONS_MAX) versions.clear()
      if (there.isDateStrong) versions.set(file, version) // others have no date yet
    }
    const range = rangeOf(request, version)
    if (range instanceof CorespunResponse) return range
    const { start, end, headers } = range
    const { stored } = version
    const body = new FileBody({ file, start, bytes: end - start }, () => this.#reopened(path, stored))
    if (headers === version.headers) return preparedResponse(body, version)
    return new CorespunResponse(body as unknown as ResponseBody, { status: 206, headers })
  }

  /**
   * Redirects from the path of a folder to the same with a slash, since links in its index are relative to
   * that. Returns `undefined` where the URL has the slash, and for the folder that is the root.
   */
  #moved(request: HttpRequest, path: string): CorespunResponse | undefined {
    if (path === '' || path.endsWith('/')) return undefined
    const { pathname, search } = new URL(request.url)
    if (pathname.endsWith('/')) return undefined // a handler has set the path
    // Relative, so that it is of this host, and right behind a proxy that takes a prefix off the path.
    const location = `./${pathname.slice(pathname.lastIndexOf('/') + 1)}/${search}`
    return new CorespunResponse(null, { status: 301, headers: { ...this.#base, location } })
  }

  /** Responds with a file that is read here. */
  async onDisk(request: HttpRequest, path: string): Promise<Response> {
    const plain = await found(this.#root, path, this.#index)
    const encoded = this.#precompressed ? await this.#encodedOnDisk(request, plain) : undefined
    const { handle, there, coding } = encoded ?? { ...plain, coding: undefined }
    let isRead = false
    try {
      if (encoded !== undefined) await plain.handle.close()
      const moved = plain.isIndex ? this.#moved(request, path) : undefined
      if (moved !== undefined) return moved
      const range = rangeOf(request, this.#version(there, plain.path, coding))
      if (range instanceof CorespunResponse) return range
      const { start, end, headers, status } = range
      const part = { file: NO_FILE, start, bytes: end - start }
      const open = (): Promise<FileHandle> => this.#reopened(encoded?.rest ?? path, there)
      isRead = end - start <= WHOLE_BYTES_MAX
      // What is not read at once is opened at the first read: nobody has to read a response, or cancel it.
      const body = isRead ? await wholeOf(new FileBody(part, open, handle)) : new FileBody(part, open)
      return new CorespunResponse(body as ResponseBody, { status, headers })
    } finally {
      if (!isRead) await handle.close()
    }
  }

  /** The best compressed form that the client accepts; `undefined`: none. */
  async #encodedOnDisk(
    request: HttpRequest,
    { path, there }: Found,
  ): Promise<(Found & { readonly coding: Coding; readonly rest: string }) | undefined> {
    const name = relative(this.#root, path).split(sep).join('/')
    for (const coding of acceptedOf(request.headers.get('accept-encoding'), CODINGS)) {
      const rest = name + ENDING_OF.get(coding)!
      const other = await found(this.#root, rest, '').catch(() => undefined) // as if it were not there
      if (other !== undefined && other.there.modifiedMs >= there.modifiedMs) return { ...other, coding, rest }
      await other?.handle.close()
    }
    return undefined
  }

  #version(stored: Validators, name: string, coding: Coding | undefined): Version {
    const { modifiedMs, isDateStrong, bytes } = stored
    const there =
      coding === undefined ? stored : { ...stored, etag: `${stored.etag.slice(0, -1)}-${coding}"` }
    const shared = {
      ...this.#base,
      etag: there.etag,
      ...(isDateStrong ? { 'last-modified': new Date(modifiedMs).toUTCString() } : {}),
    }
    const headers = {
      ...shared,
      ...(coding === undefined ? {} : { 'content-encoding': coding }),
      'content-type': typeOf(name),
      'content-length': String(bytes),
      'x-content-type-options': 'nosniff',
    }
    return { stored, there, shared, headers, head: headerLines(headers) }
  }

  /** @throws {Error} If the file is not the same any more. */
  async #reopened(path: string, { etag }: Validators): Promise<FileHandle> {
    const { handle, there } = await found(this.#root, path, this.#index)
    if (there.etag === etag) return handle
    await handle.close()
    throw new Error('the file was changed before it was sent')
  }
}

function modifiedNs({ seconds, nanoseconds }: CoreFile): bigint {
  return BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds)
}

interface FileRange {
  readonly status: 200 | 206
  readonly start: number
  readonly end: number
  readonly headers: Record<string, string>
}

/** The part of a file to send, or a response without one. */
function rangeOf(
  request: HttpRequest,
  { there, shared, headers: whole }: Version,
): CorespunResponse | FileRange {
  const { method } = request
  const decision = decide(method, (name) => request.headers.get(name), there)
  if (decision.status === 200) {
    if (method === 'HEAD') return new CorespunResponse(null, { headers: whole })
    return { status: 200, start: 0, end: there.bytes, headers: whole }
  }
  if (decision.status !== 206) {
    const { status } = decision
    const fields = status === 416 ? { 'content-range': `bytes */${there.bytes}` } : {}
    return new CorespunResponse(null, { status, headers: { ...shared, ...fields } })
  }
  const { status, start, end } = decision
  const fields = {
    'content-length': String(end - start),
    'content-range': `bytes ${start}-${end - 1}/${there.bytes}`,
  }
  return { status, start, end, headers: { ...whole, ...fields } }
}

async function wholeOf(body: FileBody): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(body.part.bytes)
  let at = 0
  for (let next = await body.read(); !next.done; next = await body.read()) {
    bytes.set(next.value, at)
    at += next.value.byteLength
  }
  return bytes
}
