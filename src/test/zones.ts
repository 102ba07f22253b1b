/**
 * Zones whose workers are tasks of a run: calls wait for a worker, get copies of their arguments, are
 * interleaved at every wait, and are lost when their worker dies, or the task that has created the zone.
 *
 * A function runs here as it is written, in this thread: what it captures is not refused, and its module has
 * one state for all workers.
 */
import { integer, optionsOf } from '../base/index.ts'
import { decode, encode } from '../transport/index.ts'
import { ZoneError } from '../zone/index.ts'
import { deathReason, exitReason } from '../zone/internal.ts'
import { wrong } from './errors.ts'
import { share } from './options.ts'
import type { Actor, Play, Wait } from './play.ts'
import { Job } from './tasks.ts'

/** Options of a zone of a {@link World}. */
export interface SeededZoneOptions {
  /** How many calls run at once; default 2. */
  readonly workers?: number
  /** How likely a worker dies at each wait of its call, from 0 to 1; the seed chooses how. Default 0. */
  readonly deaths?: number
}

/** How a worker ends: `process.exit(1)`, a heap beyond `heapMbMax`, or SIGKILL to one that is a process. */
export type WorkerDeath = 'exit' | 'memory' | 'signal'

const KINDS = { workers: integer(1, 1024, 2), deaths: share(0) }
/** One that runs a call. */
interface Worker {
  readonly slot: number
  how: WorkerDeath | undefined
}

const DEATHS: readonly WorkerDeath[] = ['exit', 'memory', 'signal']

/** A zone in a run. */
export interface SeededZone {
  /** The one that it was created with. */
  readonly id: string
  /** Calls `fn` in a worker. @throws what it throws; {@link ZoneError} `WORKER_DIED`, `ZONE_OWNER_DIED`. */
  run<Args extends unknown[], Value>(fn: (...args: Args) => Value, ...args: Args): Promise<Awaited<Value>>
  /** As `run`, with the arguments as a list. */
  execute<Args extends unknown[], Value>(
    fn: (...args: Args) => Value,
    args?: readonly [...Args],
  ): Promise<Awaited<Value>>
  /** Calls `fn` for each item; the results are in the order of the items. */
  map<Item, Value>(items: Iterable<Item>, fn: (item: Item) => Value): Promise<Awaited<Value>[]>
  /** Kills the worker of the call that runs for longest; false if none runs. @param how Default: by seed. */
  killWorker(how?: WorkerDeath): boolean
}

export function zoneOf(play: Play, id: string, options: SeededZoneOptions | undefined): SeededZone {
  const { workers, deaths } = optionsOf(options ?? {}, KINDS, wrong, 'zone.create()')
  const owner = play.actor('zone.create()')
  const waiting: { readonly actor: Actor; readonly wait: Wait<void> }[] = []
  const running = new Map<Job<unknown>, Worker>()
  const free = Array.from({ length: workers }, (_, slot) => slot)
  const orphaned = (): ZoneError => new ZoneError('ZONE_OWNER_DIED', { zone: id })
  owner.whenDead(() => waiting.splice(0).forEach(({ wait }) => wait.reject(orphaned())))
  /** Let the next call go on, if a worker is free. */
  const wake = (): void => {
    let next = free.length > 0 ? waiting.shift() : undefined
    while (next?.actor.isDead) next = waiting.shift()
    next?.wait.resolve()
  }
  const leave = (job: Job<unknown>): void => {
    const worker = running.get(job)
    if (!running.delete(job)) return
    free.push(worker!.slot)
    wake()
  }
  const execute = async <Args extends unknown[], Value>(
    fn: (...args: Args) => Value,
    args?: readonly [...Args],
  ): Promise<Awaited<Value>> => {
    const call = `${id}.${fn.name || 'run'}()`
    const actor = play.actor(call)
    const copies = decode(encode(args ?? [])) as Args
    await actor.step(call)
    while (free.length === 0 && !owner.isDead) {
      const wait = play.wait<void>(actor, `a worker of ${id}`)
      waiting.push({ actor, wait })
      // It may die after it has been woken, before it goes on.
      const survived = actor.whenDead(wake)
      await wait.promise
      survived()
    }
    if (owner.isDead) throw orphaned()
    const worker: Worker = { slot: free.shift()!, how: undefined }
    const job: Job<Uint8Array> = new Job(play, owner, call, async () => {
      try {
        return encode(await fn(...copies))
      } finally {
        leave(job)
      }
    })
    running.set(job, worker)
    job.actor.deaths = deaths
    job.actor.whenDead(() => leave(job))
    try {
      return decode(await job.join()) as Awaited<Value>
    } catch (error) {
      if (!job.actor.isDead) throw error
      throw owner.isDead ? orphaned() : died(id, worker, job.actor)
    }
  }
  return {
    id,
    run: (fn, ...args) => execute(fn, args),
    execute,
    map: (items, fn) => Promise.all([...items].map((item) => execute(fn, [item]))),
    killWorker(how) {
      const expected = "'exit', 'memory' or 'signal'"
      if (how !== undefined && !DEATHS.includes(how)) throw wrong('killWorker()', expected, how)
      const [[job, worker] = []] = running
      if (worker !== undefined) worker.how = how
      job?.kill()
      return job !== undefined
    },
  }
}

/** As a zone reports it. */
function died(zone: string, { slot, how: chosen }: Worker, { random }: Actor): ZoneError {
  const facts = { zone, worker: `${zone}/${slot}` }
  const how = chosen ?? DEATHS[Math.floor(random() * DEATHS.length)]
  if (how !== 'memory')
    return new ZoneError('WORKER_DIED', {
      ...facts,
      reason: how === 'exit' ? exitReason(1, null) : exitReason(null, 'SIGKILL'),
    })
  const cause = Object.assign(
    new Error('Worker terminated due to reaching memory limit: JS heap out of memory'),
    { code: 'ERR_WORKER_OUT_OF_MEMORY' },
  )
  return new ZoneError('WORKER_DIED', { ...facts, reason: deathReason(cause) }, { cause })
}
