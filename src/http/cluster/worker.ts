/**
 * The part of a zone's server that lives in each worker: the app behind a listener of its own.
 *
 * What all workers share comes with a broadcast, so workers that replace others serve too. A worker serves an
 * app once, however often it is asked, and hears of the end by a channel: a task that it runs meanwhile would
 * keep a second broadcast waiting.
 */
import { createServer } from 'node:net'
import { BroadcastChannel } from 'node:worker_threads'
import { once } from 'node:events'
import { assert, reasonOf } from '../../base/index.ts'
import { register } from '../../transport/index.ts'
import { currentTask } from '../../zone/index.ts'
import { HttpError } from '../errors.ts'
import { type HttpServer, serveHere } from '../server.ts'
import { DEFAULT_HOST, DEFAULT_PORT, type ServeOptions } from '../settings.ts'
import { loadApp, type ModuleApp } from './app-module.ts'
import { Board, type Counts, rowOf } from './board.ts'
import { HANDLER_MS_MAX, parseHandlerMsMax } from './settings.ts'
import { INVITATIONS, type Invitation, type Job, type Order, type Place, type Word } from './protocol.ts'

register(HttpError, { cid: 'corespun.HttpError' })

const serving = new Map<string, Promise<Life>>()

/**
 * Serve in this worker, the first one: rejects with what keeps all of them from it.
 * @throws {HttpError} As `serve`, and `HTTP_APP`.
 */
export async function beginHere(job: Job, memory: SharedArrayBuffer): Promise<Place> {
  const { worker } = currentTask()!
  const { server, handlerMsMax } = await lifeOf({ job, memory, worker, isFirst: true })
  return { url: server.url, port: server.port, core: server.stats().core, handlerMsMax }
}

/**
 * Serve in this worker too, now or when it replaces another; the broadcast before has left an invitation.
 * @throws {HttpError} As {@link beginHere}.
 */
export async function joinHere(id: string): Promise<void> {
  const { job, memory, worker } = invitationTo(id)
  const board = new Board(memory)
  if (board.isStopped) return board.setServing(rowOf(worker), false) // also for the one that it replaces
  try {
    await lifeOf({ job, memory, worker, isFirst: false })
  } catch (error) {
    // One that replaces another has nobody who waits for it.
    if (board.isRunning) failed(job.id, board, worker, reasonOf(error))
    throw error
  }
}

/** Say that this worker, which goes on for the zone's other tasks, serves nobody. */
function failed(id: string, board: Board, worker: string, failure: string): void {
  const row = rowOf(worker)
  board.setFailed(row)
  process.once('exit', () => board.setServing(row, false)) // whoever replaces it has not failed yet
  const channel = new BroadcastChannel(id)
  channel.postMessage({ kind: 'failed', worker, failure } satisfies Word)
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

function lifeOf(asked: Asked): Promise<Life> {
  const { id } = asked.job
  let life = serving.get(id)
  if (life === undefined) {
    life = Life.begin(asked)
    serving.set(id, life)
    life.catch(() => serving.delete(id)) // the caller hears why
  }
  return life
}

/** This worker's serving of one app. */
class Life {
  readonly server: HttpServer
  readonly handlerMsMax: number
  readonly #close: ModuleApp['close']
  readonly #worker: string
  readonly #id: string
  readonly #board: Board
  readonly #channel: BroadcastChannel
  /** What the worker before it had counted. */
  readonly #before: Counts
  readonly #onExit = (): void => this.#end()
  #stopping: Promise<void> | undefined

  static async begin({ job, memory, worker, isFirst }: Asked): Promise<Life> {
    const board = new Board(memory)
    const row = rowOf(worker)
    board.setServing(row, true)
    try {
      const { close, handlerMsMax: ofApp, ...app } = await loadApp(job.source)
      const handlerMsMax = job.handlerMsMax ?? parseHandlerMsMax(ofApp) ?? HANDLER_MS_MAX
      const settings = { ...app, ...job.settings }
      if (isFirst && job.shares && settings.reusePort !== true) await probe(settings)
      if (job.shares) settings.reusePort = true
      const server = await serveHere(settings as ServeOptions)
      board.setMember(row, server.member)
      const life = new Life({ server, close, worker, id: job.id, board, handlerMsMax })
      // The order to stop may have come while nobody listened for it.
      if (board.isStopped) await life.stop(undefined)
      return life
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
  }) {
    this.server = parts.server
    this.handlerMsMax = parts.handlerMsMax
    this.#close = parts.close
    this.#worker = parts.worker
    this.#id = parts.id
    this.#board = parts.board
    this.#before = parts.board.read(rowOf(parts.worker))
    this.#channel = new BroadcastChannel(parts.id)
    this.#channel.addEventListener('message', (event) => {
      void this.#obey((event as unknown as { data: Order }).data)
    })
    this.#channel.unref()
    process.once('exit', this.#onExit)
  }

  async #obey(order: Order): Promise<void> {
    if (order.kind === 'stop') return this.stop(order.drainMs)
    if (order.kind !== 'report') return // a word of another worker
    this.#report()
    this.#say({ kind: 'reported', worker: this.#worker })
  }

  /**
   * Finish what was accepted; what goes wrong in the app's `close` is told to who asked. The order may come
   * twice, by the board and by the channel; the app closes once.
   */
  stop(drainMs: number | undefined): Promise<void> {
    return (this.#stopping ??= this.#stop(drainMs))
  }

  async #stop(drainMs: number | undefined): Promise<void> {
    let failure: string | undefined
    const closed = async (): Promise<void> => {
      try {
        await this.#close?.()
      } catch (error) {
        failure = reasonOf(error)
      }
    }
    // It stops accepting at once; the app ends what would go on for ever meanwhile.
    await Promise.all([this.server.stop(drainMs === undefined ? {} : { drainMs }), closed()])
    process.off('exit', this.#onExit)
    serving.delete(this.#id)
    this.#report()
    const word = { kind: 'stopped', worker: this.#worker } as const
    this.#say(failure === undefined ? word : { ...word, failure })
    this.#end()
    this.#channel.close()
  }

  #say(word: Word): void {
    this.#channel.postMessage(word)
  }

  #report(): void {
    const counted = { ...this.server.stats() }
    this.#board.write(rowOf(this.#worker), this.#before, counted)
  }

  #end(): void {
    this.#report()
    this.#board.setServing(rowOf(this.#worker), false)
  }
}

/**
 * What the workers share among themselves they would share with other processes too. Unless that is wanted,
 * the first of them asks plainly whether the port is free.
 * @throws {HttpError} `HTTP_PORT_TAKEN`.
 */
async function probe({
  host = DEFAULT_HOST,
  port = DEFAULT_PORT,
  unixPath,
}: Partial<ServeOptions>): Promise<void> {
  if (port === 0 || unixPath !== undefined) return
  const server = createServer()
  try {
    server.listen({ host, port, exclusive: true })
    await once(server, 'listening')
  } catch (cause) {
    const where = `${host}:${port}`
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') return // listening itself will say
    throw new HttpError('HTTP_PORT_TAKEN', { where }, { cause })
  }
  server.close()
  await once(server, 'close')
}
