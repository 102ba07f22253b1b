/**
 * A server whose app runs in every worker of a zone, as the thread that started it sees it.
 *
 * Each worker listens on the same port and the kernel spreads the connections; a worker that replaces one
 * which died serves as soon as it has started, because what made the others serve is replayed in it. This
 * thread carries no request: it begins, counts and ends.
 */
import { channel } from 'node:diagnostics_channel'
import { BroadcastChannel } from 'node:worker_threads'
import { register } from '../../transport/index.ts'
import { type Task, type Zone, zone as zones } from '../../zone/index.ts'
import { isThisThread, isZone, workerZoneOf } from '../../zone/internal.ts'
import { HttpError } from '../errors.ts'
import { wrong } from '../limits.ts'
import type { StopOptions } from '../server.ts'
import { parseDrainMs } from '../settings.ts'
import { Board, type Counts, rowOf } from './board.ts'
import type { ZoneSettings } from './settings.ts'
import { LOOK_MS, Supervisor } from './supervisor.ts'
import { INVITATIONS, type Job, type Order, type Place, type Word } from './protocol.ts'

register(HttpError, { cid: 'corespun.HttpError' })

const WORKER_URL = new URL('./worker.js', import.meta.url).href
const ENDED = channel('corespun.worker.ended')
/** How often it is looked whether those that stop have died instead. */
const STOP_LOOK_MS = 20
/** What stopping may take beyond `drainMs`. */
const STOP_EXTRA_MS = 1000
/** How long a busy worker is waited for when its counts are asked for. */
const REPORT_MS = 500

/** What a server in a zone has counted; what died with a worker since it was last asked for is missing. */
export interface ZoneServerStats extends Counts {
  readonly core: 'native' | 'node'
  /** Workers that serve now. */
  readonly workers: number
  /** Times that a worker did not return to its event loop for a second while connections waited for it. */
  readonly stalls: number
  /** Of these, times that it was ended and replaced: see `handlerMsMax`. */
  readonly replacements: number
  /** Each of them, with those before it in its place. */
  readonly byWorker: readonly (Counts & { readonly worker: string })[]
}

let lastId = 0

/** Serve in every worker; resolves when all of them do. @throws {HttpError} As `serve` and `HTTP_APP`. */
export async function serveInZone(given: ZoneSettings): Promise<ZoneServer> {
  const zone = zoneOf(given.zone)
  const shares = zone.settings.workers > 1
  if (shares && given.core === 'node')
    throw wrong(
      'serve(): core',
      "'native' in a zone of several workers: node:http does not share a port",
      'node',
    )
  const board = new Board()
  const id = `corespun.http.${process.pid}.${process.hrtime.bigint()}.${(lastId += 1)}`
  const { settings, handlerMsMax } = given
  const job: Job = { id, source: given.source, settings, shares, handlerMsMax }
  const begun = await zone.execute(WORKER_URL, 'beginHere', [job, board.memory])
  const place = begun.value as Place
  // The port of the first is that of all, also where the system chose it.
  const joined =
    place.port === 0 ? job : ({ ...job, settings: { ...settings, port: place.port } } satisfies Job)
  const server = new ZoneServer({ zone, board, id, place, app: given.source.app, drainMs: given.drainMs })
  try {
    await joinAll(zone, joined, board.memory)
  } catch (error) {
    await server.stop().catch(() => {}) // the first error is the one that matters
    throw error
  }
  board.run()
  return server
}

/**
 * Have every worker serve, and each that comes later. Two broadcasts: a function can bring memory along and
 * code can import (an `import()` of TypeScript's output calls a helper of its file, and such a function
 * cannot travel).
 */
async function joinAll(zone: Zone, job: Job, memory: SharedArrayBuffer): Promise<void> {
  const left = zone.broadcast(leaveThere, [INVITATIONS, job, memory])
  const id = JSON.stringify(job.id)
  const call = `import(${JSON.stringify(WORKER_URL)}).then((module) => module.joinHere(${id}))`
  await Promise.all([left, zone.broadcast(call)])
}

/** Runs in the workers: leaves where `joinHere` finds it what it needs. */
function leaveThere(this: Task, key: string, job: Job, memory: SharedArrayBuffer): void {
  const there = globalThis as unknown as Record<symbol, Map<string, unknown>>
  const invitations = (there[Symbol.for(key)] ??= new Map())
  invitations.set(job.id, { job, memory, worker: this.worker })
}

/**
 * @throws {HttpError} `HTTP_ARGUMENT` for a zone without workers that stay.
 * @throws {ZoneError} `ZONE_UNKNOWN`.
 */
function zoneOf(given: ZoneSettings['zone']): Zone {
  const asked: unknown = typeof given === 'string' ? zones.get(given) : given
  if (isZone(asked) && isThisThread(asked))
    throw wrong('serve(): zone', 'a zone of workers; leave it out to serve here', asked)
  const zone = workerZoneOf(asked)
  if (zone === undefined) throw wrong('serve(): zone', 'a zone or the name of one', asked)
  const { executor } = zone.settings
  if (executor === 'fixed' || executor === 'work-stealing') return zone
  throw wrong('serve(): zone', "one of the executor 'fixed' or 'work-stealing', whose workers stay", executor)
}

interface ZoneServerParts {
  readonly zone: Zone
  readonly board: Board
  readonly id: string
  readonly place: Place
  /** The URL of its module. */
  readonly app: string
  readonly drainMs: number
}

/**
 * A running server whose app lives in the workers of a zone. `await using` stops it at the end of its block.
 */
export class ZoneServer implements AsyncDisposable {
  readonly #parts: ZoneServerParts
  readonly #channel: BroadcastChannel
  readonly #supervisor: Supervisor
  /** Keeps the process alive, as a listener would. */
  readonly #alive: NodeJS.Timeout
  #stopping: Promise<void> | undefined
  /** An error in a serving worker outside of tasks costs that worker, which is replaced, not the process. */
  readonly #unheard: () => void
  /** Told each word of a worker. */
  readonly #ears = new Set<(word: Word) => void>([(word) => this.#onFailed(word)])
  /** Why the last worker that could not serve could not. */
  #failure: string | undefined
  #onGone!: (reason: string) => void
  readonly #gone = new Promise<string>((resolve) => (this.#onGone = resolve))

  /** Made by `serve`. */
  constructor(parts: ZoneServerParts) {
    this.#parts = parts
    const { zone, board, place } = parts
    const { url, handlerMsMax } = place
    this.#supervisor = new Supervisor({ board, url, handlerMsMax, shares: zone.settings.workers > 1 })
    this.#channel = new BroadcastChannel(parts.id)
    this.#unheard = parts.zone.onError((error, worker, ended) => {
      // Who listens to the ends of workers reports it.
      if (ended && ENDED.hasSubscribers) return
      console.error(`corespun/http: an error of worker ${worker} was not caught:`, error)
    })
    this.#channel.addEventListener('message', (event) => {
      for (const hear of this.#ears) hear((event as unknown as { data: Word }).data)
    })
    this.#channel.unref()
    this.#alive = setInterval(() => this.#look(), LOOK_MS)
  }

  /** Where it answers: `http://127.0.0.1:3000`; `unix:/path` for a socket of the file system. */
  get url(): string {
    return this.#parts.place.url
  }

  /** The port all workers listen on; 0 on a path. */
  get port(): number {
    return this.#parts.place.port
  }

  /** What carries it in each worker. */
  get core(): 'native' | 'node' {
    return this.#parts.place.core
  }

  /** The name of the zone. */
  get zone(): string {
    return this.#parts.zone.id
  }

  /**
   * Resolves with the reason when nobody is left to serve: the zone has ended, or its workers died and those
   * in their place cannot serve, say because the module does not load any more. Pending after `stop`.
   */
  get gone(): Promise<string> {
    return this.#gone
  }

  /** What all workers have counted so far; of one that is too busy to say, what it said last. */
  async stats(): Promise<ZoneServerStats> {
    const { board } = this.#parts
    if (this.#stopping === undefined) await this.#asked({ kind: 'report' }, 'reported', REPORT_MS)
    const workers = this.#serving()
    const total = board.total(workers.map(rowOf))
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
   * Stop accepting in every worker, finish what was accepted, close. A second call waits for the first.
   * @throws {HttpError} `HTTP_ARGUMENT` for a `drainMs` that is no time; `HTTP_STOP_TIMEOUT` when a worker is
   *   busy with something that does not return to its loop; `HTTP_APP` when the app's `close` failed.
   */
  stop(options: StopOptions = {}): Promise<void> {
    const patience = parseDrainMs(options, this.#parts.drainMs)
    return (this.#stopping ??= this.#stop(patience))
  }

  /** As {@link stop}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #stop(drainMs: number): Promise<void> {
    this.#parts.board.stop()
    this.#supervisor.stop(this.#serving())
    try {
      const { left, failure } = await this.#asked(
        { kind: 'stop', drainMs },
        'stopped',
        drainMs + STOP_EXTRA_MS,
      )
      this.#supervisor.stop(left, true)
      if (left.length > 0) {
        this.#watchLeft()
        throw new HttpError('HTTP_STOP_TIMEOUT', { drainMs, workers: left })
      }
      if (failure !== undefined)
        throw new HttpError('HTTP_APP', { app: this.#parts.app, reason: `close() failed: ${failure}` })
    } finally {
      this.#release()
    }
  }

  /** Workers that did not stop in time are still ended after `handlerMsMax`; nothing waits for that. */
  #watchLeft(): void {
    const timer = setInterval(() => {
      const left = this.#serving()
      if (left.length === 0) clearInterval(timer)
      else this.#supervisor.look(left)
    }, LOOK_MS)
    timer.unref()
  }

  /** Tell all workers and wait for their word; those that die meanwhile have none. */
  async #asked(
    order: Order,
    kind: Word['kind'],
    patienceMs: number,
  ): Promise<{ left: readonly string[]; failure: string | undefined }> {
    const done = new Set<string>()
    let failure: string | undefined
    const left = (): string[] => this.#serving().filter((worker) => !done.has(worker))
    const late = performance.now() + patienceMs
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (left().length > 0 && performance.now() < late) return
        clearInterval(timer)
        // The board may show the end of a worker before its word, which was sent first, is delivered.
        setImmediate(() => {
          this.#ears.delete(hear)
          resolve()
        })
      }
      const hear = (word: Word): void => {
        if (word.kind !== kind) return
        failure ??= word.failure
        done.add(word.worker)
        look()
      }
      this.#ears.add(hear)
      const timer = setInterval(look, STOP_LOOK_MS)
      this.#channel.postMessage(order)
    })
    return { left: left(), failure }
  }

  /** The workers of this moment that serve. */
  #serving(): string[] {
    const { zone, board } = this.#parts
    const names = zone.stats().byWorker.map(({ worker }) => worker)
    return names.filter((worker) => board.isServing(rowOf(worker)))
  }

  /** The zone may have been closed, or have come to its end, by others. */
  #look(): void {
    const { zone, board } = this.#parts
    this.#supervisor.look(this.#serving())
    const workers = zone.stats().byWorker
    const isLeft = workers.some(({ worker }) => !board.hasFailed(rowOf(worker)))
    if (isLeft || this.#stopping !== undefined) return
    const reason = workers.length === 0 ? `the zone ${zone.id} has no workers` : this.#failure
    // The board tells sooner than the word that says why, and with that this is looked at again.
    if (reason === undefined) return
    board.stop()
    this.#stopping = Promise.resolve()
    this.#release()
    process.emitWarning(`nobody serves ${this.url} any more: ${reason}`)
    this.#onGone(reason)
  }

  /** Told by this thread: what a worker writes itself is lost when the process ends because of it. */
  #onFailed({ kind, worker, failure }: Word): void {
    if (kind !== 'failed') return
    process.emitWarning(`${worker} does not serve: ${failure}`)
    this.#failure = failure
    this.#look()
  }

  #release(): void {
    clearInterval(this.#alive)
    this.#unheard()
    this.#channel.close()
  }
}
