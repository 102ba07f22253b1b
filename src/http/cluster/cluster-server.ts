/**
 * A server whose app runs in every worker of a zone: the side of the thread that starts it.
 *
 * All workers listen on the same port and the kernel distributes the connections. The broadcast that makes a
 * worker serve is replayed in workers that replace others. This thread handles no requests: it starts, counts
 * and stops.
 */
import { channel } from 'node:diagnostics_channel'
import { setTimeout as delay } from 'node:timers/promises'
import { BroadcastChannel } from 'node:worker_threads'
import { register, refuseClass } from '../../transport/internal.ts'
import { type Zone, zone as zones } from '../../zone/index.ts'
import { isThisThread, isZone, workerZoneOf } from '../../zone/internal.ts'
import { isClusterWorker } from '../core/cluster-worker.ts'
import { HttpError } from '../errors.ts'
import { closing } from '../message/closing.ts'
import { wrong } from '../message/limits.ts'
import { servingLine } from '../serving-line.ts'
import { type CloseOptions, parseClose } from '../app/settings.ts'
import type { TlsOptions } from '../message/tls-options.ts'
import type { JoinedRooms } from '../websocket/shared-rooms.ts'
import { checkRoom, payloadOf } from '../websocket/message.ts'
import { Board, type Counts, rowOf } from './board.ts'
import { begin, joinAll, WORKER_URL } from './begin.ts'
import { joinWorkers, RoomRelay } from './rooms.ts'
import type { ClusterSettings } from './cluster-settings.ts'
import { CHECK_MS, Supervisor } from './supervisor.ts'
import { type Job, type Command, type Listening, type VersionOrder, type WorkerMessage } from './protocol.ts'

register(HttpError, { cid: 'corespun.HttpError' })

const ENDED = channel('corespun:worker:ended')
/** How often a stop checks whether workers have died instead. */
const STOP_CHECK_MS = 20
/** Time beyond `timeoutMs` for workers to close and report it, with all cores busy. */
const STOP_EXTRA_MS = 3000
/** Time for a busy worker to report its counts. */
const REPORT_MS = 500

/** Counts of a server in a zone. Counts of a worker that died since its last report are missing. */
export interface ZoneServerStats extends Counts {
  /** The core that serves. */
  readonly core: 'native' | 'node'
  /** Workers that serve now. */
  readonly workers: number
  /** Times that a worker did not return to its event loop for a second while connections waited for it. */
  readonly stalls: number
  /** Of these, times that it was terminated and replaced: see `handlerMsMax`. */
  readonly replacements: number
  /** Counts of each worker, including those of the workers it replaced. */
  readonly byWorker: readonly (Counts & { readonly worker: string })[]
}

let lastId = 0

/** Serve in every worker; resolves when all of them do. @throws {HttpError} As `serve` and `HTTP_APP`. */
export async function serveInZone(cluster: ClusterSettings, order?: VersionOrder): Promise<ZoneServer> {
  const zone = zoneOf(cluster.zone)
  const shares = zone.settings.workers > 1
  if (shares && cluster.core === 'node')
    throw wrong(
      'serve(): core',
      "'native' in a zone of several workers: node:http does not share a port",
      'node',
    )
  const board = new Board()
  const id = `corespun.http.${process.pid}.${process.hrtime.bigint()}.${(lastId += 1)}`
  const { handlerMsMax } = cluster
  // Its workers are threads, which do not find out that their process is one of node:cluster.
  const settings = isClusterWorker() ? { reusePort: true, ...cluster.settings } : cluster.settings
  const job: Job = { id, source: cluster.source, settings, shares, order, handlerMsMax }
  const rooms = new RoomRelay(id, board, cluster.rooms === undefined ? -1 : zone.settings.workers)
  // Before any worker serves, so that nothing that one publishes is missed.
  const joined = cluster.rooms === undefined ? undefined : await joinWorkers(cluster.rooms, rooms)
  const listening = await begin(zone, job, board).catch(async (error: unknown) => {
    rooms.close()
    await joined?.leave()
    throw error
  })
  // All workers listen on the port of the first, also if the system has chosen it.
  const { port, sharedPort } = listening
  const nextJob =
    port === 0 || sharedPort === undefined
      ? job
      : ({ ...job, settings: { ...settings, port: sharedPort } } satisfies Job)
  const server = new ZoneServer({
    zone,
    board,
    id,
    listening,
    rooms,
    joined,
    app: cluster.source.app,
    closeMs: cluster.closeMs,
  })
  try {
    await joinAll(zone, nextJob, board.memory)
  } catch (error) {
    await server.close().catch(() => {}) // the first error is the one that matters
    throw error
  }
  board.run()
  if (!listening.quiet) console.error(servingLine(server.url, server.core, zone.settings.workers))
  return server
}

/**
 * @throws {HttpError} `HTTP_ARGUMENT` for a zone without workers that stay.
 * @throws {ZoneError} `ZONE_UNKNOWN`.
 */
function zoneOf(zoneOrName: ClusterSettings['zone']): Zone {
  const found: unknown = typeof zoneOrName === 'string' ? zones.get(zoneOrName) : zoneOrName
  if (isZone(found) && isThisThread(found))
    throw wrong('serve(): zone', 'a zone of workers; leave it out to serve here', found)
  const zone = workerZoneOf(found)
  if (zone === undefined) throw wrong('serve(): zone', 'a zone or the name of one', found)
  const { executor, workers, workersMax } = zone.settings
  const grows = workersMax > workers || executor === 'blocking' || executor === 'cached'
  if (!grows) return zone
  const expected = "one of the executor 'fixed' or 'work-stealing' whose number of workers does not change"
  throw wrong('serve(): zone', expected, executor)
}

interface ZoneServerParts {
  readonly zone: Zone
  readonly board: Board
  readonly id: string
  readonly listening: Listening
  readonly rooms: RoomRelay
  /** The rooms of other servers. */
  readonly joined: JoinedRooms | undefined
  /** The URL of its module. */
  readonly app: string
  readonly closeMs: number
}

/**
 * A running server whose app runs in the workers of a zone. `await using` closes it at the end of its block.
 *
 * @example
 * ```ts
 * import assert from 'node:assert'
 * import { serve } from 'corespun/http'
 * import { zone } from 'corespun/zone'
 *
 * const web = zone.create('web', { workers: 2 })
 * const app = 'data:text/javascript,export const routes = { "/": "Hello" }'
 * const server = await serve({ zone: web, app, port: 0 })
 * assert.equal(await (await fetch(server.url)).text(), 'Hello')
 * await server.close()
 * await web.close()
 * ```
 */
export class ZoneServer implements AsyncDisposable {
  readonly #parts: ZoneServerParts
  readonly #channel: BroadcastChannel
  readonly #rooms: Pick<RoomRelay, 'send'>
  readonly #supervisor: Supervisor
  /** Keeps the process alive, as a listener would. */
  readonly #alive: NodeJS.Timeout
  #closing: Promise<void> | undefined
  /** Handles errors of workers outside of tasks: the worker is replaced and the process continues. */
  readonly #stopListening: () => void
  /** Called with each message of a worker. */
  readonly #listeners = new Set<(message: WorkerMessage) => void>([(message) => this.#onFailed(message)])
  /** Why the last worker that failed could not serve. */
  #failure: string | undefined
  #onEnded!: (reason: string) => void
  readonly #ended = new Promise<string>((resolve) => (this.#onEnded = resolve))

  /** @internal */
  constructor(parts: ZoneServerParts) {
    this.#parts = parts
    const { zone, board, listening } = parts
    const { url, handlerMsMax } = listening
    this.#supervisor = new Supervisor({ board, url, handlerMsMax, shares: zone.settings.workers > 1 })
    this.#channel = new BroadcastChannel(parts.id)
    this.#rooms = parts.joined ?? parts.rooms
    this.#stopListening = parts.zone.onError((error, worker, ended) => {
      // A subscriber of corespun:worker:ended reports it.
      if (ended && ENDED.hasSubscribers) return
      console.error(`corespun/http: an error of worker ${worker} was not caught:`, error)
    })
    this.#channel.addEventListener('message', (event) => {
      for (const listener of this.#listeners) listener((event as unknown as { data: WorkerMessage }).data)
    })
    this.#channel.unref()
    this.#alive = setInterval(() => this.#check(), CHECK_MS)
  }

  /** The URL it serves: `http://127.0.0.1:3000`; `unix:/path` for a Unix socket. */
  get url(): string {
    return this.#parts.listening.url
  }

  /** The port that all workers listen on; 0 for a Unix socket. */
  get port(): number {
    return this.#parts.listening.port
  }

  /** The core that each worker uses. */
  get core(): 'native' | 'node' {
    return this.#parts.listening.core
  }

  /** The name of the zone. */
  get zone(): string {
    return this.#parts.zone.id
  }

  /**
   * Resolves with the reason when no worker is left to serve: the zone was closed, or workers died and their
   * replacements cannot serve, for example because the module does not load. Pending after `close`.
   */
  get ended(): Promise<string> {
    return this.#ended
  }

  /**
   * Replaces certificates and settings of TLS in all workers, also in later ones, for connections that
   * begin from now on. Without an argument, the files of the option `tls` are read again.
   * @throws {HttpError} As `setTls` of a server in one thread; `HTTP_ARGUMENT` for `sni`, which the app
   *   module has.
   * @throws {ZoneError} `ZONE_BROADCASTS_FULL`, `ZONE_CLOSED`.
   */
  async setTls(options?: TlsOptions): Promise<void> {
    const { zone, id } = this.#parts
    const { setTlsCall } = await import('../tls/sendable.ts')
    await zone.broadcast(setTlsCall(WORKER_URL, id, options))
  }

  /** The counts of all workers; for a worker that does not report within 500 ms, those of its last report. */
  async stats(): Promise<ZoneServerStats> {
    const { board } = this.#parts
    if (this.#closing === undefined) await this.#asked({ kind: 'report' }, 'reported', REPORT_MS)
    const workers = this.#serving()
    const total = board.total([...workers.map(rowOf), ...board.left()])
    return {
      ...total,
      cut: total.cut + this.#supervisor.cut,
      core: this.core,
      workers: workers.length,
      stalls: this.#supervisor.stalls,
      replacements: this.#supervisor.replacements,
      byWorker: workers.map((worker) => ({ worker, ...board.read(rowOf(worker)) })),
    }
  }

  /**
   * Sends a message to all WebSockets in a room, in every worker; does nothing after the server has closed.
   * @throws {HttpError} `HTTP_ARGUMENT` for a value that is neither text nor bytes; `HTTP_ROOMS_FULL` if a
   *   worker is too busy to receive more.
   */
  publish(room: string, message: string | ArrayBuffer | ArrayBufferView): void {
    checkRoom(room, 'server.publish()')
    const given = payloadOf(message, 'server.publish()')
    if (this.#closing === undefined) this.#rooms.send(room, given)
  }

  /**
   * Stops accepting in every worker, after `delayMs`, finishes the open requests and closes the
   * connections. A second call waits for the first.
   * @throws {HttpError} `HTTP_ARGUMENT` for invalid options; `HTTP_CLOSE_TIMEOUT` when a worker is
   *   busy with something that does not return to its loop; `HTTP_APP` when the app's `close` failed.
   */
  close(options: CloseOptions = {}): Promise<void> {
    const { timeoutMs, delayMs } = parseClose(options, this.#parts.closeMs)
    const cut = async (): Promise<number> => (await this.stats()).cut
    return (this.#closing ??= closing(this.url, { timeoutMs, delayMs }, cut, () =>
      this.#close(timeoutMs, delayMs),
    ))
  }

  /** As {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(timeoutMs: number, delayMs: number): Promise<void> {
    if (delayMs > 0) {
      this.#parts.board.announceStop()
      this.#channel.postMessage({ kind: 'announce' } satisfies Command)
      await delay(delayMs)
    }
    this.#parts.board.stop()
    this.#supervisor.stop(this.#serving())
    try {
      const { left, failure } = await this.#asked(
        { kind: 'stop', timeoutMs },
        'stopped',
        timeoutMs + STOP_EXTRA_MS,
      )
      this.#supervisor.stop(left, true)
      if (left.length > 0) {
        this.#watchLeft()
        throw new HttpError('HTTP_CLOSE_TIMEOUT', { timeoutMs, workers: left })
      }
      if (failure !== undefined)
        throw new HttpError('HTTP_APP', { app: this.#parts.app, reason: `close() failed: ${failure}` })
    } finally {
      await this.#parts.joined?.leave()
      this.#release()
    }
  }

  /** Workers that did not stop in time are still terminated after `handlerMsMax`; nothing waits for that. */
  #watchLeft(): void {
    const timer = setInterval(() => {
      const left = this.#serving()
      if (left.length === 0) clearInterval(timer)
      else this.#supervisor.check(left)
    }, CHECK_MS)
    timer.unref()
  }

  /** Send a command to all workers and wait for their messages; workers that die meanwhile send none. */
  async #asked(
    command: Command,
    kind: WorkerMessage['kind'],
    timeoutMs: number,
  ): Promise<{ left: readonly string[]; failure: string | undefined }> {
    const done = new Set<string>()
    let failure: string | undefined
    const isStop = kind === 'stopped'
    // A worker sends that it has stopped before the board shows it, and `stats` reads the board.
    const isDone = (worker: string): boolean => !isStop && done.has(worker)
    const { zone, board } = this.#parts
    const leaving = (): string[] => board.left().map((row) => `${zone.id}/${row}`)
    const left = (): string[] =>
      [...this.#serving(), ...(isStop ? leaving() : [])].filter((worker) => !isDone(worker))
    const late = performance.now() + timeoutMs
    await new Promise<void>((resolve) => {
      const check = (): void => {
        if (left().length > 0 && performance.now() < late) return
        clearInterval(timer)
        // The board may show the end of a worker before the message it sent earlier is delivered.
        setImmediate(() => {
          this.#listeners.delete(listener)
          resolve()
        })
      }
      const listener = (message: WorkerMessage): void => {
        if (message.kind !== kind) return
        failure ??= message.failure
        done.add(message.worker)
        check()
      }
      this.#listeners.add(listener)
      const timer = setInterval(check, STOP_CHECK_MS)
      this.#channel.postMessage(command)
    })
    return { left: left(), failure }
  }

  /** The workers that serve now. */
  #serving(): string[] {
    const { zone, board } = this.#parts
    const names = zone.stats().byWorker.map(({ worker }) => worker)
    return names.filter((worker) => board.isServing(rowOf(worker)))
  }

  /** The zone may have been closed elsewhere. */
  #check(): void {
    const { zone, board } = this.#parts
    this.#supervisor.check(this.#serving())
    const workers = zone.stats().byWorker
    const isLeft = workers.some(({ worker }) => !board.hasFailed(rowOf(worker)))
    if (isLeft || this.#closing !== undefined) return
    const reason = workers.length === 0 ? `the zone ${zone.id} has no workers` : this.#failure
    // The board shows a failure before its message arrives; `#onFailed` then checks again.
    if (reason === undefined) return
    board.stop()
    this.#closing = this.#parts.joined?.leave() ?? Promise.resolve()
    this.#release()
    process.emitWarning(`no worker serves ${this.url} any more: ${reason}`)
    this.#onEnded(reason)
  }

  /** Warns in this thread: output of a worker is lost if the process exits because of it. */
  #onFailed({ kind, worker, failure }: WorkerMessage): void {
    if (kind !== 'failed') return
    process.emitWarning(`${worker} does not serve: ${failure}`)
    this.#failure = failure
    this.#check()
  }

  #release(): void {
    clearInterval(this.#alive)
    this.#stopListening()
    this.#parts.rooms.close()
    this.#channel.close()
  }
}

refuseClass(ZoneServer, 'a server belongs to its thread; send its url')
