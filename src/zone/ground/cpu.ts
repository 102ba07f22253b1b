/**
 * CPU time by account: of the tasks of a thread, and of what its programs measure.
 *
 * At each moment one account of a thread runs, or none. The thread's CPU clock is read where another one
 * begins, so each nanosecond belongs to one account at most, and to those that it is part of; what the event
 * loop does after a callback belongs to the account of that. The only task of a worker has its thread as a
 * whole, waiting included. Code that takes turns is followed through its callbacks: by an
 * AsyncLocalStorage, and by a hook of Node that runs before and after each. That is enabled as long as an
 * account needs it: those of programs for good, those of tasks and samples until they end, and all samples
 * together for so many callbacks. What a task has used returns behind the frame of its result, so it counts
 * once, in the account of its caller, when the core returns the task: also if that has failed or nobody waits
 * any more.
 */
import { type AsyncHook, AsyncLocalStorage, createHook } from 'node:async_hooks'
import { WAITED_TICKS, native } from '../../native/index.ts'

/** The CPU time that code has used: see {@link measureCpu}. */
export interface CpuTime {
  /** So far, in ms: of the threads that it and its tasks have run in. */
  readonly cpuMs: number
}

/** The bit of a result's first byte: the times are in the last bytes behind it. */
const MARK = 0x80
/** Of a task, in ns: its CPU time, how long it has waited for a worker, and how long it ran. */
const times = new Float64Array(3)
const timeBytes = new Uint8Array(times.buffer)
export const TIME_BYTES = timeBytes.length
const CHARGED_BYTES_MIN = 1024
/** Callbacks that a thread follows for samples, by which each takes longer: in a ms, and at once. */
const FOLLOWED_PER_MS = 16
const FOLLOWED_MAX = 32_768
/** Represents the account that has the whole thread. */
const WHOLE = Symbol('whole')

/** What runs again afterwards; `null` for none. */
type Saved = CpuAccount | null | typeof WHOLE

export class CpuAccount implements CpuTime {
  readonly meter: CpuMeter
  readonly #above: CpuAccount | undefined
  #ns = 0
  #queueNs = 0
  #hopNs = 0
  /** When its task began. */
  begunMs = 0
  /** Whether its callbacks are followed, or will be before the first one; maybe with the one above. */
  isFollowed: boolean
  /** Whether that ends with it. */
  isFollower = false

  /** @param above The account that this one is a part of. */
  constructor(meter: CpuMeter, above: CpuAccount | undefined) {
    this.meter = meter
    this.#above = above
    this.isFollowed = above !== undefined && above.isFollowed
  }

  get cpuMs(): number {
    return this.ns / 1e6
  }

  get ns(): number {
    this.meter.settle()
    return this.#ns
  }

  /** What its tasks have waited: for a worker; on their ways, until this thread had time for the result. */
  get waits(): { readonly queueMs: number; readonly hopMs: number } {
    return { queueMs: this.#queueNs / 1e6, hopMs: this.#hopNs / 1e6 }
  }

  part(): CpuAccount {
    return new CpuAccount(this.meter, this)
  }

  add(ns: number): void {
    this.#ns += ns
    this.#above?.add(ns)
  }

  #waited(queueNs: number, hopNs: number): void {
    this.#queueNs += queueNs
    this.#hopNs += hopNs
    if (this.#above !== undefined) this.#above.#waited(queueNs, hopNs)
  }

  /**
   * Adds what is behind the frame of a result. Returns where that ends; `start` for `undefined`.
   * @param sentMs When the call was sent, by `performance.now()`; 0: its caller has blocked.
   */
  receive(bytes: Uint8Array, start: number, end: number, sentMs: number): number {
    // What the core has made itself has no mark.
    if (start === end || bytes[start] < MARK) return end
    bytes[start] &= ~MARK
    const at = end - TIME_BYTES
    for (let index = 0; index < TIME_BYTES; index++) timeBytes[index] = bytes[at + index]
    const [cpuNs, queueNs, runNs] = times
    this.add(cpuNs)
    const tookNs = sentMs === 0 ? 0 : (performance.now() - sentMs) * 1e6
    this.#waited(queueNs, Math.max(0, tookNs - queueNs - runNs))
    return at - start === 1 ? start : at
  }

  /**
   * Puts the times behind the frame of a result, which may be empty. Returns the new length.
   * @param waited What the core has noted of its wait.
   */
  send(bytes: Uint8Array, start: number, length: number, waited: number): number {
    const frameBytes = length === 0 ? 1 : length
    bytes[start] = length === 0 ? MARK : bytes[start] | MARK
    times[0] = this.ns
    times[1] = waited * WAITED_TICKS * native.tickNs()
    times[2] = (performance.now() - this.begunMs) * 1e6
    bytes.set(timeBytes, start + frameBytes)
    return frameBytes + TIME_BYTES
  }
}

export class CpuMeter {
  /** The CPU time of this thread, in ns. */
  clock: () => number = native.threadCpuNs
  #running: CpuAccount | undefined
  /** The account that has the time since the last reading: the running one, or that of the last callback. */
  #charged: CpuAccount | undefined
  #sinceNs = 0
  /** The task that is alone in its thread. */
  #whole: CpuAccount | undefined
  /** The account of code that takes turns; `null` for code that belongs to none, not even to `#whole`. */
  readonly #scope = new AsyncLocalStorage<CpuAccount | null | undefined>()
  /** What was interrupted by the callbacks in progress. */
  readonly #interrupted: Saved[] = []
  readonly #hook = this.#following()
  /** Accounts that need it, those of programs together. */
  #followers = 0
  #isForGood = false
  /** Samples whose `body` runs, and those that are followers. */
  #beginning = 0
  readonly #samples = new Set<CpuAccount>()
  /** Callbacks that may be followed for them, and the time up to which that is known. */
  #left = FOLLOWED_MAX
  #leftAtMs = 0

  current(): CpuAccount | undefined {
    const found = this.#scope.getStore()
    return found === undefined ? this.#whole : (found ?? undefined)
  }

  /** Of a task that begins. */
  account(): CpuAccount {
    const account = new CpuAccount(this, undefined)
    account.begunMs = performance.now()
    return account
  }

  /** Runs `body` and what it causes with an account, which is a part of the calling code's. */
  measure<R>(body: (used: CpuTime) => R): R {
    const account = new CpuAccount(this, this.current())
    account.isFollowed = true
    if (!this.#isForGood) {
      this.#isForGood = true
      this.#follow()
    }
    return this.#within(account, () => body(account))
  }

  /** Whether a sample may begin: not where those before it have had so many callbacks followed. */
  maySample(): boolean {
    return this.#isForGood || this.#leftNow() > FOLLOWED_MAX / 2
  }

  /**
   * The same for one of many, so that the others pay little: callbacks are followed where `goesOn`
   * afterwards, until `end`, or until there were too many: what one has used by then is its time.
   */
  sample(body: (used: CpuAccount) => void, goesOn: () => boolean): void {
    const account = new CpuAccount(this, this.current())
    const isFollower = !account.isFollowed
    account.isFollowed = true
    this.#beginning++
    try {
      this.#within(account, () => body(account))
    } finally {
      this.#beginning--
    }
    if (isFollower && goesOn()) {
      this.#samples.add(account)
      this.#followUntilEnd(account)
    } else if (this.#followers === 0 && this.#beginning === 0) this.#scope.disable()
  }

  /**
   * Runs the function of a task, or a later part of it.
   * @param isAlone No other runs in this thread before `end`.
   */
  task<R>(account: CpuAccount | undefined, isAlone: boolean, body: () => R): R {
    if (!isAlone) {
      if (account === undefined && this.current() === undefined) return this.charge(undefined, body)
      if (account?.isFollowed === false) this.#followUntilEnd(account)
      return this.#within(account ?? null, body)
    }
    this.#whole = account
    this.#run(account)
    // What another task has left there is not this one's.
    return this.#scope.getStore() === undefined ? body() : this.#scope.run(undefined, body)
  }

  end(account: CpuAccount): void {
    if (account === this.#whole) this.#whole = undefined
    if (account === this.#running) this.#running = undefined
    if (!account.isFollower) return
    account.isFollower = false
    this.#samples.delete(account)
    if (--this.#followers > 0) return
    this.#hook.disable()
    this.#interrupted.length = 0
    if (this.#beginning > 0) return
    this.#run(undefined)
    // Of Nodes before 24 it makes each promise slower.
    this.#scope.disable()
  }

  /** Reads a frame of `bytes` bytes at the cost of an account; short ones take less than the clock. */
  chargeFor<R>(account: CpuAccount, bytes: number, body: () => R): R {
    return bytes < CHARGED_BYTES_MIN ? body() : this.charge(account, body)
  }

  /** Runs `body` at the cost of an account, without what it causes. */
  charge<R>(account: CpuAccount | undefined, body: () => R): R {
    const saved = this.#interrupt(account)
    try {
      return body()
    } finally {
      this.#resume(saved)
    }
  }

  /** Brings the accounts up to date. */
  settle(): void {
    if (this.#charged === undefined) return
    this.#read()
    this.#charged = this.#running
  }

  #read(): void {
    const ns = this.clock()
    this.#charged?.add(ns - this.#sinceNs)
    this.#sinceNs = ns
  }

  #within<R>(account: CpuAccount | null, body: () => R): R {
    return this.charge(account ?? undefined, () => this.#scope.run(account, body))
  }

  #run(account: CpuAccount | undefined): void {
    this.#running = account
    if (account === this.#charged) return
    this.#read()
    this.#charged = account
  }

  #interrupt(account: CpuAccount | undefined): Saved {
    // The task that is alone may be another one afterwards.
    const saved = this.#running === this.#whole ? WHOLE : (this.#running ?? null)
    this.#run(account)
    return saved
  }

  #resume(saved: Saved): void {
    this.#run(this.#resumed(saved))
  }

  #resumed(saved: Saved): CpuAccount | undefined {
    return saved === WHOLE ? this.#whole : (saved ?? undefined)
  }

  #followUntilEnd(account: CpuAccount): void {
    account.isFollowed = account.isFollower = true
    this.#follow()
  }

  #leftNow(): number {
    const nowMs = performance.now()
    this.#left = Math.min(FOLLOWED_MAX, this.#left + (nowMs - this.#leftAtMs) * FOLLOWED_PER_MS)
    this.#leftAtMs = nowMs
    return this.#left
  }

  #follow(): void {
    if (this.#followers++ === 0) this.#hook.enable()
  }

  #following(): AsyncHook {
    return createHook({
      before: () => void this.#interrupted.push(this.#interrupt(this.current())),
      after: () => {
        const saved = this.#interrupted.pop()
        // The callback in which this was enabled had begun before.
        const next = this.#resumed(saved === undefined ? WHOLE : saved)
        // The next callback is often of the same account, and a reading takes longer than many callbacks.
        if (next === undefined && this.#interrupted.length === 0) this.#running = undefined
        else this.#run(next)
        if (this.#samples.size === 0 || --this.#left > 0 || this.#leftNow() >= 1) return
        for (const sample of this.#samples) this.end(sample)
      },
    })
  }
}
