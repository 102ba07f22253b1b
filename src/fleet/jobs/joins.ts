/**
 * Jobs of a host that wait until others have ended.
 *
 * Such a job is returned to the queue, so it takes no slot of a host, and its host listens for the end of one
 * that has not ended: the first in their order, and the next one when that has ended. They all have to end,
 * so the order does not matter, and one watch is enough for any number. Then the job wakes (wake.ts). Should
 * the host be lost, the job comes again by itself, to any host, which watches on.
 */
import type { End, Engine, Entry, KeyValue, Queue } from '../engine/engine.ts'
import { FleetError } from '../errors.ts'
import type { EndedFrame } from '../worker/current.ts'
import type { Carried } from '../wire.ts'
import { type Large, bytesOf } from './large.ts'
import { endSubject, hasEnded, readRecord } from './record.ts'
import { wake } from './wake.ts'

/** How many records are read at once. */
const READS_MAX = 64
/** Most bytes of what the others have returned, all together. */
const BYTES_MAX = 64 * 1024 * 1024

/** What is needed of the host. */
export interface JoinsHost extends Read {
  readonly engine: Engine
  readonly zone: string
  readonly large: Large
}

/** What is read. */
interface Read {
  readonly queue: Queue
  readonly records: KeyValue
  certainly<Value>(work: () => Promise<Value>): Promise<Value>
}

/** A job that waits. */
interface Waiting {
  readonly after: readonly string[]
  /** The first that may not have ended. */
  index: number
  /** Ends its watch. */
  leave: End
}

export class Joins {
  readonly #host: JoinsHost
  readonly #waiting = new Map<string, Waiting>()

  constructor(host: JoinsHost) {
    this.#host = host
  }

  /**
   * How others have ended; `undefined`: the job is woken when all of them have.
   * @param mayWait Whether another host may wake it: it runs when one has, and so not twice.
   * @throws {FleetError} `FLEET_TOO_LARGE`, and what the engine fails with.
   */
  async ended(
    key: string,
    after: readonly string[],
    mayWait: boolean,
  ): Promise<readonly EndedFrame[] | undefined> {
    const known = this.#waiting.get(key)
    const index = await this.#endedFrom(after, known?.index ?? 0)
    if (index === after.length) {
      this.#forget(key)
      if (!mayWait) return this.#read(after)
      await wake(this.#host.queue, key, 0, this.#host.certainly)
      return undefined
    }
    if (known !== undefined) {
      known.index = Math.max(known.index, index)
      return undefined
    }
    const waiting = { after, index, leave: () => {} }
    this.#waiting.set(key, waiting)
    this.#watch(key, waiting)
    return undefined
  }

  /** The index of the first, from one on, that has not ended. */
  async #endedFrom(after: readonly string[], from: number): Promise<number> {
    for (let index = from; index < after.length; index += READS_MAX) {
      const part = after.slice(index, index + READS_MAX)
      const ends = await Promise.all(part.map((key) => hasJobEnded(this.#host, key)))
      const open = ends.indexOf(false)
      if (open >= 0) return index + open
    }
    return after.length
  }

  async #read(after: readonly string[]): Promise<EndedFrame[]> {
    const { records, certainly } = this.#host
    const all: (readonly [key: string, status: EndedFrame[1], Carried | undefined])[] = []
    let bytes = 0
    for (let index = 0; index < after.length; index += READS_MAX) {
      const read = async (key: string): Promise<(typeof all)[number]> => {
        const record = readRecord((await certainly(() => records.get(key)))?.bytes)
        // Its record was kept for less time than the others took.
        if (!hasEnded(record)) return [key, 'unknown', undefined]
        const frame = record.status === 'done' ? record.value : record.errors.at(-1)
        return [key, record.status, frame instanceof Uint8Array ? new Uint8Array(frame) : frame]
      }
      for (const one of await Promise.all(after.slice(index, index + READS_MAX).map(read))) {
        bytes += one[2] === undefined ? 0 : bytesOf(one[2])
        all.push(one)
      }
      if (bytes > BYTES_MAX)
        throw new FleetError('FLEET_TOO_LARGE', { bytes, valueBytesMax: BYTES_MAX, limit: 'after' })
    }
    const frames: EndedFrame[] = []
    for (const [key, status, carried] of all) frames.push(await this.#frame(key, status, carried))
    return frames
  }

  async #frame(key: string, status: EndedFrame[1], carried: Carried | undefined): Promise<EndedFrame> {
    if (typeof carried !== 'string') return [key, status, carried]
    const frame = await this.#host.large.get(carried)
    return frame === undefined ? [key, 'unknown', undefined] : [key, status, frame]
  }

  /** What is not confirmed is looked for when the job comes again by itself. */
  #watch(key: string, waiting: Waiting): void {
    void this.#watchNext(key, waiting).catch(() => this.#forget(key))
  }

  async #watchNext(key: string, waiting: Waiting): Promise<void> {
    const { engine, zone, queue, records, certainly } = this.#host
    const { after } = waiting
    for (;;) {
      waiting.index = await this.#endedFrom(after, waiting.index)
      if (this.#waiting.get(key) !== waiting) return
      if (waiting.index === after.length) break
      const other = after[waiting.index]
      let changed = (): void => {}
      const ending = new Promise<void>((resolve) => (changed = resolve))
      const looked = ({ bytes }: Pick<Entry, 'bytes'>): void => {
        const record = readRecord(bytes)
        // A record that is deleted is that of a job that is forgotten.
        if (record === undefined || hasEnded(record)) changed()
      }
      const watch = (): Promise<End> =>
        engine.messages === undefined
          ? records.watch(looked, { from: 'now', key: other, over: changed })
          : engine.messages.listen(endSubject(zone, other), changed)
      const end = await certainly(watch)
      waiting.leave = changed
      try {
        // It may have ended before that.
        if (this.#waiting.get(key) === waiting && !(await hasJobEnded(this.#host, other))) await ending
      } finally {
        end()
      }
    }
    this.#forget(key)
    await wake(queue, key, 0, certainly)
  }

  #forget(key: string): void {
    const waiting = this.#waiting.get(key)
    this.#waiting.delete(key)
    waiting?.leave()
  }

  close(): void {
    for (const key of [...this.#waiting.keys()]) this.#forget(key)
  }
}

/** Whether there is no job of a key that waits or runs. */
async function hasJobEnded({ queue, records, certainly }: Read, key: string): Promise<boolean> {
  const read = async (): Promise<boolean> =>
    hasEnded(readRecord((await certainly(() => records.get(key)))?.bytes))
  if (await read()) return true
  return (await certainly(() => queue.find(key))) === undefined
}

/** The first of these keys without a job, and without a record of its end. */
export async function unknownOf(host: Read, keys: readonly string[]): Promise<string | undefined> {
  const { queue, records, certainly } = host
  const isKnown = async (key: string): Promise<boolean> =>
    (await certainly(() => records.get(key))) !== undefined ||
    (await certainly(() => queue.find(key))) !== undefined ||
    (await certainly(() => records.get(key))) !== undefined
  for (let index = 0; index < keys.length; index += READS_MAX) {
    const part = keys.slice(index, index + READS_MAX)
    const known = await Promise.all(part.map(isKnown))
    const unknown = known.indexOf(false)
    if (unknown >= 0) return part[unknown]
  }
  return undefined
}
