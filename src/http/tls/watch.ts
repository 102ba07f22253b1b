/**
 * Reads certificates anew when their files change.
 *
 * Their folders are watched, since renewals replace files, or the links that lead to them. Certificate and
 * key are written one after the other, so files that do not fit are read once more before they are reported.
 */
import { type FSWatcher, watch } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../../base/index.ts'

/** Time without an event after which files are read, and after which unusable ones are read once more. */
const QUIET_MS = 100
const AGAIN_MS = 1000

/** Watches until it is closed. */
export class TlsFiles {
  readonly #renew: () => void
  readonly #watchers: FSWatcher[] = []
  #timer: NodeJS.Timeout | undefined

  /** @param renew Reads the files and uses them; throws if they cannot be used. */
  constructor(files: readonly string[], renew: () => void) {
    this.#renew = renew
    for (const folder of new Set(files.map((file) => dirname(file)))) this.#watch(folder)
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers.splice(0)) watcher.close()
  }

  #watch(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#soon(QUIET_MS, false))
      watcher.on('error', (error) => this.#warn(error))
      this.#watchers.push(watcher)
    } catch (error) {
      this.#warn(error)
    }
  }

  #soon(ms: number, isLast: boolean): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      try {
        this.#renew()
      } catch (error) {
        if (isLast) this.#warn(error)
        else this.#soon(AGAIN_MS, true)
      }
    }, ms).unref()
  }

  #warn(error: unknown): void {
    process.emitWarning(`corespun/http: the certificates stay as they are: ${messageOf(error)}`)
  }
}
