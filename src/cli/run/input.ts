/**
 * Where the items come from: the paths that the arguments name, or the lines of files and of standard input.
 *
 * A source is read in batches and only as fast as it is asked, so an endless one takes constant memory. Names
 * of files are the exception: they are expanded and sorted before the first runs, which is what makes the
 * order of the results and the remaining time known.
 */
import {
  accessSync,
  constants,
  createReadStream,
  fstatSync,
  readdir,
  statSync,
  type Dirent,
  type Stats,
} from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import type * as Globs from 'tinyglobby'
import type { ItemKind } from '../arguments.ts'
import { reasonOf, requireShortened } from '../../base/index.ts'
import { CliError } from '../errors.ts'
import { LineCutter, type Item } from './lines.ts'

/** A file or a directory that cannot be read, or an input that broke: it goes to the terminal as one line. */
export type Complain = (error: CliError) => void

export interface ItemSource {
  /** Batch after batch; ends early, without an error, when `signal` is aborted. */
  batches(signal: AbortSignal): AsyncIterable<readonly Item[]>
  /** How many items there are; `undefined` until all are read. */
  readonly total: number | undefined
  /** How much has been read, from 0 to 1; `undefined` if the size is unknown. */
  fraction(): number | undefined
  /** What `--skip` is to be followed by, so that it leaves out the same first items; '' where nothing is. */
  mark(skipCount: number): string
}

export interface SourcePlan {
  readonly inputs: readonly string[]
  readonly ignored: readonly string[]
  /** How many items of the beginning are left out. */
  readonly skipCount: number
  /** The mark of those items, as {@link ItemSource.mark} returned it. */
  readonly skipMark?: string | undefined
  readonly items: ItemKind
  readonly lineCharsMax: number
  readonly stdin: Readable & { readonly fd?: number }
  readonly complain: Complain
}

/**
 * Find the inputs and make their source.
 * @throws {CliError} `CLI_INPUT_NOT_FOUND` for a pattern or a directory with no file; `CLI_SKIP`.
 */
export async function openSource(plan: SourcePlan): Promise<ItemSource> {
  const paths = await expand(plan.inputs, plan.ignored, plan.complain)
  return plan.items === 'paths' ? new PathSource(paths, plan) : new LineSource(paths, plan)
}

/**
 * The files that `inputs` name, each once, in the order of the arguments and sorted inside each pattern.
 * A name without a pattern is kept whether the file exists or not; reading it reports an error.
 * @param inputs As written. @param ignored Patterns of files that patterns and directories leave out.
 * @param complain Called once for each directory that cannot be read.
 * @throws {CliError} `CLI_INPUT_NOT_FOUND` for a pattern or a directory with no file.
 */
export async function expand(
  inputs: readonly string[],
  ignored: readonly string[],
  complain: Complain,
): Promise<string[]> {
  const paths = new Set<string>()
  const unreadable = new Set<string>()
  const report: Report = (path, error) => {
    // A pattern may start in a folder that is not there, and one may vanish meanwhile: nothing is left out.
    if (unreadable.has(path) || error.code === 'ENOENT' || error.code === 'ENOTDIR') return
    unreadable.add(path)
    complain(new CliError('CLI_INPUT_UNREADABLE', { input: path, reason: reasonOf(error) }))
  }
  const addFound = (input: string, found: string[]): void => {
    if (found.length === 0) throw new CliError('CLI_INPUT_NOT_FOUND', { pattern: input })
    for (const path of found.sort()) paths.add(path)
  }
  const left = ignored.map((pattern) => slashed(pattern))
  for (const written of inputs) {
    const kind = written === '-' ? 'file' : kindOf(written)
    const input = kind === 'missing' ? slashed(written) : written
    if (kind === 'file') {
      paths.add(input)
      continue
    }
    if (kind === 'directory' && ignored.length === 0) {
      const folder = isAbsolute(input) ? resolve(input) : relative('', input)
      addFound(input, await filesBelow(folder, report))
      continue
    }
    // Loaded only here: it costs as much CPU as half a worker.
    const { glob, isDynamicPattern } = requireShortened('glob.cjs', 'tinyglobby') as typeof Globs
    if (kind === 'missing' && !isDynamicPattern(input)) {
      paths.add(written)
      continue
    }
    const pattern = kind === 'directory' ? `${escaped(input).replace(/\/+$/, '')}/**` : input
    const named = foldersOf(kind === 'directory' ? input : staticPart(input, isDynamicPattern))
    const found = await glob(pattern, {
      ignore: left,
      absolute: isAbsolute(input),
      onlyFiles: true,
      expandDirectories: false,
      followSymbolicLinks: false,
      fs: searched(named, (folder, error) => {
        report(isAbsolute(input) ? resolve(folder) : relative('', folder) || '.', error)
      }),
    })
    addFound(input, found)
  }
  return [...paths]
}

/** Called for a folder that cannot be listed. */
type Report = (folder: string, error: NodeJS.ErrnoException) => void

const entriesOf = promisify(readdir) as (
  folder: string,
  options: { withFileTypes: true },
) => Promise<Dirent[]>

/**
 * What the search of a pattern finds below a folder: no hidden entries, and no folders behind links. Apart
 * from it because loading and preparing that search takes 30 ms of CPU.
 */
async function filesBelow(folder: string, report: Report): Promise<string[]> {
  const found: string[] = []
  const folders = [folder]
  for (const each of folders) {
    const entries = await entriesOf(each || '.', { withFileTypes: true }).catch((error: unknown) => {
      report(each || '.', error as NodeJS.ErrnoException)
      return []
    })
    for (const entry of entries) {
      if (entry.name.startsWith('.')) continue
      const path = join(each, entry.name)
      if (entry.isDirectory()) folders.push(path)
      else if (entry.isFile() || (entry.isSymbolicLink() && kindOf(path) !== 'directory')) found.push(path)
    }
  }
  return sep === '/' ? found : found.map((path) => path.replaceAll(sep, '/'))
}

/**
 * The file system for a search. Reports folders that cannot be listed, which the search skips silently, and
 * lists links as files unless they lead to folders, so that reading a dangling link reports an error.
 * A link to a folder is followed only where it was `named`, and is not listed otherwise. So what is found is
 * not a folder, and no file needs a `stat` of its own.
 */
function searched(named: ReadonlySet<string>, report: Report): Globs.FileSystemAdapter {
  const list = (folder: string, options: { withFileTypes: true }, done: Listed): void => {
    readdir(folder, options, (error, entries) => {
      if (error !== null) report(folder, error)
      done(
        error,
        entries?.map((entry) => (entry.isSymbolicLink() ? shownAs(entry, folder, named) : entry)),
      )
    })
  }
  return { readdir: list as typeof readdir }
}

type Listed = (error: NodeJS.ErrnoException | null, entries: Dirent[] | undefined) => void

function shownAs(link: Dirent, folder: string, named: ReadonlySet<string>): Dirent {
  const path = join(folder, link.name)
  if (kindOf(path) !== 'directory') return Object.create(link, { isFile: YES }) as Dirent
  const folderOrNothing = named.has(resolve(path)) ? { isDirectory: YES } : {}
  return Object.create(link, { ...folderOrNothing, isSymbolicLink: NO }) as Dirent
}

const YES = { value: () => true }
const NO = { value: () => false }

/** The folder of that path and all that it lies in. */
function foldersOf(path: string): Set<string> {
  const folders = new Set<string>()
  for (let up = resolve(path); !folders.has(up); up = dirname(up)) folders.add(up)
  return folders
}

/** The folder that a pattern begins with, up to the first part that `isDynamic` finds a wildcard in. */
function staticPart(pattern: string, isDynamic: (part: string) => boolean): string {
  const parts = pattern.split('/')
  const dynamic = parts.findIndex((part) => isDynamic(part))
  const first = parts.slice(0, dynamic).join('/').replace(/\\(.)/g, '$1')
  return first === '' && pattern.startsWith('/') ? '/' : first
}

/**
 * A pattern with slashes on Windows, where a backslash separates folders as well. It escapes a
 * character that a name there may contain; `*` and `?` are in no name.
 */
export function slashed(pattern: string, platform: string = process.platform): string {
  return platform === 'win32' ? pattern.replace(/\\(?![()[\]{}!@+])/g, '/') : pattern
}

/** A directory's own name in a pattern: brackets in it are only brackets. */
function escaped(path: string): string {
  return path.replaceAll(sep, '/').replace(/[\\()[\]{}!*?@+|]/g, '\\$&')
}

function kindOf(path: string): 'file' | 'directory' | 'missing' {
  const stats = statsOf(path)
  if (stats === undefined) return 'missing'
  return stats.isDirectory() ? 'directory' : 'file'
}

/** What is at `path`; `undefined` when nothing is, or nothing that may be looked at. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined // No permission, a loop of links: reading it reports an error.
  }
}

/** Items are the paths themselves; one that cannot be read becomes an error. */
class PathSource implements ItemSource {
  readonly #paths: readonly string[]
  readonly #complain: Complain

  /** All of them, also those that are left out. */
  readonly #all: readonly string[]

  constructor(all: readonly string[], { skipCount, skipMark, complain }: SourcePlan) {
    this.#all = all
    this.#paths = all.slice(skipCount)
    this.#complain = complain
    if (skipCount > all.length) throw tooFew(skipCount, all.length)
    if (skipMark === undefined || this.mark(skipCount) === `:${skipMark}`) return
    const problem =
      'the first files are not those that were done: files were added, removed or renamed; ' +
      'put them back, name the files that are left, or run all of them again'
    throw new CliError('CLI_SKIP', { skipCount, problem })
  }

  mark(skipCount: number): string {
    const hash = process.getBuiltinModule('node:crypto').createHash('sha256')
    for (const path of this.#all.slice(0, skipCount)) hash.update(`${path}\n`)
    return `:${hash.digest('hex').slice(0, 8)}`
  }

  get total(): number {
    return this.#paths.length
  }

  fraction(): undefined {
    return undefined
  }

  async *batches(signal: AbortSignal): AsyncGenerator<readonly Item[]> {
    const batchMax = 256
    for (let start = 0; start < this.#paths.length && !signal.aborted; start += batchMax) {
      yield this.#paths.slice(start, start + batchMax).map((path) => this.#checked(path))
    }
  }

  #checked(path: string): Item {
    try {
      accessSync(path, constants.R_OK)
      return path
    } catch (thrown) {
      const error = new CliError('CLI_INPUT_UNREADABLE', { input: path, reason: reasonOf(thrown) })
      this.#complain(error)
      return error
    }
  }
}

function tooFew(skipCount: number, count: number): CliError {
  return new CliError('CLI_SKIP', { skipCount, problem: `there are only ${count} items` })
}

/** Items are the lines of all inputs, one input after the other. */
class LineSource implements ItemSource {
  readonly #paths: readonly string[]
  readonly #plan: SourcePlan
  readonly #bytesTotal: number | undefined
  #bytesRead = 0
  readonly total = undefined

  constructor(paths: readonly string[], plan: SourcePlan) {
    this.#paths = paths
    this.#plan = plan
    this.#bytesTotal = bytesOf(paths, plan)
  }

  /** Lines are not read twice for it. */
  mark(): string {
    return ''
  }

  fraction(): number | undefined {
    if (this.#bytesTotal === undefined || this.#bytesTotal === 0) return undefined
    return Math.min(1, this.#bytesRead / this.#bytesTotal)
  }

  async *batches(signal: AbortSignal): AsyncGenerator<readonly Item[]> {
    let left = this.#plan.skipCount
    for await (const items of this.#allBatches(signal)) {
      yield left === 0 ? items : items.slice(left)
      left = Math.max(0, left - items.length)
    }
    if (left === 0 || signal.aborted) return
    const { skipCount, complain } = this.#plan
    complain(tooFew(skipCount, skipCount - left))
  }

  async *#allBatches(signal: AbortSignal): AsyncGenerator<readonly Item[]> {
    for (const path of this.#paths) {
      if (signal.aborted) return
      const cutter = new LineCutter({
        lineCharsMax: this.#plan.lineCharsMax,
        blankLines: this.#plan.items === 'lines',
      })
      try {
        for await (const text of this.#texts(path, signal)) yield cutter.push(text)
        if (!signal.aborted) yield cutter.end()
      } catch (thrown) {
        if (signal.aborted) return
        const input = path === '-' ? 'standard input' : path
        this.#plan.complain(new CliError('CLI_INPUT_UNREADABLE', { input, reason: reasonOf(thrown) }))
      }
    }
  }

  async *#texts(path: string, signal: AbortSignal): AsyncGenerator<string> {
    // Node takes a directory for an empty stream.
    if (path === '-' && stdinStats(this.#plan.stdin)?.isDirectory() === true) throw directoryError()
    const stream = path === '-' ? this.#plan.stdin : createReadStream(path)
    const stop = (): void => void stream.destroy()
    signal.addEventListener('abort', stop)
    stream.setEncoding('utf8')
    try {
      for await (const text of stream as AsyncIterable<string>) {
        this.#bytesRead += Buffer.byteLength(text)
        yield text
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }
}

function directoryError(): Error {
  return Object.assign(new Error('is a directory'), { code: 'EISDIR' })
}

/** The size of all inputs together; `undefined` if one is not a plain file. */
function bytesOf(paths: readonly string[], plan: Pick<SourcePlan, 'stdin'>): number | undefined {
  let total = 0
  for (const path of paths) {
    const stats = path === '-' ? stdinStats(plan.stdin) : statsOf(path)
    if (stats?.isFile() !== true) return undefined
    total += stats.size
  }
  return total
}

function stdinStats(stdin: { readonly fd?: number }): Stats | undefined {
  try {
    return stdin.fd === undefined ? undefined : fstatSync(stdin.fd)
  } catch {
    return undefined // A closed standard input: reading it reports an error.
  }
}
