/**
 * How jobs of one zone have ended, as hosts report it: once, to whoever waits.
 *
 * The connection that has submitted a job receives its end by a subject of its own, to which it listens
 * before it submits the first one; so a wait for one of its jobs asks the server nothing. Others are notified
 * by a subject of the job's key, and read the record. Reports may be lost: whoever waits looks from time to
 * time. Over an engine without messages the record itself is watched, also of own jobs: from their addition
 * on, where one request can do both, as long as results are waited for.
 */
import { randomText } from '../../base/index.ts'
import { certainly, opened } from '../certainly.ts'
import type { End, Engine, Entry, KeyValue } from '../engine/engine.ts'
import { type EndedRecord, endSubject, hasEnded, originSubject, readEnd, readRecord } from './record.ts'

/** How many keys of own jobs are remembered whose end has not been reported. */
const OPEN_MAX = 65_536
/** How many are left out at once: what looks for the oldest passes over all that were. */
const LEFT_OUT = 1024
/**
 * Of who waits for none of so many jobs the next ones are not watched from their beginning; and most that are
 * watched so at once, which those are that never end.
 */
const UNWAITED_MAX = 256
const WATCHED_MAX = 4096

export class Ends {
  /** The id of this connection, in jobs that it submits. */
  readonly origin = randomText(9)
  readonly #engine: Engine
  readonly #zone: string
  readonly #records: () => Promise<KeyValue>
  /** Submissions of this connection whose end is still to be reported, by key, the oldest first. */
  readonly #open = new Map<string, number>()
  /** Those of them that are watched, over an engine without messages. */
  readonly #watched = new Set<string>()
  #count = 0
  /** Up to which submission they are watched. */
  #watchedMax = UNWAITED_MAX
  readonly #waiting = new Map<string, Set<(record: EndedRecord) => void>>()
  /** Resolves when ends are received of jobs that are submitted from then on. */
  readonly listen = opened(async (): Promise<End> => {
    const subject = originSubject(this.#zone, this.origin)
    return this.#engine.messages?.listen(subject, ({ bytes }) => this.#reported(bytes)) ?? (() => {})
  })

  constructor(engine: Engine, zone: string, records: () => Promise<KeyValue>) {
    this.#engine = engine
    this.#zone = zone
    this.#records = records
  }

  /** A job is about to be submitted: which submission it is, and whether it is the only one of its key. */
  begin(key: string): readonly [submission: number, isFirst: boolean] {
    const open = this.#open.get(key)
    if (open !== undefined) return [open, false]
    this.#open.set(key, ++this.#count)
    if (this.#open.size > OPEN_MAX) this.#leaveOut()
    return [this.#count, true]
  }

  #leaveOut(): void {
    let left = LEFT_OUT
    for (const oldest of this.#open.keys()) {
      this.#open.delete(oldest) // it counts as watched until its watch ends
      if (--left === 0) return
    }
  }

  /** It was not submitted, or has ended. */
  drop(key: string): void {
    this.#open.delete(key)
    this.#watched.delete(key)
  }

  /** Its record is watched as it is added: what is called with each change, until it returns true. */
  watchFirst(key: string, submission: number): ((entry: Entry) => boolean) | undefined {
    if (submission > this.#watchedMax || this.#watched.size >= WATCHED_MAX) return undefined
    this.#watched.add(key)
    return ({ bytes }) => {
      const record = readRecord(bytes)
      if (hasEnded(record)) this.#ended(key, submission, record)
      if (!this.#open.has(key)) this.#watched.delete(key)
      return this.#open.get(key) !== submission
    }
  }

  /** Whether a job is an own one, whose end is still to come. */
  isOpen(key: string): boolean {
    return this.#open.has(key)
  }

  /** Whether ends of own jobs are received without a further question; else all are watched. */
  get areReported(): boolean {
    return this.#engine.messages !== undefined
  }

  /** Whether the end of this one is. */
  isReported(key: string): boolean {
    return this.isOpen(key) && (this.areReported || this.#watched.has(key))
  }

  /** Call `on` with the end of a job that {@link isReported}, until the returned function is called. */
  wait(key: string, on: (record: EndedRecord) => void): End {
    this.#isWaitedFor()
    const all = this.#waiting.get(key) ?? new Set()
    this.#waiting.set(key, all)
    all.add(on)
    return () => {
      all.delete(on)
      if (all.size === 0 && this.#waiting.get(key) === all) this.#waiting.delete(key)
    }
  }

  /**
   * Call `on` when a job has ended, whoever has submitted it; with the end where its record is watched, also
   * when it has ended before.
   */
  watch(key: string, on: (record?: EndedRecord) => void, goesOn: () => boolean): Promise<End> {
    if (this.isOpen(key)) this.#isWaitedFor()
    const { messages } = this.#engine
    const changed = ({ bytes }: Entry): void => {
      const record = readRecord(bytes)
      if (!hasEnded(record)) return
      this.drop(key)
      on(record)
    }
    const watch = async (): Promise<End> =>
      messages === undefined
        ? (await this.#records()).watch(changed, { key })
        : messages.listen(endSubject(this.#zone, key), () => on())
    return certainly(this.#engine, watch, goesOn)
  }

  #isWaitedFor(): void {
    this.#watchedMax = this.#count + UNWAITED_MAX
  }

  #reported(bytes: Uint8Array): void {
    const end = readEnd(bytes)
    if (end !== undefined) this.#ended(end.key, end.submission, end.record)
  }

  #ended(key: string, submission: number, record: EndedRecord): void {
    // One that comes late may be of a key that was forgotten and submitted again.
    if (this.#open.get(key) !== submission) return
    this.drop(key)
    for (const on of [...(this.#waiting.get(key) ?? [])]) on(record)
  }
}
