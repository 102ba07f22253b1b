/**
 * The part of a zone's server in each worker: the app with a listener of its own.
 *
 * A broadcast starts it, so workers that replace others serve, too. A worker serves an app once, however
 * often it is asked, and receives the command to stop on a channel, because a broadcast would wait for the
 * task that the worker runs. After an error that nobody has caught, another worker serves before
 * this one stops accepting and finishes its requests.
 */
import { createServer } from 'node:net'
import { BroadcastChannel } from 'node:worker_threads'
import { once } from 'node:events'
import { assert, otherRuntime, reasonOf, threads } from '../../base/index.ts'
import { register } from '../../transport/internal.ts'
import { currentTask } from '../../zone/index.ts'
import { type Mark, type Served, here, whenCounting } from '../../zone/internal.ts'
import { HttpError } from '../errors.ts'
import { type HttpServer, serveHere } from '../server.ts'
import { DEFAULT_HOST, DEFAULT_PORT, type ServeOptions } from '../app/settings.ts'
import type { TlsOptions } from '../message/tls-options.ts'
import { wrong } from '../message/limits.ts'
import { loadApp, type ModuleApp } from './app-module.ts'
import { Board, type Counts, rowOf } from './board.ts'
import { RoomRelay } from './rooms.ts'
import { HANDLER_MS_MAX, parseHandlerMsMax } from './cluster-settings.ts'
import {
  INVITATIONS,
  type Invitation,
  type Job,
  type Command,
  type Listening,
  type WorkerMessage,
} from './protocol.ts'

register(HttpError, { cid: 'corespun.HttpError' })

/** Time for a worker that replaces another to begin to serve. */
const REPLACED_MS = 30_000
/** Time beyond `closeMs` for a server to close, with all cores busy. */
const CLOSE_EXTRA_MS = 3000

const serving = new Map<string, Promise<WorkerServer>>()

/**
 * Serve in this worker, the first one; rejects with an error that all workers would have.
 * @throws {HttpError} As `serve`, and `HTTP_APP`.
 */
export async function beginHere(job: Job, memory: SharedArrayBuffer): Promise<Listening> {
  const { worker } = currentTask()!
  const { server, handlerMsMax } = await serverOf({ job, memory, worker, isFirst: true })
  const { url, port, sharedPort, quiet } = server
  return { url, port, sharedPort, core: server.stats().core, handlerMsMax, quiet }
}

/**
 * Serve in this worker, now or when it replaces another; an earlier broadcast has stored the invitation.
 * @throws {HttpError} As {@link beginHere}.
 */
export async function joinHere(id: string): Promise<void> {
  const { job, memory, worker } = invitationTo(id)
  const board = new Board(memory)
  if (board.isStopped) return board.setServing(rowOf(worker), false) // also for the one that it replaces
  try {
    await serverOf({ job, memory, worker, isFirst: false })
  } catch (error) {
    // Nothing waits for a worker that replaces another.
    if (board.isRunning) failed(job.id, board, worker, reasonOf(error))
    throw error
  }
}

/**
 * Replace the certificates, also in a worker that replaces another and has just joined.
 * @throws {HttpError} As `server.setTls`.
 */
export async function setTlsHere(id: string, tls: TlsOptions | undefined): Promise<void> {
  const started = await serving.get(id)
  await started?.server.setTls(tls === undefined ? tls : { ...started.ownTls, ...tls })
}

/** Report that this worker does not serve; it continues to run tasks. */
function failed(id: string, board: Board, worker: string, failure: string): void {
  const row = rowOf(worker)
  board.setFailed(row)
  process.once('exit', () => board.setServing(row, false)) // the worker that replaces it has not failed
  const channel = new BroadcastChannel(id)
  channel.postMessage({ kind: 'failed', worker, failure } satisfies WorkerMessage)
  channel.close()
}

function invitationTo(id: string): Invitation {
  const { [Symbol.for(INVITATIONS)]: all } = globalThis as unknown as Record<symbol, Map<string, Invitation>>
  const found = all?.get(id)
  assert(found !== undefined, 'an invitation is broadcast before the call to join')
  all.delete(id)
  return found
}

interface Asked extends Invitation {
  readonly isFirst: boolean
}

function serverOf(asked: Asked): Promise<WorkerServer> {
  const { id } = asked.job
  let started = serving.get(id)
  if (started === undefined) {
    started = WorkerServer.begin(asked)
    serving.set(id, started)
    started.catch(() => serving.delete(id)) // the caller receives the error
  }
  return started
}

class WorkerServer implements Served {
  readonly server: HttpServer
  readonly handlerMsMax: number
  /** What only its module can have. */
  readonly ownTls: Pick<TlsOptions, 'sni'>
  readonly #close: ModuleApp['close']
  readonly #worker: string
  readonly #id: string
  readonly #board: Board
  readonly #channel: BroadcastChannel
  readonly #rooms: RoomRelay
  /** Whether others may listen on its port. */
  readonly #shares: boolean
  /** Its row, that of its name until another worker has the name. */
  #row: number
  /** The row that it has then, once that is claimed. */
  #left: ReturnType<Board['claim']>
  /** The counts of the worker it replaces. */
  #before: Counts
  /** Called when another worker serves under its name, or cannot. */
  #replaced: (() => void) | undefined
  readonly #onExit = (): void => this.#end()
  #stopping: Promise<void> | undefined

  static async begin({ job, memory, worker, isFirst }: Asked): Promise<WorkerServer> {
    const board = new Board(memory)
    const row = rowOf(worker)
    board.setServing(row, true)
    try {
      const { close, handlerMsMax: ofApp, ...app } = await loadApp(job.source)
      await whenCounting()
      const handlerMsMax = job.handlerMsMax ?? parseHandlerMsMax(ofApp) ?? HANDLER_MS_MAX
      const settings = { ...app, ...job.settings }
      if (settings.rooms !== undefined)
        throw wrong('serve(): rooms', 'the app module: pass it to serve(), once for all workers', 'rooms', {
          verb: 'cannot be exported from',
        })
      const shares = sharesPort(job, settings)
      if (shares) {
        if (isFirst && job.order !== 'next' && settings.reusePort !== true) await probe(settings)
        settings.reusePort = true
      }
      const server = await serveHere(settings as ServeOptions, board.isRunning)
      board.setMember(row, server.member)
      const started = new WorkerServer({
        server,
        close,
        worker,
        id: job.id,
        board,
        handlerMsMax,
        ownTls: sniOf(settings),
        shares,
      })
      if (board.isFollowing) server.follow()
      here.served.add(started)
      started.#send({ kind: 'serving', worker })
      // The command to stop may have been sent before this worker listened for it.
      if (board.isClosing) server.announceStop()
      if (board.isStopped) await started.stop(undefined)
      return started
    } catch (error) {
      board.setServing(row, false)
      throw error
    }
  }

  private constructor(parts: {
    readonly server: HttpServer
    readonly close: ModuleApp['close']
    readonly worker: string
    readonly id: string
    readonly board: Board
    readonly handlerMsMax: number
    readonly ownTls: Pick<TlsOptions, 'sni'>
    readonly shares: boolean
  }) {
    this.server = parts.server
    this.handlerMsMax = parts.handlerMsMax
    this.ownTls = parts.ownTls
    this.#close = parts.close
    this.#worker = parts.worker
    this.#id = parts.id
    this.#board = parts.board
    this.#shares = parts.shares
    this.#row = rowOf(parts.worker)
    this.#before = parts.board.read(this.#row)
    this.#channel = new BroadcastChannel(parts.id)
    this.#channel.addEventListener('message', (event) => {
      void this.#onCommand((event as unknown as { data: Command | WorkerMessage }).data)
    })
    this.#channel.unref()
    this.#rooms = new RoomRelay(parts.id, parts.board, this.#row)
    this.server.hub.relay = this.#rooms
    process.once('exit', this.#onExit)
  }

  async #onCommand(command: Command | WorkerMessage): Promise<void> {
    if (command.kind === 'stop') return this.stop(command.timeoutMs)
    if (command.kind === 'announce') return this.server.announceStop()
    if (command.kind === 'follow') return this.server.follow()
    if (command.kind === 'serving' || command.kind === 'failed')
      return command.worker === this.#worker ? this.#replaced?.() : undefined
    if (command.kind !== 'report') return // a message of another worker
    this.#report()
    this.#send({ kind: 'reported', worker: this.#worker })
  }

  get finishMs(): number {
    return REPLACED_MS + this.server.closeMs + CLOSE_EXTRA_MS
  }

  /** Not while the server stops; nor while too many finish their requests, where it goes on instead. */
  mayLeave(): boolean {
    if (this.#stopping !== undefined || !this.#board.isRunning) return false
    this.#left ??= this.#board.claim(threads().threadId)
    return this.#left !== undefined
  }

  get mark(): Mark | undefined {
    return this.#left?.mark
  }

  /** An error that no handler has caught. Its request is found from the second one on. */
  strayed(error: unknown): boolean {
    const isOfRequest = this.server.strayed(error)
    if (!this.#board.isFollowing) {
      this.#board.follow()
      this.server.follow()
      this.#channel.postMessage({ kind: 'follow' } satisfies Command)
    }
    return isOfRequest
  }

  /** Accepts until another worker serves under its name, if both can; then finishes the open requests. */
  async finish(): Promise<void> {
    this.#left ??= this.#board.claim(threads().threadId)
    this.#report()
    this.#board.setServing(this.#row, false)
    this.#rooms.leaveRow()
    this.#row = this.#left?.row ?? -1
    if (this.#row >= 0) {
      this.#before = this.#board.beforeFrom(this.#row, this.server.stats())
      this.#board.setMember(this.#row, this.server.member)
    }
    if (this.#shares && this.#board.isRunning) {
      const replaced = new Promise<void>((resolve) => (this.#replaced = resolve))
      const timer = setTimeout(() => this.#replaced?.(), REPLACED_MS)
      await replaced
      clearTimeout(timer)
    }
    return this.stop(undefined)
  }

  /**
   * Finish the open requests; an error of the app's `close` is reported to the thread that stops the server.
   * The command may arrive twice, by the board and by the channel; the app closes once.
   */
  stop(timeoutMs: number | undefined): Promise<void> {
    this.#replaced?.()
    return (this.#stopping ??= this.#stop(timeoutMs))
  }

  async #stop(timeoutMs: number | undefined): Promise<void> {
    let failure: string | undefined
    const closed = async (drained: Promise<void>): Promise<void> => {
      try {
        await this.#close?.(drained)
      } catch (error) {
        failure = reasonOf(error)
      }
    }
    // It stops accepting at once; meanwhile the app ends what would never end by itself.
    const options = timeoutMs === undefined ? {} : { timeoutMs }
    const drained = this.server.close({ ...options, delayMs: 0 })
    await Promise.all([drained, closed(drained)])
    process.off('exit', this.#onExit)
    serving.delete(this.#id)
    here.served.delete(this)
    this.#report()
    const message = { kind: 'stopped', worker: this.#worker } as const
    this.#send(failure === undefined ? message : { ...message, failure })
    this.#end()
    this.#rooms.close()
    this.#channel.close()
  }

  #send(message: WorkerMessage): void {
    this.#channel.postMessage(message)
  }

  #report(): void {
    const counted = { ...this.server.stats() }
    if (this.#row >= 0) this.#board.write(this.#row, this.#before, counted)
  }

  #end(): void {
    this.#rooms.flush()
    this.#report()
    if (this.#row >= 0) this.#board.setServing(this.#row, false)
  }
}

function sniOf({ tls }: Partial<ServeOptions>): Pick<TlsOptions, 'sni'> {
  return tls?.sni === undefined ? {} : { sni: tls.sni }
}

/**
 * With other workers, the one that replaces it, or the version after it. The adapter for node:http, the core
 * on Windows and of other runtimes, cannot.
 */
function sharesPort({ shares }: Job, { core }: Partial<ServeOptions>): boolean {
  const named = core ?? process.env.CORESPUN_HTTP_CORE
  return shares || (named !== 'node' && process.platform !== 'win32' && otherRuntime() === undefined)
}

/**
 * A port that workers share could be shared by other processes, too. Unless `reusePort` is set, the first
 * worker checks that the port is free.
 * @throws {HttpError} `HTTP_PORT_TAKEN`.
 */
async function probe({
  host = DEFAULT_HOST,
  port = DEFAULT_PORT,
  unixPath,
  fd,
}: Partial<ServeOptions>): Promise<void> {
  if (port === 0 || (unixPath ?? fd) !== undefined) return
  const server = createServer()
  try {
    server.listen({ host, port, exclusive: true })
    await once(server, 'listening')
  } catch (cause) {
    const where = `${host}:${port}`
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') return // listening reports it
    throw new HttpError('HTTP_PORT_TAKEN', { where }, { cause })
  }
  server.close()
  await once(server, 'close')
}
