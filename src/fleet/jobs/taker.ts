/**
 * The jobs of a host: takes them from the queue, at most `jobsMax` at once, and leaves them when it closes.
 *
 * A job that comes here again while it still runs here, because its lease was lost, is not begun twice.
 */
import type { End, Engine, Lease, Message } from '../engine/engine.ts'
import { FleetError, hasCode } from '../errors.ts'
import { VALUE_BYTES_MAX } from '../settings.ts'
import { readParts } from '../wire.ts'
import { Attempt, type JobHost, type JobTask, type JobOutcome } from './attempt.ts'
import { certainly } from '../certainly.ts'
import { PauseWatch, Slots } from './gate.ts'
import { Joins } from './joins.ts'
import { Large } from './large.ts'
import { Limiter } from './limiter.ts'
import { cancelSubject, lettersName, limitsName, queueName, recordsName } from './record.ts'
import { wake } from './wake.ts'

/** How long what is not confirmed is repeated: when a host begins, and when it has left its jobs. */
const OPEN_MS = 15_000
const LEAVE_MS = 2000
/** Until an item comes again that has the key of one that still runs here. */
const SAME_KEY_MS = 250
/** What crashes have left of large arguments and results is looked for so often. */
const SWEEP_MS = 600_000

/** What takes jobs, and how many. */
export interface TakerOptions {
  readonly engine: Engine
  readonly zone: string
  readonly id: string
  readonly jobsMax: number
  readonly leaseMs: number
  /** Most bytes of arguments and of a result. Default 64 MiB. */
  readonly valueBytesMax?: number
  /** Whether what is run now begins at once. */
  isFree(): boolean
  /** Never rejects. */
  run(task: JobTask): Promise<JobOutcome>
}

type Opened = Omit<JobHost, 'certainly' | 'slots' | 'limiter' | 'joins' | 'large'>

export class JobTaker {
  readonly #host: JobHost
  readonly #jobsMax: number
  #hasLeft = false
  readonly #attempts = new Map<string, Attempt>()
  #endCancels: End = () => {}
  #endSweeping: End = () => {}
  #pauses: PauseWatch | undefined
  #isPaused = false
  #endTaking: End | undefined
  /** True until it is open, too. */
  #isAdjusting = true
  #isClosing = false
  #idle: () => void = () => {}

  private constructor(host: Opened, { jobsMax, valueBytesMax = VALUE_BYTES_MAX }: TakerOptions) {
    const goesOn = (): boolean => !this.#hasLeft
    this.#jobsMax = jobsMax
    // Behind a pause jobs come beside those that were begun before it.
    const slots = new Slots(jobsMax)
    const own = {
      ...host,
      certainly: <Value>(work: () => Promise<Value>) => certainly(host.engine, work, goesOn),
    }
    const large = new Large({ ...own, valueBytesMax })
    const limiter = new Limiter({
      ...own,
      limits: limitsName(host.zone),
      wake: (key, turn) => wake(host.queue, key, turn, own.certainly),
    })
    this.#host = { ...own, slots, large, limiter, joins: new Joins({ ...own, large }) }
  }

  /** Resolves when it takes jobs. @throws {FleetError} What the engine fails with. */
  static async open(options: TakerOptions): Promise<JobTaker> {
    const { engine, zone, leaseMs } = options
    const opened = <Value>(work: () => Promise<Value>): Promise<Value> =>
      certainly(engine, work, (spentMs) => spentMs < OPEN_MS)
    const queue = await opened(() => engine.queue(queueName(zone)))
    const records = await opened(() => engine.keyValue(recordsName(zone), { ttlMs: 0 }))
    const letters = await opened(() => engine.keyValue(lettersName(zone), { ttlMs: 0 }))
    const taker = new JobTaker({ ...options, queue, records, letters }, options)
    const cancelled = ({ bytes }: Message): void => {
      const [kind, key] = readParts(bytes) ?? []
      if (kind === 'cancel') void taker.#attempts.get(String(key))?.check()
    }
    const endCancels = await opened(async () => engine.messages?.listen(cancelSubject(zone), cancelled))
    taker.#endCancels = endCancels ?? (() => {})
    try {
      const changed = (isPaused: boolean): void => taker.#changed(isPaused)
      taker.#pauses = await opened(() => PauseWatch.open(records, engine.clock, leaseMs, changed))
      if (!taker.#isPaused) await opened(() => taker.#take())
    } catch (error) {
      taker.#pauses?.end()
      taker.#endCancels()
      throw error
    }
    taker.#isAdjusting = false
    void taker.#adjust()
    taker.#sweepLater()
    // Nothing that runs can be recorded any more.
    void engine.ended.then((reason) => taker.#leave(new FleetError('FLEET_CLOSED', { reason })))
    return taker
  }

  /** At other times than other hosts. */
  #sweepLater(): void {
    const { clock } = this.#host.engine
    this.#endSweeping = clock.after(SWEEP_MS * (0.5 + Math.random()), () => {
      // What is refused now is found the next time.
      this.#host.large.sweep(this.#host).catch(() => {})
      this.#sweepLater()
    })
  }

  /** How many jobs run: those that wait for the zone, or whose end is being stored, do not. */
  get running(): number {
    let count = 0
    for (const { isRunning } of this.#attempts.values()) if (isRunning) count++
    return count
  }

  #changed(isPaused: boolean): void {
    this.#isPaused = isPaused
    void this.#adjust()
  }

  /** Take while the queue is not paused, and not while it is. */
  async #adjust(): Promise<void> {
    if (this.#isAdjusting) return
    this.#isAdjusting = true
    try {
      while (!this.#isClosing && this.#isPaused === (this.#endTaking !== undefined))
        if (this.#isPaused) this.#leaveQueue()
        else await this.#host.certainly(() => this.#take())
    } catch (error) {
      // The connection has ended, with which all of this does.
      if (!hasCode(error, 'FLEET_CLOSED')) throw error
    } finally {
      this.#isAdjusting = false
    }
  }

  async #take(): Promise<void> {
    const { queue, leaseMs, zone } = this.#host
    const values = recordsName(zone)
    const lent = (lease: Lease): void => void this.#lent(lease)
    this.#endTaking = await queue.take(lent, { leasesMax: this.#jobsMax, leaseMs, values })
    if (this.#isClosing) this.#leaveQueue()
  }

  #leaveQueue(): void {
    this.#endTaking?.()
    this.#endTaking = undefined
  }

  async #lent(lease: Lease): Promise<void> {
    const running = this.#attempts.get(lease.id)
    if (running?.adopt(lease) === true) return
    const isLeft = this.#isClosing || this.#isPaused
    if (running !== undefined || isLeft) return lease.again(isLeft ? 0 : SAME_KEY_MS)
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
    this.#endSweeping()
    this.#pauses?.end()
    this.#leaveQueue()
    this.#host.slots.close()
    this.#host.joins.close()
    const { clock } = this.#host.engine
    let endTimer = clock.after(timeoutMs, () => {
      this.#leave(why)
      endTimer = clock.after(LEAVE_MS, () => (this.#hasLeft = true))
    })
    if (this.#attempts.size > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
    await this.#host.limiter.settled()
    endTimer()
    this.#endCancels()
  }

  #leave(why: unknown): void {
    for (const attempt of this.#attempts.values()) attempt.leave(why)
  }
}
