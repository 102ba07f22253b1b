/**
 * The part of a zone's server in each worker: the app with a listener of its own.
 *
 * A broadcast starts it, so workers that replace others serve, too. A worker serves an app once, however
 * often it is asked, and receives the command to stop on a channel, because a broadcast would wait for the
 * task that the worker runs.
 */
import { createServer } from 'node:net'
import { BroadcastChannel } from 'node:worker_threads'
import { once } from 'node:events'
import { assert, reasonOf } from '../../base/index.ts'
import { register } from '../../transport/internal.ts'
import { currentTask } from '../../zone/index.ts'
import { HttpError } from '../errors.ts'
import { type HttpServer, serveHere } from '../server.ts'
import { DEFAULT_HOST, DEFAULT_PORT, type ServeOptions } from '../settings.ts'
import type { TlsOptions } from '../tls/options.ts'
import { wrong } from '../limits.ts'
import { loadApp, type ModuleApp } from './app-module.ts'
import { Board, type Counts, rowOf } from './board.ts'
import { RoomRelay } from './rooms.ts'
import { HANDLER_MS_MAX, parseHandlerMsMax } from './settings.ts'
import {
  INVITATIONS,
  type Invitation,
  type Job,
  type Command,
  type Listening,
  type WorkerMessage,
} from './protocol.ts'

register(HttpError, { cid: 'corespun.HttpError' })

const serving = new Map<string, Promise<WorkerServer>>()

/**
 * Serve in this worker, the first one; rejects with an error that all workers would have.
 * @throws {HttpError} As `serve`, and `HTTP_APP`.
 */
export async function beginHere(job: Job, memory: SharedArrayBuffer): Promise<Listening> {
  const { worker } = currentTask()!
  const { server, handlerMsMax } = await serverOf({ job, memory, worker, isFirst: true })
  const { url, port, sharedPort, closeDelayMs, quiet } = server
  return { url, port, sharedPort, closeDelayMs, core: server.stats().core, handlerMsMax, quiet }
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

class WorkerServer {
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
  /** The counts of the worker it replaces. */
  readonly #before: Counts
  readonly #onExit = (): void => this.#end()
  #stopping: Promise<void> | undefined

  static async begin({ job, memory, worker, isFirst }: Asked): Promise<WorkerServer> {
    const board = new Board(memory)
    const row = rowOf(worker)
    board.setServing(row, true)
    try {
      const { close, handlerMsMax: ofApp, ...app } = await loadApp(job.source)
      const handlerMsMax = job.handlerMsMax ?? parseHandlerMsMax(ofApp) ?? HANDLER_MS_MAX
      const settings = { ...app, ...job.settings }
      if (settings.rooms !== undefined)
        throw wrong('serve(): rooms', 'the app module: pass it to serve(), once for all workers', 'rooms', {
          verb: 'cannot be exported from',
        })
      if (sharesPort(job, settings)) {
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
      })
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
  }) {
    this.server = parts.server
    this.handlerMsMax = parts.handlerMsMax
    this.ownTls = parts.ownTls
    this.#close = parts.close
    this.#worker = parts.worker
    this.#id = parts.id
    this.#board = parts.board
    this.#before = parts.board.read(rowOf(parts.worker))
    this.#channel = new BroadcastChannel(parts.id)
    this.#channel.addEventListener('message', (event) => {
      void this.#onCommand((event as unknown as { data: Command }).data)
    })
    this.#channel.unref()
    this.#rooms = new RoomRelay(parts.id, parts.board, rowOf(parts.worker))
    this.server.hub.relay = this.#rooms
    process.once('exit', this.#onExit)
  }

  async #onCommand(command: Command): Promise<void> {
    if (command.kind === 'stop') return this.stop(command.timeoutMs)
    if (command.kind === 'announce') return this.server.announceStop()
    if (command.kind !== 'report') return // a message of another worker
    this.#report()
    this.#send({ kind: 'reported', worker: this.#worker })
  }

  /**
   * Finish the open requests; an error of the app's `close` is reported to the thread that stops the server.
   * The command may arrive twice, by the board and by the channel; the app closes once.
   */
  stop(timeoutMs: number | undefined): Promise<void> {
    return (this.#stopping ??= this.#stop(timeoutMs))
  }

  async #stop(timeoutMs: number | undefined): Promise<void> {
    let failure: string | undefined
    const closed = async (): Promise<void> => {
      try {
        await this.#close?.()
      } catch (error) {
        failure = reasonOf(error)
      }
    }
    // It stops accepting at once; meanwhile the app ends what would never end by itself.
    const options = timeoutMs === undefined ? {} : { timeoutMs }
    await Promise.all([this.server.close({ ...options, delayMs: 0 }), closed()])
    process.off('exit', this.#onExit)
    serving.delete(this.#id)
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
    this.#board.write(rowOf(this.#worker), this.#before, counted)
  }

  #end(): void {
    this.#rooms.flush()
    this.#report()
    this.#board.setServing(rowOf(this.#worker), false)
  }
}

function sniOf({ tls }: Partial<ServeOptions>): Pick<TlsOptions, 'sni'> {
  return tls?.sni === undefined ? {} : { sni: tls.sni }
}

/** With workers, or with the version after it. The adapter for node:http, the core on Windows, cannot. */
function sharesPort({ shares, order }: Job, { core }: Partial<ServeOptions>): boolean {
  return shares || (order !== undefined && core !== 'node' && process.platform !== 'win32')
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
