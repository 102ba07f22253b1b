/**
 * The TLS of a running server: what it was given, and what replaces it.
 *
 * It has no socket: a core uses what is read here. Loaded only by servers with the option `tls`.
 */
import { messageOf } from '../../base/index.ts'
import type { Core, Tls } from '../message/core-interface.ts'
import { filesOf, readTls } from '../message/credentials.ts'
import { parseTls, type TlsOptions, type TlsSettings } from '../message/tls-options.ts'
import { TlsFiles } from './watch.ts'

/** The certificates of one server. */
export class TlsControl {
  /** What the server begins with. */
  readonly now: Tls
  #settings: TlsSettings
  #core: Core | undefined
  #files: TlsFiles | undefined

  /** @throws {HttpError} As `serve`. */
  constructor(settings: TlsSettings, mayBeExpired: boolean) {
    this.#settings = settings
    const warn = (error: Error): void => process.emitWarning(`corespun/http: ${messageOf(error)}`)
    this.now = readTls(settings, mayBeExpired ? warn : undefined)
  }

  /** The server listens: watch its files. */
  begin(core: Core): void {
    this.#core = core
    this.#watch()
  }

  /** Use other settings, or read the files again. @throws {HttpError} As `setTls`; nothing changes then. */
  set(options: TlsOptions | undefined): void {
    const settings = options === undefined ? this.#settings : parseTls(options, 'server.setTls()')
    this.#core?.setTls(readTls(settings))
    this.#settings = settings
    if (options === undefined || this.#core === undefined) return
    this.#files?.close()
    this.#watch()
  }

  /** The server stops. */
  close(): void {
    this.#core = undefined
    this.#files?.close()
  }

  #watch(): void {
    const files = this.#settings.watch ? filesOf(this.#settings) : []
    this.#files = files.length === 0 ? undefined : new TlsFiles(files, () => this.set(undefined))
  }
}
