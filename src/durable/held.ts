/**
 * A run while this process has it: its fiber, its lease, and its journal.
 *
 * Effect, append, sync, resume, in this order: the function of a step is called, its result is appended, and
 * only when that is kept the fiber goes on. Whatever else happens leaves the journal as it is, and the run to
 * whoever is lent it next.
 *
 * ```text
 *  lease ─▶ read the head ─▶ ended ─▶ the item is done
 *              │      └─▶ waits, and is not due ─▶ again, when it is
 *              ▼
 *           read the journal ─▶ append that it is held here (the fence) ─▶ replay ─▶ live
 *              │                                                              │
 *              ▼                                                              ▼
 *           diverged, unreadable: the head has why ─▶ again, later      the fiber ends ─▶ end, by revision
 *                                                                        waits for long ─▶ waiting ─▶ again
 *                                                                        lost, closed ─▶ again, at once
 * ```
 * One that is cancelled has that recorded, and is interrupted in its turn: what its finalizers ask for is
 * recorded as all else, also over restarts, and its end is that of its fiber.
 *
 * Over 400 lines: one class, whose methods are the ways of one run and share its journal, head and lease.
 */
import { meters } from '../base/index.ts'
import { type Exit, type Failed, type Fiber, type ScheduleDriver, currentFiber } from '../fiber/index.ts'
import { forkAsked, troublesIn, thrownBy } from '../fiber/internal.ts'
import {
  type Entry,
  type Lease,
  NonRetryableError,
  certainly,
  errorFrame,
  hasCode,
  isDone,
  mayPass,
  unlessConflict,
} from '../fleet/internal.ts'
import { decode, encode } from '../transport/index.ts'
import { type Outcome, attempted } from './attempt.ts'
import { checkRepeats } from './check.ts'
import { type Asked, type Asking, type SignalCall, type StepCall, enter } from './context.ts'
import { RunError, type RunFacts, readable } from './errors.ts'
import { Exposed } from './exposed.ts'
import { aborted, orAborted } from './interrupts.ts'
import { Journal } from './journal.ts'
import {
  type Head,
  type JournalEntry,
  type RunStatus,
  type Signal,
  hasEnded,
  inputBeside,
  journalIn,
  readBox,
  readHead,
  writeBox,
  writeHead,
} from './records.ts'
import { Replay, Turns } from './replay.ts'
import type { Children, OwnRoom } from './room.ts'
import { Waits } from './waits.ts'

/** How often a lease is extended in its span. */
const EXTENSIONS = 3
/** Longest time until one that waits is lent again, which then waits on. */
const AGAIN_MS_MAX = 86_400_000
/** Until a run that was lost or has diverged is lent again; of the latter twice as long each time. */
const AGAIN_MS = 250
const DIVERGED_MS_MAX = 300_000

type Leaving = 'lost' | 'ended' | 'diverged' | 'waiting' | 'closed' | 'anew'
const REASONS: Readonly<Record<Leaving, string>> = {
  lost: 'another process has it, or its journal cannot be written',
  ended: 'it has ended',
  diverged: 'its code does not fit its journal',
  waiting: 'it waits for long',
  closed: 'its runs were closed',
  anew: 'its journal begins anew',
}
const NOTHING = new Uint8Array()

const isUnreadable = (error: unknown): error is RunError =>
  error instanceof RunError && error.code === 'RUN_UNREADABLE'

/** The connection has ended, or the file is full: for another process, or for later. */
const isForLater = (error: unknown): boolean =>
  error instanceof RunError ||
  mayPass(error) ||
  hasCode(error, 'FLEET_CLOSED', 'FLEET_CONFLICT', 'FLEET_FILE_CORRUPT')

export class HeldRun implements Asking {
  readonly facts: RunFacts
  readonly #room: OwnRoom
  #lease: Lease
  readonly #lentMs: number
  #head!: Head
  #revision = 0
  #journal!: Journal
  #replay!: Replay
  #waits!: Waits
  /** The ids of the signals that are recorded. */
  #received = new Set<string>()
  readonly #turns = new Turns()
  readonly #leaves = new AbortController()
  #isCancelled = false
  #fiber: Fiber<unknown, unknown> | undefined
  #leaving: Leaving | undefined
  #why: unknown
  #left: () => void = () => {}
  readonly #hasLeft = new Promise<void>((resolve) => (this.#left = resolve))
  #isClosing = false
  /** What is not confirmed is not repeated any more. */
  #isAbandoned = false
  /** Steps that run, and what is being appended. */
  #active = 0
  /** When the attempts that run have begun, by the keys of their steps. */
  readonly running = new Map<string, number>()
  #endExtending = (): void => {}
  #endResting = (): void => {}
  #exposed: Exposed | undefined
  #isLooking = false
  #looksAgain = false

  constructor(room: OwnRoom, lease: Lease) {
    this.#room = room
    this.#lease = lease
    this.#lentMs = room.engine.clock.nowMs()
    this.facts = { name: room.name, key: lease.id }
  }

  get seed(): string {
    return this.#head.seed ?? this.#head.id
  }

  get leftReason(): string | undefined {
    return this.#leaving && REASONS[this.#leaving]
  }

  get whenLeft(): AbortSignal {
    return this.#leaves.signal
  }

  /** It was lent to this process again, since its lease was lost. */
  adopt(lease: Lease): void {
    this.#lease = lease
  }

  /** Resolves when this process has left it. */
  async run(): Promise<void> {
    this.#extend(1)
    try {
      if (await this.#begin()) await this.#live()
    } catch (error) {
      if (!isForLater(error)) throw error
      this.#lease.again(isUnreadable(error) ? this.#laterMs : AGAIN_MS)
    } finally {
      this.#leave('lost')
      this.#endExtending()
      this.#endResting()
    }
  }

  /** Let the steps that run end, and begin none. */
  close(): void {
    this.#isClosing = true
    this.#rested()
  }

  /** Leave it as it is, now. */
  abandon(): void {
    this.#isAbandoned = true
    this.#leave('closed')
  }

  #extend(count: number): void {
    const { engine, leaseMs } = this.#room
    this.#endExtending = engine.clock.after(leaseMs / EXTENSIONS, () => {
      this.#lease.extend()
      // What was reported may not have arrived.
      if (count % EXTENSIONS === 0) this.check()
      this.#extend(count + 1)
    })
  }

  #certainly<Value>(work: () => Promise<Value>): Promise<Value> {
    return certainly(this.#room.engine, work, () => !this.#isAbandoned)
  }

  /** Whether it is to run here. */
  async #begin(): Promise<boolean> {
    const entry = await this.#headEntry()
    if (entry === undefined) return await this.#forgotten()
    this.#head = this.#headIn(entry.bytes)
    this.#revision = entry.revision
    if (hasEnded(this.#head)) return await this.#drop()
    try {
      return await this.#open()
    } catch (error) {
      if (!isUnreadable(error)) throw error
      this.#diverge(error)
      await this.#diverged()
      return false
    }
  }

  /** Reads its journal, unless it still waits: false. */
  async #open(): Promise<boolean> {
    const { engine, journals, nowMs } = this.#room
    const box = await this.#box()
    const { status, dueMs, awaits, cancelMs } = this.#head
    const leftMs = dueMs - nowMs()
    const waits = status === 'waiting' && leftMs > 0 && cancelMs === undefined
    if (waits && !box.some(({ name }) => awaits.includes(name))) {
      this.#lease.again(Math.min(leftMs, AGAIN_MS_MAX))
      return false
    }
    const { before } = this.#head
    const running = { status: 'running', frame: undefined, dueMs: 0, awaits: [], before: undefined } as const
    const goesOn = (): boolean => !this.#isAbandoned
    const lost = (): void => this.#leave('lost')
    const of = { engine, values: journals, run: this.facts, sinceMs: this.#lentMs, goesOn, lost }
    if (before !== undefined) await new Journal({ ...of, id: before }).remove()
    const isNamed = async (): Promise<boolean> => this.#isSame(await this.#certainly(() => this.#found()))
    const sureMs = this.#room.leaseMs / 2
    this.#journal = new Journal({ ...of, id: journalIn(this.#head), sureMs, isNamed })
    const entries = await this.#journal.read()
    // Its item may be a new one, of who has woken it.
    const isAnother = this.#lease.attempt > 1 || entries.length > 0
    // Also where it runs already: who had it before, and has not died, must not write that it waits.
    if (status !== 'running' || before !== undefined || isAnother) await this.#write(running)
    if (isAnother) await this.#journal.append({ kind: 'held', key: '', atMs: nowMs() })
    this.#replay = new Replay(this.facts, entries, () => this.#interrupt())
    this.#isCancelled = this.#replay.isCancelled
    this.#received = this.#replay.signals
    this.#waits = new Waits(engine.clock, nowMs, this.#received, () => this.#rested())
    this.#waits.receive(box)
    return true
  }

  /** The signals that are kept. @throws {RunError} `RUN_UNREADABLE`. */
  async #box(): Promise<readonly Signal[]> {
    const { key } = this.facts
    const entry = await this.#certainly(() => this.#room.boxes.get(key))
    return this.#signalsIn(entry)
  }

  #signalsIn(entry: Entry | undefined): readonly Signal[] {
    return readable(this.facts, 'signals', () => readBox(entry?.bytes))
  }

  /** The head that is kept. */
  async #found(): Promise<Head | undefined> {
    const bytes = (await this.#room.heads.get(this.facts.key))?.bytes
    return bytes && this.#headIn(bytes)
  }

  /** @throws {RunError} `RUN_UNREADABLE`. */
  #headIn(bytes: Uint8Array): Head {
    return readable(this.facts, this.facts.key, () => readHead(bytes))
  }

  /** Whether it is the head of this run, with the journal that is written here. */
  #isSame(found: Head | undefined): found is Head {
    return found !== undefined && journalIn(found) === journalIn(this.#head)
  }

  /**
   * The head; of one whose starter has died before it was written, as its item has it; without one where
   * its item begins nothing.
   */
  async #headEntry(): Promise<{ readonly bytes: Uint8Array; readonly revision: number } | undefined> {
    const { heads } = this.#room
    const { id: key, bytes } = this.#lease
    const { over } = this.#headIn(bytes)
    return this.#certainly(async () => {
      for (;;) {
        const found = await heads.get(key)
        if (found?.bytes !== undefined && found.revision !== over)
          return { bytes: found.bytes, revision: found.revision }
        if (found?.bytes === undefined && over !== undefined) return undefined
        const revision = await unlessConflict(heads.put(key, bytes, { revision: found?.revision ?? 0 }))
        if (revision !== undefined) return { bytes, revision } // else its starter has written it
      }
    })
  }

  /** @throws {FleetError} `FLEET_CONFLICT` when somebody else has changed it. */
  async #write(change: Partial<Head>): Promise<void> {
    const { heads } = this.#room
    const { key } = this.facts
    await this.#certainly(async () => {
      for (;;) {
        const head = { ...this.#head, ...change }
        const bytes = writeHead(head)
        try {
          this.#revision = await heads.put(key, bytes, { revision: this.#revision })
        } catch (error) {
          if (!hasCode(error, 'FLEET_CONFLICT')) throw error
          const found = await heads.get(key)
          // If they are equal: a write that was not confirmed, and was done.
          const isWritten = found?.bytes !== undefined && Buffer.compare(found.bytes, bytes) === 0
          if (!isWritten && !this.#isCancelledIn(found)) throw error
          this.#revision = (found as Entry).revision
          if (!isWritten) continue
        }
        this.#head = head
        return
      }
    })
  }

  /** Somebody has cancelled it, and nothing else has changed. */
  #isCancelledIn(found: Entry | undefined): boolean {
    const { status, cancelMs: before } = this.#head
    if (found?.bytes === undefined || before !== undefined) return false
    const head = this.#headIn(found.bytes)
    const { cancelMs, status: isNow } = head
    if (cancelMs === undefined || isNow !== status || !this.#isSame(head)) return false
    this.#head = { ...this.#head, cancelMs }
    return true
  }

  async #live(): Promise<void> {
    const { input, id } = this.#head
    const found = this.#read(id, input)
    if (found === undefined) return this.#diverged()
    const { body } = this.#room
    const fiber = forkAsked(() => {
      enter(this, currentFiber())
      return body(found.value as never)
    }, undefined)
    this.#fiber = fiber
    this.#replay.begin()
    if (this.#head.cancelMs !== undefined) void this.#cancel()
    if (this.#isClosing) this.#rested()
    const exit = (await Promise.race([fiber.await(), this.#hasLeft])) as Exit<unknown, unknown> | undefined
    if (this.#leaving === undefined && exit !== undefined) await this.#ended(exit)
    switch (this.#leaving) {
      case 'ended':
        await this.#drop()
        break
      case 'diverged':
        await this.#diverged()
        break
      case 'waiting':
        await this.#wait()
        break
      default:
        this.#lease.again(this.#leaving === 'lost' ? AGAIN_MS : 0)
        if (this.#leaving === 'lost' && this.#why !== undefined && !isForLater(this.#why)) throw this.#why
    }
  }

  #leave(leaving: Leaving, why?: unknown): void {
    if (this.#leaving !== undefined) return
    this.#leaving = leaving
    this.#why = why
    this.#exposed?.end()
    this.#replay?.close()
    this.#leaves.abort()
    const fiber = this.#fiber
    const reason = new RunError('RUN_LEFT', { ...this.facts, reason: REASONS[leaving] })
    // Its code may be what runs now.
    queueMicrotask(() => void (fiber ?? this.#fiber)?.interrupt(reason))
    this.#left()
  }

  #diverge(error: RunError): void {
    this.#leave('diverged', error)
  }

  /** The run ends as its fiber does. */
  async #ended(exit: Exit<unknown, unknown>): Promise<void> {
    try {
      if (exit.kind === 'success') this.#replay.checkEnd()
    } catch (error) {
      return this.#diverge(error as RunError)
    }
    const [status, frame] = await this.#checked(this.#endOf(exit))
    await this.#exposed?.write()
    try {
      const input = inputBeside(this.#head, frame, this.#room.engine.messageBytesMax)
      const end = { status, frame, input, endedMs: this.#room.nowMs(), dueMs: 0, awaits: [] }
      await this.#write(end)
      this.#leave('ended')
    } catch (error) {
      if (!hasCode(error, 'FLEET_CONFLICT')) throw error
      // Cancelled meanwhile, or ended by whoever has it now.
      await this.#look()
      this.#leave('lost')
    }
  }

  /** In development: whether it does the same again. */
  async #checked(end: [RunStatus, Uint8Array]): Promise<[RunStatus, Uint8Array]> {
    const [status, frame] = end
    const { body, check, engine, journals: values } = this.#room
    if (!check || status !== 'done') return end
    const of = { engine, values, id: journalIn(this.#head), run: this.facts, sinceMs: 0 }
    const input: unknown = this.#head.input && decode(this.#head.input)
    try {
      const entries = await new Journal({ ...of, goesOn: () => !this.#isAbandoned, lost: () => {} }).read()
      await checkRepeats(body, { run: this.facts, seed: this.seed, input, entries, frame })
      return end
    } catch (error) {
      if (!(error instanceof RunError) || error.code !== 'RUN_DIFFERS') throw error
      return ['failed', this.#errorFrame(error, 'the error of the run')]
    }
  }

  #endOf(exit: Exit<unknown, unknown>): [RunStatus, Uint8Array] {
    try {
      if (exit.kind === 'success') {
        const frame = encode(exit.value)
        this.#journal.checkSize('the value of the run', frame)
        return ['done', frame]
      }
      if (this.#isCancelled && exit.kind === 'interruption') return this.#cancelledBy(exit)
      const error = exit.kind === 'failure' ? exit.error : exit.kind === 'defect' ? exit.defect : exit.reason
      return ['failed', this.#errorFrame(error, 'the error of the run')]
    } catch (error) {
      return ['failed', this.#errorFrame(error, 'the error of the run')]
    }
  }

  /** What its finalizers have failed with has to be seen. */
  #cancelledBy(exit: Failed): [RunStatus, Uint8Array] {
    const errors = troublesIn(exit).map(thrownBy)
    if (errors.length === 0) return ['cancelled', NOTHING]
    const error = errors.length === 1 ? errors[0] : new AggregateError(errors, 'several finalizers failed')
    return ['failed', this.#errorFrame(error, 'the error of the run')]
  }

  #errorFrame(error: unknown, what: string): Uint8Array {
    const frame = errorFrame(error)
    try {
      this.#journal.checkSize(what, frame)
      return frame
    } catch (tooLarge) {
      return errorFrame(tooLarge)
    }
  }

  /** The item is done: it has ended. */
  async #drop(): Promise<false> {
    const { boxes, report } = this.#room
    const { parent, id } = this.#head
    if (parent !== undefined) await report(parent, { id, key: this.facts.key })
    await this.#certainly(() => boxes.delete(this.facts.key))
    await this.#certainly(() => this.#lease.done())
    return false
  }

  /** It is looked at twice, since a server that was cut off may not have had its head. */
  async #forgotten(): Promise<false> {
    if (this.#lease.attempt === 1) this.#lease.again(AGAIN_MS)
    else await this.#certainly(() => this.#lease.done())
    return false
  }

  /** It waits for other code, or for a class that is registered. */
  async #diverged(): Promise<void> {
    await isDone(this.#write({ status: 'diverged', frame: errorFrame(this.#why) }))
    this.#lease.again(this.#laterMs)
  }

  /** Until other code may have been deployed, or what is damaged been repaired. */
  get #laterMs(): number {
    return Math.min(AGAIN_MS * 2 ** this.#lease.attempt, DIVERGED_MS_MAX)
  }

  /**
   * It leaves memory. Who sends a signal writes it first, and then looks whether the run waits; here that is
   * written first, and then the signals are read: one of both sees the other.
   */
  async #wait(): Promise<void> {
    const { dueMs, awaits } = this.#why as Pick<Head, 'dueMs' | 'awaits'>
    await this.#exposed?.write()
    await this.#write({ status: 'waiting', dueMs, awaits })
    const box = await this.#box()
    const isToEnd = this.#head.cancelMs !== undefined && !this.#isCancelled
    const isAwaited = isToEnd || box.some(({ id, name }) => awaits.includes(name) && !this.#received.has(id))
    const leftMs = Math.max(0, dueMs - this.#room.nowMs())
    this.#lease.again(isAwaited ? 0 : Math.min(leftMs, AGAIN_MS_MAX))
  }

  /** Somebody may have cancelled it, or sent a signal. */
  check(): void {
    if (this.#fiber === undefined || this.#leaving !== undefined) return
    this.#looksAgain = this.#isLooking
    if (this.#isLooking) return
    this.#isLooking = true
    this.#look()
      .catch(() => {}) // looked for again later
      .finally(() => {
        this.#isLooking = false
        if (this.#looksAgain) this.check()
      })
  }

  async #look(): Promise<void> {
    const [found, box] = await Promise.all([this.#found(), this.#room.boxes.get(this.facts.key)])
    if (found === undefined || hasEnded(found)) return this.#leave('ended')
    if (!this.#isSame(found)) return this.#leave('lost')
    if (found.cancelMs !== undefined) void this.#cancel()
    this.#waits.receive(this.#signalsIn(box))
  }

  /** It is to end: when that is recorded, its fiber is interrupted. */
  async #cancel(): Promise<void> {
    if (this.#isCancelled) return
    this.#isCancelled = true
    await orAborted(this.#replay.over, this.whenLeft)
    if (this.#leaving !== undefined) return
    const entry = { kind: 'cancel', key: '', atMs: this.#room.nowMs() } as const
    await this.#busy(() => this.#inTurn(entry), this.whenLeft)
    if (this.#leaving === undefined) this.#interrupt()
  }

  #interrupt(): void {
    void this.#fiber?.interrupt(new RunError('RUN_CANCELLED', this.facts))
  }

  /** Something has begun or ended: it may rest now. */
  #rested(): void {
    this.#endResting()
    if (this.#active > 0 || this.#leaving !== undefined || this.#fiber === undefined) return
    if (this.#isClosing) return this.#leave('closed')
    if (this.#waits.size === 0) return
    const { engine, idleMs, nowMs } = this.#room
    this.#endResting = engine.clock.after(idleMs, () => {
      const { dueMs, names: awaits } = this.#waits
      if (this.#active > 0 || this.#waits.size === 0) return
      if (!this.#journal.isWritten) return this.#rested()
      if (dueMs - nowMs() > idleMs) this.#leave('waiting', { dueMs, awaits })
    })
  }

  /** What fails ends the run here, and its fibers are interrupted; the journal has done so if it is that. */
  async #busy<Value>(work: () => Promise<Value>, interrupted: AbortSignal): Promise<Value | undefined> {
    this.#active++
    this.#endResting()
    try {
      return await work()
    } catch (error) {
      this.#leave('lost', error)
      return await aborted(interrupted)
    } finally {
      this.#active--
      this.#rested()
    }
  }

  /** What was recorded, or else what `live` makes of it. */
  async #asked(what: Asked, interrupted: AbortSignal, live: () => Promise<unknown>): Promise<unknown> {
    this.#endResting()
    let entry: Promise<JournalEntry> | undefined
    try {
      entry = this.#replay.ask(what)
    } catch (error) {
      this.#diverge(error as RunError)
      return aborted(interrupted)
    }
    if (entry !== undefined) {
      const found = await orAborted(entry, interrupted)
      return found === undefined ? undefined : this.#outcome(found, interrupted)
    }
    if (this.#replay.wasLeft(what.key)) return aborted(interrupted)
    await orAborted(this.#replay.over, interrupted)
    if (this.#isClosing) await aborted(interrupted)
    try {
      if (!interrupted.aborted) return await live()
    } finally {
      // The run goes on without it: after a crash it is not begun again.
      if (interrupted.aborted && this.#leaving === undefined) {
        const begunMs = this.running.get(what.key)
        const begun = begunMs === undefined ? {} : { begunMs }
        this.#note({ kind: 'left', key: what.key, atMs: this.#room.nowMs(), ...begun })
      }
    }
    return undefined
  }

  async #outcome({ kind, key, frame }: JournalEntry, interrupted: AbortSignal): Promise<unknown> {
    const found = this.#read(key, frame)
    if (found === undefined) return aborted(interrupted)
    if (kind === 'error') throw found.value
    return found.value
  }

  /** What a frame has; if it cannot be read here, the run diverges. */
  #read(record: string, frame: Uint8Array | undefined): { readonly value: unknown } | undefined {
    try {
      return { value: readable(this.facts, record, () => frame && decode(frame)) }
    } catch (error) {
      this.#diverge(error as RunError)
      return undefined
    }
  }

  /** Nobody waits for it. What cannot be written ends the run here. */
  #note(entry: JournalEntry): void {
    this.#journal.append(entry).catch(() => {})
  }

  /** What was recorded goes on when it is kept, in its turn. */
  async #record(entry: JournalEntry, interrupted: AbortSignal): Promise<unknown> {
    await this.#busy(() => this.#inTurn(entry), interrupted)
    return this.#resumed(entry, interrupted)
  }

  /** Entries that are written at once have their turns in the order of the journal. */
  #inTurn(entry: JournalEntry): Promise<void> {
    return this.#journal.append(entry).then(() => this.#turns.next())
  }

  async #resumed(entry: JournalEntry, interrupted: AbortSignal): Promise<unknown> {
    if (this.#leaving !== undefined) return aborted(interrupted)
    this.#shown()
    return this.#outcome(entry, interrupted)
  }

  step(what: Asked, call: StepCall, interrupted: AbortSignal): Promise<unknown> {
    return this.#asked(what, interrupted, () => this.#step(what, call, interrupted))
  }

  async #step(what: Asked, call: StepCall, interrupted: AbortSignal): Promise<unknown> {
    const { key, name } = what
    const driver = call.retry?.start()
    const failures = [...this.#replay.failures(key)]
    for (const { frame, atMs } of failures) {
      const error = this.#read(key, frame)
      if (error === undefined) return aborted(interrupted)
      driver?.next(error.value, atMs)
    }
    const of = { clock: this.#room.engine.clock, journal: this.#journal, name, interrupted }
    for (;;) {
      const dueMs = failures.at(-1)?.dueMs ?? 0
      if (dueMs > 0) await this.#waits.wait(dueMs, undefined, interrupted)
      if (interrupted.aborted) return undefined
      const about = { key: `${this.facts.name}/${this.#head.id}/${key}`, attempt: failures.length + 1 }
      // Until its end is kept: a process that closes waits for both.
      const entry = await this.#busy(async (): Promise<JournalEntry | undefined> => {
        await this.#checkHeld()
        const begunMs = this.#room.nowMs()
        this.running.set(key, begunMs)
        try {
          const outcome = await this.#spanned(what, about.attempt, () => attempted(call, about, of))
          if (interrupted.aborted) return undefined
          const entry = this.#entryOf(what, outcome, driver, begunMs)
          await (entry.kind === 'failed' ? this.#journal.append(entry) : this.#inTurn(entry))
          return entry
        } finally {
          this.running.delete(key)
        }
      }, interrupted)
      if (entry === undefined) return undefined
      if (entry.kind !== 'failed') return this.#resumed(entry, interrupted)
      failures.push(entry)
    }
  }

  /** With a span, if somebody makes them. */
  async #spanned({ name: step }: Asked, attempt: number, work: () => Promise<Outcome>): Promise<Outcome> {
    const { name: run, key } = this.facts
    const span = meters.steps?.begin({ run, key, step, attempt }, this.#head.trace)
    if (span === undefined) return work()
    const outcome = await span.within(work)
    span.end('error' in outcome ? outcome : undefined)
    return outcome
  }

  /**
   * A process that was suspended, or cut off while a step waited to be retried, may have lost the run: before
   * it has an effect again it writes, which only its holder can.
   */
  async #checkHeld(): Promise<void> {
    const { engine, leaseMs, nowMs } = this.#room
    if (engine.clock.nowMs() - this.#journal.heldMs <= leaseMs / 2) return
    await this.#journal.append({ kind: 'still', key: '', atMs: nowMs() })
  }

  /** What is recorded of an attempt. */
  #entryOf(
    { key, name }: Asked,
    outcome: Outcome,
    driver: ScheduleDriver | undefined,
    begunMs: number,
  ): JournalEntry {
    const atMs = this.#room.nowMs()
    if ('frame' in outcome) return { kind: 'done', key, atMs, begunMs, frame: outcome.frame }
    let { error } = outcome
    let delayMs: number | undefined
    try {
      if (!(error instanceof NonRetryableError)) delayMs = driver?.next(error, atMs)
    } catch (thrown) {
      error = thrown // by a function of the schedule: the step fails with that
    }
    const frame = this.#errorFrame(error, `the error of the step ${JSON.stringify(name)}`)
    if (delayMs === undefined) return { kind: 'error', key, atMs, begunMs, frame }
    return { kind: 'failed', key, atMs, begunMs, frame, dueMs: atMs + delayMs }
  }

  pause(what: Asked, ms: number, interrupted: AbortSignal): Promise<unknown> {
    return this.#asked(what, interrupted, async () => {
      const { key } = what
      await this.#waits.wait(this.#due(key, ms), undefined, interrupted)
      if (interrupted.aborted) return undefined
      return this.#record({ kind: 'done', key, atMs: this.#room.nowMs() }, interrupted)
    })
  }

  /** When what began before, or begins now, is due. */
  #due(key: string, ms: number): number {
    const begun = this.#replay.dueMs(key)
    if (begun !== undefined) return begun
    const atMs = this.#room.nowMs()
    this.#note({ kind: 'begun', key, atMs, dueMs: atMs + ms })
    return atMs + ms
  }

  signal(what: Asked, { name, timeoutMs }: SignalCall, interrupted: AbortSignal): Promise<unknown> {
    return this.#asked(what, interrupted, async () => {
      const { key } = what
      const dueMs = timeoutMs === undefined ? Infinity : this.#due(key, timeoutMs)
      // What is waited for is to be seen.
      if (timeoutMs === undefined && !this.#waits.has(name) && !this.#replay.hasBegun(key))
        this.#note({ kind: 'begun', key, atMs: this.#room.nowMs() })
      const found = await this.#waits.wait(dueMs, name, interrupted)
      if (interrupted.aborted) {
        if (found !== undefined) this.#waits.putBack(found)
        return undefined
      }
      const atMs = this.#room.nowMs()
      if (found === undefined) return this.#record({ kind: 'done', key, atMs }, interrupted)
      const { frame, id: signal } = found
      const sent = what.name === `signal(${name})` ? {} : { sent: name }
      const value = await this.#record({ kind: 'done', key, atMs, frame, signal, ...sent }, interrupted)
      this.#received.add(signal)
      if (this.#leaving === undefined) void this.#forget()
      return value
    })
  }

  /** Signals that are recorded need not wait any more. What is not done now is done with the next one. */
  async #forget(): Promise<void> {
    try {
      await this.#takeOut()
    } catch (error) {
      if (!isForLater(error)) throw error
    }
  }

  /** @throws {FleetError} `FLEET_CONFLICT` when another is sent meanwhile. */
  async #takeOut(): Promise<void> {
    const { boxes } = this.#room
    const { key } = this.facts
    const box = await boxes.get(key)
    const kept = this.#signalsIn(box)
    const left = kept.filter(({ id }) => !this.#received.has(id))
    if (box === undefined || left.length === kept.length) return
    if (left.length === 0) await boxes.delete(key, box.revision)
    else await boxes.put(key, writeBox(left), { revision: box.revision })
  }

  checkpoint(what: Asked, frame: Uint8Array, interrupted: AbortSignal): Promise<unknown> {
    this.#journal.checkSize('the input of checkpoint()', frame)
    // Nothing would interrupt what waits in a finalizer.
    if (this.#isCancelled && interrupted === this.whenLeft) throw new RunError('RUN_CANCELLED', this.facts)
    return this.#asked(what, interrupted, () =>
      this.#busy(async () => {
        // One that is cancelled does not begin again.
        if (this.#isCancelled) return aborted(interrupted)
        // The new journal does not have what was received.
        await this.#certainly(async () => {
          while (!(await isDone(this.#takeOut())));
        })
        const fresh = { id: crypto.randomUUID(), seed: undefined, journal: undefined }
        try {
          await this.#write({ ...fresh, input: frame, before: journalIn(this.#head) })
          this.#leave('anew')
        } catch {
          this.#leave('lost') // to be tried again
        }
        return aborted(interrupted)
      }, interrupted),
    )
  }

  /** Whether the run was further when its code was changed. */
  isPast(what: Asked): boolean {
    return this.#replay.isPast(what)
  }

  patched(what: Asked, interrupted: AbortSignal): Promise<unknown> {
    return this.#asked(what, interrupted, () => {
      const atMs = this.#room.nowMs()
      return this.#record({ kind: 'done', key: what.key, atMs, frame: encode(true) }, interrupted)
    })
  }

  expose(see: () => unknown): void {
    const { engine, exposed } = this.#room
    this.#exposed?.end()
    this.#exposed = new Exposed(engine, exposed, this.facts.key, see)
    // What it shows before that is what it has shown already.
    void orAborted(this.#replay.over, this.whenLeft).then(() => this.#shown())
  }

  /** Something that is shown may have changed. */
  #shown(): void {
    if (this.#leaving === undefined) this.#exposed?.changed()
  }

  children(name: string): Promise<Children> {
    return this.#room.children(name)
  }

  now(what: Asked, interrupted: AbortSignal): Promise<unknown> {
    return this.#asked(what, interrupted, () => {
      const atMs = this.#room.nowMs()
      return this.#record({ kind: 'done', key: what.key, atMs, frame: encode(atMs) }, interrupted)
    })
  }
}
