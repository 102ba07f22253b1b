/**
 * Static files: `'/assets/*': files('./public')`.
 *
 * It is part of Corespun because it needs the router's path and streams with its back-pressure. A request
 * cannot reach a file outside of the folder (by `..`, an escape or a symbolic link) or one whose name begins
 * with a dot. The response is read from one open file, so it never mixes two versions. Defaults:
 * `index.html`,
 * `cache-control: no-cache`.
 */
import { constants } from 'node:fs'
import { lstat, open, realpath, type FileHandle } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Kind, anything, optionsOf, text } from '../../base/index.ts'
import { wrong } from '../limits.ts'
import { CorespunResponse } from '../fetch/response.ts'
import type { HttpRequest } from '../app/routes.ts'
import { typeOf } from './media-types.ts'
import { decide, type Decision, type Validators } from './ranges.ts'
import { StatusError } from '../app/status-error.ts'

/** Options of {@link files}. */
export interface FilesOptions {
  /** The file to send for a folder; '' sends 404. Default 'index.html'. */
  readonly index?: string
  /** `cache-control` of the responses. Default 'no-cache': stored and revalidated at each use. */
  readonly cacheControl?: string
  /** Further response headers, such as content-security-policy. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
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
}

/** Longer files are streamed. */
const WHOLE_BYTES_MAX = 64 * 1024
const PIECE_BYTES = 64 * 1024
/** How often a file is looked up again if it is replaced meanwhile. */
const TRIES = 3

/**
 * A handler for GET and HEAD. Its pattern ends with `*` or `*name`; a pattern without names serves the index.
 */
export type FilesHandler = (request: HttpRequest) => Promise<Response>

/**
 * Returns a handler that serves the files of a folder.
 * @param folder A path or a file URL; the folder need not exist yet.
 * @throws {HttpError} `HTTP_ARGUMENT`. The handler throws a {@link StatusError} with status 404 for a file
 *   that does not exist, and 405 for methods other than GET and HEAD.
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
  const { index, cacheControl, headers } = optionsOf(options, OPTIONS, wrong, 'files()')
  const base = {
    ...headers,
    'cache-control': cacheControl,
    'accept-ranges': 'bytes',
  }
  return async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new StatusError(405, 'files are read-only', {
        headers: { allow: 'GET, HEAD' },
      })
    const rest = Object.values(request.params).at(-1) ?? '' // the last name is the path
    const { handle, path, there } = await found(root, rest, index)
    let isKept = false
    try {
      const decision = decide(request.method, (name) => request.headers.get(name), there)
      const sent = {
        ...base,
        etag: there.etag,
        'last-modified': new Date(there.modifiedMs).toUTCString(),
      }
      const response = partsOf(request.method, decision, {
        headers: sent,
        path,
        there,
      })
      if (response instanceof CorespunResponse) return response
      const { start, end, init } = response
      if (end - start <= WHOLE_BYTES_MAX) return new CorespunResponse(await whole(handle, start, end), init)
      isKept = true
      return new CorespunResponse(streamOf(handle, start, end), init)
    } finally {
      if (!isKept) await handle.close()
    }
  }
}

interface Found {
  readonly handle: FileHandle
  readonly path: string
  readonly there: Validators
}

/** @throws {StatusError} 404. */
async function found(root: string, rest: string, index: string, tries = TRIES): Promise<Found> {
  const segments = rest.split('/').filter((segment) => segment !== '')
  if (segments.some((segment) => segment.startsWith('.') || /[\\\0]/.test(segment))) throw missing()
  const path = join(root, ...segments)
  const file = await opened(path)
  const folder = file === undefined && index !== '' ? await opened(join(path, index)) : undefined
  const handle = file ?? folder
  if (handle === undefined) throw missing()
  try {
    const named = file === undefined ? join(path, index) : path
    const [stats, real, top] = await Promise.all([
      handle.stat({ bigint: true }),
      realpath(named),
      realpath(root),
    ])
    const isInside = real.startsWith(top.endsWith(sep) ? top : top + sep)
    const isPlain = stats.isFile() && !(rest.endsWith('/') && file !== undefined)
    if (!isInside || !isPlain || hidden(real.slice(top.length))) throw missing()
    // The name may have become another file's since it was opened: only what is there now was checked.
    const checked = await lstat(real, { bigint: true })
    if (checked.ino !== stats.ino || checked.dev !== stats.dev) {
      if (tries <= 1) throw missing()
      await handle.close()
      return await found(root, rest, index, tries - 1)
    }
    const etag = `"${stats.size.toString(36)}-${stats.mtimeNs.toString(36)}"`
    const there = {
      etag,
      modifiedMs: Number(stats.mtimeMs),
      bytes: Number(stats.size),
    }
    return { handle, path: named, there }
  } catch (error) {
    await handle.close()
    throw error instanceof StatusError ? error : missing(error)
  }
}

function hidden(path: string): boolean {
  return path.split(sep).some((segment) => segment.startsWith('.'))
}

/** Opens a regular file. Returns `undefined` for any other path, and does not wait for a pipe. */
async function opened(path: string): Promise<FileHandle | undefined> {
  let handle: FileHandle
  try {
    handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG', 'EISDIR', 'ENXIO'].includes(code))
      return undefined
    throw error // EMFILE and similar errors do not depend on the path
  }
  try {
    if ((await handle.stat()).isFile()) return handle
  } catch {
    // A file that stat() cannot read counts as absent.
  }
  await handle.close()
  return undefined
}

interface Body {
  readonly start: number
  readonly end: number
  readonly init: {
    readonly status: number
    readonly headers: Record<string, string>
  }
}

function partsOf(
  method: string,
  decision: Decision,
  { headers, path, there }: { headers: Record<string, string>; path: string; there: Validators },
): CorespunResponse | Body {
  const { status } = decision
  if (status === 304 || status === 412) return new CorespunResponse(null, { status, headers })
  if (status === 416)
    return new CorespunResponse(null, {
      status,
      headers: { ...headers, 'content-range': `bytes */${there.bytes}` },
    })
  const { start, end } = status === 206 ? decision : { start: 0, end: there.bytes }
  const all: Record<string, string> = {
    ...headers,
    'content-type': typeOf(path),
    'content-length': String(end - start),
    'x-content-type-options': 'nosniff',
  }
  if (status === 206) all['content-range'] = `bytes ${start}-${end - 1}/${there.bytes}`
  if (method === 'HEAD') return new CorespunResponse(null, { status, headers: all })
  return { start, end, init: { status, headers: all } }
}

async function whole(handle: FileHandle, start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(end - start)
  let at = 0
  while (at < bytes.length) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at)
    if (bytesRead === 0) throw shorter()
    at += bytesRead
  }
  return bytes
}

/** The file from `start` to `end`, a piece for each pull; the file is closed at the end, however it comes. */
function streamOf(handle: FileHandle, start: number, end: number): ReadableStream<Uint8Array> {
  let at = start
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const piece = new Uint8Array(Math.min(PIECE_BYTES, end - at))
          const { bytesRead } = await handle.read(piece, 0, piece.length, at)
          if (bytesRead === 0) throw shorter()
          at += bytesRead
          controller.enqueue(bytesRead === piece.length ? piece : piece.subarray(0, bytesRead))
          if (at < end) return
          controller.close()
          await handle.close()
        } catch (error) {
          controller.error(error)
          await handle.close()
        }
      },
      cancel: () => handle.close(),
    },
    { highWaterMark: 0 },
  )
}

function shorter(): Error {
  return new Error('the file became shorter while it was sent')
}

function missing(cause?: unknown): StatusError {
  return new StatusError(404, 'there is no such file', { cause })
}
