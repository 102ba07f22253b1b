/**
 * Which processes of this user have a control socket, and where.
 *
 * On Unix a socket is a file in a folder of the user's own: mode 0700, the socket 0600. Node cannot read who
 * has connected (SO_PEERCRED), so the modes alone keep other users out, and a folder that others own or can
 * enter is refused. On Windows it is a named pipe, which others may open for reading only: without a request
 * nothing is answered. The file's name has the pid, the name and, of a worker that is a process, its parent.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync, unlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { isDenied, reasonOf } from '../base/index.ts'
import { ObserveError } from './errors.ts'

/** A process that has, or had, a control socket. */
export interface ControlSocket {
  readonly pid: number
  readonly name: string
  /** The process whose worker it is. */
  readonly parent: number | undefined
  readonly path: string
}

export const NAME = /^[\w-]{1,32}$/
/** The longest path of a Unix socket on macOS; on Linux it is 107. Node may cut a longer one silently. */
const PATH_BYTES_MAX = 103
/** The name of a process that runs the file of `path`: without its folder and its ending. */
export function nameOf(path: string, otherwise: string): string {
  const [, base = ''] = /([^/\\]*?)(?:\.\w+)?$/.exec(path) ?? []
  // A word of a command line that begins with a dash is an option.
  return (
    base
      .replaceAll(/[^\w-]+/g, '-')
      .replace(/^-+/, '')
      .slice(0, 32) || otherwise
  )
}

const FILE = /^(\d+)\.([\w-]{1,32})(?:\.(\d+))?\.sock$/
const IS_WINDOWS = process.platform === 'win32'
const PIPES = '\\\\.\\pipe\\'

/** The folder; on Windows the beginning of the pipes' names. */
function folderPath(): string {
  if (IS_WINDOWS) return `${PIPES}corespun.${userInfo().username.replaceAll(/\W/g, '_')}.`
  const runtime = process.env['XDG_RUNTIME_DIR']
  // A relative one is invalid by its specification, and has no meaning for other processes.
  if (runtime !== undefined && isAbsolute(runtime)) return join(runtime, 'corespun')
  return join(tmpdir(), `corespun-${process.getuid?.()}`)
}

/**
 * The path of a process's socket; its folder exists afterwards.
 * @throws {ObserveError} `OBSERVE_FOLDER`.
 */
export function socketPath(pid: number, name: string, parent: number | undefined): string {
  const folder = folderPath()
  const fileOf = (own: string): string => `${pid}.${own}${parent === undefined ? '' : `.${parent}`}.sock`
  if (IS_WINDOWS) return folder + fileOf(name)
  const over = Buffer.byteLength(join(folder, fileOf(name))) - PATH_BYTES_MAX
  // A worker is found by the process that has started it.
  const least = parent === undefined ? name.length : 1
  const path = join(folder, fileOf(name.slice(0, Math.max(least, name.length - Math.max(0, over)))))
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) {
    const reason = `${path} is longer than ${PATH_BYTES_MAX} bytes; set XDG_RUNTIME_DIR to a shorter path`
    throw new ObserveError('OBSERVE_FOLDER', { folder, reason })
  }
  try {
    mkdirSync(folder, { mode: 0o700, recursive: true })
  } catch (cause) {
    throw failedFolder(folder, cause)
  }
  checkFolder(folder)
  return path
}

/** Other users keep XDG_RUNTIME_DIR through `sudo` and `su`. */
function failedFolder(folder: string, cause: unknown): ObserveError {
  const reason = `${reasonOf(cause)}; XDG_RUNTIME_DIR, if it is set, must be a folder of this user`
  return new ObserveError('OBSERVE_FOLDER', { folder, reason }, { cause })
}

/** @throws {ObserveError} `OBSERVE_FOLDER` when others could have put a socket there. */
function checkFolder(folder: string): void {
  const refuse = (reason: string): never => {
    throw new ObserveError('OBSERVE_FOLDER', { folder, reason })
  }
  const stats = lstatSync(folder)
  const { uid, mode } = stats
  if (!stats.isDirectory()) refuse('it is not a directory')
  if (uid !== process.getuid?.()) refuse(`it belongs to user ${uid}`)
  if ((mode & 0o077) !== 0) refuse(`others may enter it (mode ${(mode & 0o777).toString(8)}); chmod 700 it`)
}

/**
 * All control sockets of this user, by pid. Those of processes that have ended are removed.
 * @throws {ObserveError} `OBSERVE_FOLDER`.
 */
export async function controlSockets(): Promise<ControlSocket[]> {
  const folder = folderPath()
  const start = IS_WINDOWS ? folder.slice(PIPES.length) : ''
  let names: string[]
  try {
    if (!IS_WINDOWS) checkFolder(folder)
    names = readdirSync(IS_WINDOWS ? PIPES : folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error instanceof ObserveError || isDenied(error) ? error : failedFolder(folder, error)
  }
  const found = names.flatMap((file): ControlSocket[] => {
    const [, pid, name, parent] = (file.startsWith(start) && FILE.exec(file.slice(start.length))) || []
    if (pid === undefined) return []
    const path = IS_WINDOWS ? PIPES + file : join(folder, file)
    return [{ pid: Number(pid), name, parent: parent === undefined ? undefined : Number(parent), path }]
  })
  const alive = await Promise.all(
    found.map(async (each) => isAlive(each.pid) || (await isAnswered(each.path))),
  )
  return found.filter((_, index) => alive[index]).sort((a, b) => a.pid - b.pid)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false // of another user, too: the number was used again
  }
}

/**
 * Whether a process listens there, perhaps one whose pid means another one here (a container). A socket that
 * nobody listens on is removed.
 */
export async function isAnswered(path: string): Promise<boolean> {
  try {
    ;(await connected(path)).destroy()
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') removeSocket(path)
    return false
  }
}

/** @throws {NodeJS.ErrnoException} What the system answers; a socket that nobody listens on: ECONNREFUSED. */
export function connected(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    socket.once('error', reject)
    socket.once('connect', () => resolve(socket.off('error', reject)))
  })
}

/** Only its user may connect. */
export function protectSocket(path: string): void {
  if (!IS_WINDOWS) chmodSync(path, 0o600)
}

/** Remove the file of a socket; pipes end with their process. */
export function removeSocket(path: string): void {
  if (IS_WINDOWS) return
  try {
    unlinkSync(path)
  } catch {
    // Somebody else has removed it.
  }
}
