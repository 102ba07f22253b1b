/**
 * Finds static files by `node:fs`, for requests that come by another way than the native core: `inject`, the
 * adapter on node:http, and bodies that a handler reads back.
 *
 * The rules are those of crates/http/src/files.rs: nothing outside of the folder, nothing hidden.
 */
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { StatusError } from '../app/status-error.ts'
import type { Validators } from './ranges.ts'

const disk = (): typeof import('node:fs/promises') => process.getBuiltinModule('node:fs/promises')

/** How often a file is looked up again if it is replaced meanwhile. */
const TRIES = 3
/**
 * Age in ms from which no later change of a file has its date. One second does not suffice: dates are cut to
 * whole seconds, and the kernel stamps files by a clock that is up to a tick behind.
 */
const SETTLED_MS = 2000

/** An open file, which the caller closes. */
export interface Found {
  readonly handle: FileHandle
  /** Where it is. */
  readonly path: string
  /** Whether it is the index of the folder that was asked for. */
  readonly isIndex: boolean
  readonly there: Validators
}

/**
 * Opens a file.
 * @param rest Of {@link pathOf}.
 * @throws {StatusError} 404.
 */
export async function found(root: string, rest: string, index: string, tries = TRIES): Promise<Found> {
  const nowMs = Date.now()
  const path = join(root, rest)
  const file = await opened(path)
  const folder = file === undefined && index !== '' ? await opened(join(path, index)) : undefined
  const handle = file ?? folder
  if (handle === undefined) throw missing()
  try {
    const named = file === undefined ? join(path, index) : path
    const [stats, real, top] = await Promise.all([
      handle.stat({ bigint: true }),
      disk().realpath(named),
      disk().realpath(root),
    ])
    const isInside = real.startsWith(top.endsWith(sep) ? top : top + sep)
    const isPlain = stats.isFile() && !(rest.endsWith('/') && file !== undefined)
    if (!isInside || !isPlain || hidden(real.slice(top.length))) throw missing()
    // The name may have become another file's since it was opened: only what is there now was checked.
    const checked = await disk().lstat(real, { bigint: true })
    if (checked.ino !== stats.ino || checked.dev !== stats.dev) {
      if (tries <= 1) throw missing()
      await handle.close()
      return await found(root, rest, index, tries - 1)
    }
    const there = validatorsOf(stats.size, stats.mtimeNs, nowMs)
    return { handle, path: named, isIndex: file === undefined, there }
  } catch (error) {
    await handle.close()
    throw error instanceof StatusError ? error : missing(error)
  }
}

/**
 * What names a version of a file, whoever has found it.
 * @param nowMs The time before it was found, since it may have been changed after that.
 */
export function validatorsOf(bytes: bigint, modifiedNs: bigint, nowMs: number): Validators {
  const modifiedMs = Number(modifiedNs / 1_000_000n)
  return {
    etag: `"${bytes.toString(36)}-${modifiedNs.toString(36)}"`,
    modifiedMs,
    isDateStrong: nowMs - modifiedMs >= SETTLED_MS,
    bytes: Number(bytes),
  }
}

/**
 * The rest of a path without empty segments; a slash at its end stays.
 * @throws {StatusError} 404 for hidden segments and characters that are not allowed in names.
 */
export function pathOf(rest: string): string {
  const segments = rest.split('/').filter((segment) => segment !== '')
  if (segments.some((segment) => segment.startsWith('.') || /[\\\0]/.test(segment))) throw missing()
  return segments.join('/') + (segments.length > 0 && rest.endsWith('/') ? '/' : '')
}

function hidden(path: string): boolean {
  return path.split(sep).some((segment) => segment.startsWith('.'))
}

/** Opens a regular file. Returns `undefined` for any other path, and does not wait for a pipe. */
async function opened(path: string): Promise<FileHandle | undefined> {
  let handle: FileHandle
  try {
    handle = await disk().open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
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

export function missing(cause?: unknown): StatusError {
  return new StatusError(404, 'there is no such file', { cause })
}
