/**
 * The jobs of a host: takes them from the queue, at most `jobsMax` at once, and leaves them when it closes.
 *
 * A job that comes here again while it still runs here, because its lease was lost, is not begun twice.
 */
import type { End, Engine, Lease, Message } from '../engine/engine.ts'
import { FleetError } from '../errors.ts'
import { readParts } from '../wire.ts'
import { Attempt, type JobHost, type JobTask, type JobOutcome } from './attempt.ts'
import { certainly } from '../certainly.ts'
import { cancelSubject, lettersName, queueName, recordsName } from './record.ts'

/** How long what is not confirmed is repeated: when a host begins, and when it has left its jobs. */
const OPEN_MS = 15_000
const LEAVE_MS = 2000
/** Until an item comes again that has the key of one that still runs here. */
const SAME_KEY_MS = 250

/** What takes jobs, and how many. */
export interface TakerOptions {
  readonly engine: Engine
  readonly zone: string
  readonly id: string
  readonly jobsMax: number
  readonly leaseMs: number
  /** Whether what is run now begins at once. */
  isFree(): boolean
  /** Never rejects. */
  run(task: JobTask): Promise<JobOutcome>
}

export class JobTaker {
  readonly #host: JobHost
  #hasLeft = false
  readonly #attempts = new Map<string, Attempt>()
  #ends: readonly End[] = []
  #isClosing = false
  #idle: () => void = () => {}

  private constructor(host: Omit<JobHost, 'certainly'>) {
    const goesOn = (): boolean => !this.#hasLeft
    this.#host = { ...host, certainly: (work) => certainly(host.engine, work, goesOn) }
  }

  /** Resolves when it takes jobs. @throws {FleetError} What the engine fails with. */
  static async open({ jobsMax, ...options }: TakerOptions): Promise<JobTaker> {
    const { engine, zone, leaseMs } = options
    const opened = <Value>(work: () => Promise<Value>): Promise<Value> =>
      certainly(engine, work, (spentMs) => spentMs < OPEN_MS)
    const queue = await opened(() => engine.queue(queueName(zone)))
    const records = await opened(() => engine.keyValue(recordsName(zone), { ttlMs: 0 }))
    const letters = await opened(() => engine.keyValue(lettersName(zone), { ttlMs: 0 }))
    const taker = new JobTaker({ ...options, queue, records, letters })
    const cancelled = ({ bytes }: Message): void => {
      const [kind, key] = readParts(bytes) ?? []
      if (kind === 'cancel') void taker.#attempts.get(String(key))?.check()
    }
    const lent = (lease: Lease): void => void taker.#lent(lease)
    const endCancels = await opened(async () => engine.messages?.listen(cancelSubject(zone), cancelled))
    try {
      const endTaking = await opened(() => queue.take(lent, { leasesMax: jobsMax, leaseMs }))
      taker.#ends = endCancels === undefined ? [endTaking] : [endTaking, endCancels]
    } catch (error) {
      endCancels?.()
      throw error
    }
    // Nothing that runs can be recorded any more.
    void engine.ended.then((reason) => taker.#leave(new FleetError('FLEET_CLOSED', { reason })))
    return taker
  }

  /** How many jobs run: those that wait for the zone, or whose end is being stored, do not. */
  get running(): number {
    let count = 0
    for (const { isRunning } of this.#attempts.values()) if (isRunning) count++
    return count
  }

  async #lent(lease: Lease): Promise<void> {
    const running = this.#attempts.get(lease.id)
    if (running?.adopt(lease) === true) return
    if (running !== undefined || this.#isClosing) return lease.again(this.#isClosing ? 0 : SAME_KEY_MS)
    const attempt = new Attempt(this.#host, lease)
    this.#attempts.set(lease.id, attempt)
    try {
      await attempt.run()
    } finally {
      this.#attempts.delete(lease.id)
      if (this.#attempts.size === 0) this.#idle()
    }
  }

  /** Take no more, finish those that run, and after `timeoutMs` leave the rest to others, with `why`. */
  async close(timeoutMs: number, why: unknown): Promise<void> {
    this.#isClosing = true
    const [endTaking, endCancels] = this.#ends
    endTaking()
    if (this.#attempts.size > 0) {
      const idle = new Promise<void>((resolve) => (this.#idle = resolve))
      const { clock } = this.#host.engine
      let endTimer = clock.after(timeoutMs, () => {
        this.#leave(why)
        endTimer = clock.after(LEAVE_MS, () => (this.#hasLeft = true))
      })
      await idle
      endTimer()
    }
    endCancels?.()
  }

  #leave(why: unknown): void {
    for (const attempt of this.#attempts.values()) attempt.leave(why)
  }
}
