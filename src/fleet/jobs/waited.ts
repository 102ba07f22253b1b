/**
 * One wait for the end of a job: as it is reported, or as its record shows, until a timeout or a signal.
 *
 * A report may be lost, so the record is read at intervals too. When the wait is over, nothing of it remains:
 * neither a timer nor a listener.
 */
import { onAbort } from '../../base/index.ts'
import type { End, Engine } from '../engine/engine.ts'
import type { FarOptions } from '../settings.ts'
import type { Ends } from './ends.ts'
import type { EndedRecord } from './record.ts'

/** The time between two readings of a record. */
const POLL_MS = 500

/** The job, and how it is read. */
export interface WaitedJob {
  readonly key: string
  readonly clock: Engine['clock']
  readonly ends: Ends
  /** Whether the job waits; it may stop trying when `goesOn` returns false. */
  find(goesOn: () => boolean): Promise<boolean>
  /** The record if the job has ended, read when it was found. */
  read(goesOn: () => boolean, finding: Promise<boolean>): Promise<EndedRecord | undefined>
  /** The error of a wait that took `timeoutMs`. */
  late(timeoutMs: number): Promise<Error>
}

export class Waited {
  readonly #job: WaitedJob
  readonly #goesOn = (): boolean => !this.#isOver
  #isOver = false
  #arrived!: (record: EndedRecord) => void
  #fail!: (why: unknown) => void
  #endPolling: End = () => {}

  constructor(job: WaitedJob) {
    this.#job = job
  }

  /** The end of the job. Called once. */
  async end({ timeoutMs, signal }: FarOptions): Promise<EndedRecord> {
    const { clock, late } = this.#job
    signal?.throwIfAborted()
    const ended = new Promise<EndedRecord>(
      (resolve, reject) => ([this.#arrived, this.#fail] = [resolve, reject]),
    )
    ended.catch(() => {}) // it may fail before it is waited for
    const aborted = (): void => this.#fail(signal?.reason)
    if (signal !== undefined) onAbort(signal, aborted)
    const endTimer =
      timeoutMs === undefined
        ? () => {}
        : clock.after(timeoutMs, () => void late(timeoutMs).then((error) => this.#fail(error)))
    const endListening = this.#listen()
    try {
      return await ended
    } finally {
      this.#isOver = true
      this.#endPolling()
      endTimer()
      endListening()
      signal?.removeEventListener('abort', aborted)
    }
  }

  /** Receive the report. Own jobs need no further question; of others the record is read at once. */
  #listen(): End {
    const { key, clock, ends } = this.#job
    const look = (): void => this.#look()
    const ended = (record?: EndedRecord): void => (record === undefined ? look() : this.#arrived(record))
    if (ends.isReported(key)) {
      this.#endPolling = clock.after(POLL_MS, look)
      return ends.wait(key, this.#arrived)
    }
    const listening = ends.watch(key, ended, this.#goesOn)
    // Of an own job it is known.
    const finding = ends.isOpen(key) ? Promise.resolve(true) : this.#find()
    // From then on no end is missed.
    listening.then(() => this.#listens(finding)).catch(this.#fail)
    // Also of one that begins later: a server that is away is not waited for.
    return () =>
      void listening.then(
        (end) => end(),
        () => {},
      )
  }

  #find(): Promise<boolean> {
    const finding = this.#job.find(this.#goesOn)
    finding.catch(() => {}) // it may fail before it is waited for
    return finding
  }

  /** Where the record is watched, that of a job that waits comes by itself. */
  async #listens(finding: Promise<boolean>): Promise<void> {
    if (this.#job.ends.areReported || !(await finding)) this.#look(finding)
    else this.#lookLater()
  }

  #look(finding?: Promise<boolean>): void {
    if (this.#isOver) return
    this.#endPolling()
    this.#read(finding ?? this.#find()).catch(this.#fail)
  }

  async #read(finding: Promise<boolean>): Promise<void> {
    const record = await this.#job.read(this.#goesOn, finding)
    if (record !== undefined) return this.#arrived(record)
    this.#lookLater()
  }

  #lookLater(): void {
    this.#endPolling()
    if (!this.#isOver) this.#endPolling = this.#job.clock.after(POLL_MS, () => this.#look())
  }
}
