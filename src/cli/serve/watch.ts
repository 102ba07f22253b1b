/**
 * `corespun serve --watch`: the newest version of an app that loads, on a port that stays.
 *
 * Each version is a process, so nothing of the old one is left in it: no module, zone or store. The next one
 * listens on the same port before the one before it stops accepting. Where a port cannot be shared
 * (node:http, Unix sockets), the old one stops first, once the next has loaded.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { reasonOf } from '../../base/index.ts'
import { usage } from '../arguments.ts'
import { ExitCode } from '../errors.ts'
import { resolveModule } from '../resolve.ts'
import type { CommandContext, StopSignal } from '../run/run.ts'
import { Changes } from './changes.ts'
import type { ServeOptions } from './serve-arguments.ts'
import { VERSION_COMMAND, type VersionMessage } from './version.ts'

/**
 * Serve until a signal asks to stop.
 * @param words Those of the command line.
 * @returns The exit code of the version that serves at the end, or of the first if that cannot serve.
 * @throws {CliError} `CLI_USAGE` for a module that is not a file, `CLI_MODULE_MISSING` or `CLI_WATCH`.
 */
export async function watchAndServe(
  options: ServeOptions,
  words: readonly string[],
  context: CommandContext,
): Promise<number> {
  const url = resolveModule(options.module, context.folder)
  if (!url.startsWith('file:')) throw usage('--watch takes the module of a file')
  const changes = new Changes(realpathSync(fileURLToPath(url)))
  try {
    const own = words.filter((word) => word !== '--watch')
    return await new Versions(options, own, context).serve(changes)
  } finally {
    changes.close()
  }
}

/** All versions that run: the newest, and those that finish their requests. */
class Versions {
  readonly #options: ServeOptions
  readonly #words: readonly string[]
  readonly #context: CommandContext
  readonly #running = new Set<Version>()
  #isStopping = false
  /** That the first has chosen; 0 for a Unix socket. */
  #port = 0

  constructor(options: ServeOptions, words: readonly string[], context: CommandContext) {
    this.#options = options
    this.#words = words
    this.#context = context
  }

  async serve(changes: Changes): Promise<number> {
    let ignore!: () => void
    const stopped = new Promise<'stopped'>((resolve) => {
      ignore = this.#context.onSignal((signal) => {
        this.#onSignal(signal)
        resolve('stopped')
      })
    })
    try {
      let current = this.#begin('first')
      if ((await current.outcome) !== 'serving') return await current.ended
      this.#port = current.port
      let change = changes.next()
      for (let isEnded = false; ;) {
        const events: Promise<unknown>[] = [stopped, change]
        if (!isEnded) events.push(current.ended)
        const event = await Promise.race(events)
        if (event === 'stopped') return await this.#end(current)
        isEnded = typeof event === 'number'
        if (isEnded) this.#print(`the server has ended with code ${String(event)}; a change starts it again`)
        else {
          change = changes.next()
          current = await this.#replace(current)
          isEnded = current.isEnded
        }
      }
    } finally {
      ignore()
    }
  }

  /** Start the next version. @returns The version that serves then. */
  async #replace(current: Version): Promise<Version> {
    let next = this.#begin('next')
    if ((await next.outcome) === 'port-taken' && !this.#isStopping) {
      current.stop()
      await Promise.all([next.ended, current.ended])
      next = this.#begin('next')
    }
    const isServing = (await next.outcome) === 'serving'
    if (isServing) current.stop()
    if (this.#isStopping) return isServing ? next : current
    if (isServing) this.#print(`serving the changed ${this.#options.module}`)
    else if (!current.isEnded) this.#print('the version before continues to serve')
    return isServing ? next : current
  }

  #begin(order: 'first' | 'next'): Version {
    const words = [VERSION_COMMAND, order, String(this.#port), ...this.#words]
    const version = new Version(words, (reason) => this.#print(`a version could not be started: ${reason}`))
    this.#running.add(version)
    void version.ended.then(() => this.#running.delete(version))
    return version
  }

  /** The first signal stops those that serve; a second one also those that finish their requests. */
  #onSignal(signal: StopSignal): void {
    for (const version of this.#running) version.signal(signal, this.#isStopping)
    if (!this.#isStopping && this.#context.stderr.isTTY === true)
      this.#print('finishing open requests; press Ctrl-C again to stop at once')
    this.#isStopping = true
  }

  async #end(current: Version): Promise<number> {
    await Promise.all([...this.#running].map((version) => version.ended))
    return current.ended
  }

  #print(text: string): void {
    if (!this.#options.quiet) this.#context.stderr.write(`corespun: ${text}\n`)
  }
}

/** A process that serves one version. */
class Version {
  /** Whether it serves; 'failed' when it has ended before. */
  readonly outcome: Promise<VersionMessage['kind'] | 'failed'>
  /** Its exit code; never rejects. */
  readonly ended: Promise<number>
  port = 0
  isEnded = false
  readonly #child: ChildProcess

  constructor(words: readonly string[], fails: (reason: string) => void) {
    // In a group of its own: a terminal sends Ctrl-C to the watching process alone, which passes it on once.
    const isDetached = process.platform !== 'win32'
    const child = fork(process.argv[1], words, {
      detached: isDetached,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    } as Parameters<typeof fork>[2])
    this.#child = child
    this.ended = once(child, 'exit').then(
      // As a shell has it: one that a signal ends before it has listeners is stopped, and no bug.
      ([code, signal]) =>
        this.#onEnded((code as number | null) ?? 128 + constants.signals[signal as NodeJS.Signals]),
      (error) => {
        fails(reasonOf(error))
        return this.#onEnded(ExitCode.usage)
      },
    )
    const reported = new Promise<VersionMessage['kind']>((resolve) => {
      child.once('message', (message) => {
        const found = message as VersionMessage
        if (found.kind === 'serving') this.port = found.port
        resolve(found.kind)
      })
    })
    this.outcome = Promise.race([reported, this.ended.then(() => 'failed' as const)])
  }

  /** Stop accepting and finish the open requests. */
  stop(): void {
    if (this.#child.connected) this.#child.disconnect()
  }

  /** Pass a signal on. @param isForAll Also when it has been stopped: it then ends at once. */
  signal(signal: StopSignal, isForAll: boolean): void {
    if (this.#child.connected || isForAll) this.#child.kill(signal)
  }

  #onEnded(code: number): number {
    this.isEnded = true
    return code
  }
}
