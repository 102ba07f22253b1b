/**
 * Detects changes of the files of a module.
 *
 * Their folders are watched and not the files, because editors replace files. A change counts when a text
 * differs, so a file that is only saved again causes nothing.
 */
import { type FSWatcher, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../../base/index.ts'
import { type Sources, sourcesOf } from '../../zone/internal.ts'
import { CliError } from '../errors.ts'

/** Editors and compilers write several files, and some files in several steps. */
const QUIET_MS = 100

/** Watches the files of a module until it is closed. */
export class Changes {
  readonly #entry: string
  readonly #watchers = new Map<string, FSWatcher>()
  #sources: Sources = new Map()
  #timer: NodeJS.Timeout | undefined
  #resolve!: () => void
  #changed!: Promise<void>

  /**
   * @param entry The path of the module.
   * @throws {CliError} `CLI_WATCH` when the system refuses to watch a folder.
   */
  constructor(entry: string) {
    this.#entry = entry
    this.#read()
  }

  /** Resolves when a file has changed since the call before; the files are then read again. */
  async next(): Promise<void> {
    do await this.#changed
    while (!this.#read())
  }

  /** Stop watching. */
  close(): void {
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  /** Read the files and watch their folders. Whether a text differs and the module is there. */
  #read(): boolean {
    this.#changed = new Promise((resolve) => (this.#resolve = resolve))
    const before = this.#sources
    const sources = sourcesOf(this.#entry)
    this.#watchFoldersOf([...sources.keys()])
    if (sources.get(this.#entry) === undefined) return false // being written, as by a compiler
    this.#sources = sources
    return before.size !== sources.size || [...sources].some(([path, text]) => before.get(path) !== text)
  }

  #watchFoldersOf(paths: readonly string[]): void {
    const folders = new Map(paths.map((path) => identified(dirname(path))))
    for (const [id, watcher] of this.#watchers) {
      if (folders.has(id)) continue
      watcher.close()
      this.#watchers.delete(id)
    }
    for (const [id, folder] of folders) if (!this.#watchers.has(id)) this.#watch(id, folder)
  }

  #watch(id: string, folder: string): void {
    try {
      const watcher = watch(folder, () => this.#onEvent())
      watcher.on('error', () => this.#onEvent()) // the folder is removed: reading finds its parent
      this.#watchers.set(id, watcher)
    } catch (cause) {
      this.close()
      throw new CliError('CLI_WATCH', { folder, reason: messageOf(cause) }, { cause })
    }
    this.#onEvent() // a file may have changed before its folder was watched
  }

  #onEvent(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#resolve(), QUIET_MS)
  }
}

/** A folder, or the nearest one that exists, and what differs when a folder is made anew under its name. */
function identified(folder: string): [id: string, folder: string] {
  const found = statSync(folder, { throwIfNoEntry: false })
  return found === undefined ? identified(dirname(folder)) : [`${found.ino} ${folder}`, folder]
}
