/**
 * Zones whose workers are tasks of a run: calls wait for a worker, get copies of their arguments, are
 * interleaved at every wait, and are lost when their worker dies.
 *
 * A function runs here as it is written, in this thread: what it captures is not refused, and its module has
 * one state for all workers.
 */
import { integer, optionsOf } from '../base/index.ts'
import { decode, encode } from '../transport/index.ts'
import { ZoneError } from '../zone/index.ts'
import { CheckError, wrong } from './errors.ts'
import { share } from './options.ts'
import type { Actor, Play, Wait } from './play.ts'
import { Job } from './tasks.ts'

/** Options of a zone of a {@link World}. */
export interface SeededZoneOptions {
  /** How many calls run at once; default 2. */
  readonly workers?: number
  /** How likely a worker dies at each wait of its call, from 0 to 1; default 0. */
  readonly deaths?: number
}

const KINDS = { workers: integer(1, 1024, 2), deaths: share(0) }

/** A zone in a run. */
export interface SeededZone {
  /** The one that it was created with. */
  readonly id: string
  /** Calls `fn` in a worker. @throws what it throws, and {@link ZoneError} `WORKER_DIED`. */
  run<Args extends unknown[], Value>(fn: (...args: Args) => Value, ...args: Args): Promise<Awaited<Value>>
  /** As `run`, with the arguments as a list. */
  execute<Args extends unknown[], Value>(
    fn: (...args: Args) => Value,
    args?: readonly [...Args],
  ): Promise<Awaited<Value>>
  /** Calls `fn` for each item; the results are in the order of the items. */
  map<Item, Value>(items: Iterable<Item>, fn: (item: Item) => Value): Promise<Awaited<Value>[]>
  /** Kills the worker of the call that runs for longest; false if none runs. */
  killWorker(): boolean
}

export function zoneOf(play: Play, id: string, options: SeededZoneOptions | undefined): SeededZone {
  const { workers, deaths } = optionsOf(options ?? {}, KINDS, wrong, 'zone.create()')
  const waiting: { readonly actor: Actor; readonly wait: Wait<void> }[] = []
  const running = new Set<Job<unknown>>()
  let free = workers
  /** Let the next call go on, if a worker is free. */
  const wake = (): void => {
    if (free === 0) return
    let next = waiting.shift()
    while (next?.actor.isDead) next = waiting.shift()
    next?.wait.resolve()
  }
  const leave = (job: Job<unknown>): void => {
    if (!running.delete(job)) return
    free++
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
    while (free === 0) {
      const wait = play.wait<void>(actor, `a worker of ${id}`)
      waiting.push({ actor, wait })
      // It may die after it has been woken, before it goes on.
      const survived = actor.whenDead(wake)
      await wait.promise
      survived()
    }
    free--
    const job: Job<Uint8Array> = new Job(play, play.root, call, async () => {
      try {
        return encode(await fn(...copies))
      } finally {
        leave(job)
      }
    })
    running.add(job)
    job.actor.deaths = deaths
    job.actor.whenDead(() => leave(job))
    try {
      return decode(await job.join()) as Awaited<Value>
    } catch (error) {
      if (!(error instanceof CheckError && error.code === 'CHECK_KILLED')) throw error
      throw new ZoneError('WORKER_DIED', { zone: id, worker: id, reason: 'the seed has killed it' })
    }
  }
  return {
    id,
    run: (fn, ...args) => execute(fn, args),
    execute,
    map: (items, fn) => Promise.all([...items].map((item) => execute(fn, [item]))),
    killWorker: () => {
      const [longest] = running
      longest?.kill()
      return longest !== undefined
    },
  }
}
