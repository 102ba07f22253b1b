/**
 * The code of a run that goes on in this process: its fiber, what that asks for, and the journal behind it.
 *
 * Effect, append, sync, resume, in this order: the function of a step is called, its result is appended, and
 * only when that is kept the fiber goes on. Why this process leaves the run is decided once; what follows
 * from that is in held.ts.
 *
 * Over 400 lines: one class, each of whose methods is something that the code of a run asks for.
 */
import { type Exit, type Fiber, currentFiber } from '../fiber/index.ts'
import { forkAsked } from '../fiber/internal.ts'
import { attempted, entryOf } from './attempt.ts'
import { forgetSignals } from './boxes.ts'
import {
  type Asked,
  type Asking,
  type Begin,
  type Live,
  type SignalCall,
  type StepCall,
  enter,
} from './context.ts'
import { RunError, type RunFacts, isForLater, readable } from './errors.ts'
import { Exposed } from './exposed.ts'
import { aborted, orAborted } from './interrupts.ts'
import type { Journal } from './journal.ts'
import type { Head, JournalEntry, Signal } from './records.ts'
import { Replay, Turns } from './replay.ts'
import type { Children, OwnRoom } from './room.ts'
import { type Kept, keptOf, valueOf } from './values.ts'
import { Waits } from './waits.ts'

type Leaving = 'lost' | 'ended' | 'diverged' | 'waiting' | 'closed' | 'anew'
const REASONS: Readonly<Record<Leaving, string>> = {
  lost: 'another process has it, or its journal cannot be written',
  ended: 'it has ended',
  diverged: 'its code does not fit its journal',
  waiting: 'it waits for long',
  closed: 'its runs were closed',
  anew: 'its journal begins anew',
}

/** How this process leaves a run, and what belongs to that. */
export interface Left {
  readonly how: Leaving
  readonly why: unknown
}

interface LiveOf {
  readonly room: OwnRoom
  readonly run: RunFacts
  readonly head: Head
  readonly journal: Journal
  /** What was recorded by now. */
  readonly entries: readonly JournalEntry[]
}

export class LiveRun implements Asking, Live {
  readonly facts: RunFacts
  /** When the attempts that run have begun, by the keys of their steps. */
  readonly running = new Map<string, number>()
  readonly #room: OwnRoom
  readonly #head: Head
  readonly #journal: Journal
  readonly #replay: Replay
  readonly #waits: Waits
  /** The ids of the signals that are recorded. */
  readonly received: Set<string>
  readonly #turns = new Turns()
  readonly #leaves = new AbortController()
  /** Whether it was, and that is recorded or will be. */
  isCancelled: boolean
  #fiber: Fiber<unknown, unknown> | undefined
  #left: Left | undefined
  #settle: () => void = () => {}
  readonly #hasLeft = new Promise<void>((resolve) => (this.#settle = resolve))
  #isClosing = false
  /** Steps that run, and what is being appended. */
  #active = 0
  #endResting = (): void => {}
  #exposed: Exposed | undefined

  constructor({ room, run, head, journal, entries }: LiveOf) {
    this.#room = room
    this.facts = run
    this.#head = head
    this.#journal = journal
    this.#replay = new Replay(run, entries, () => this.#interrupt())
    this.isCancelled = this.#replay.isCancelled
    this.received = this.#replay.signals
    this.#waits = new Waits(room.engine.clock, room.nowMs, this.received, () => this.#rested())
  }

  get seed(): string {
    return this.#head.seed ?? this.#head.id
  }

  /** How this process has left it; `undefined`: it has not. */
  get left(): Left | undefined {
    return this.#left
  }

  get leftReason(): string | undefined {
    return this.#left && REASONS[this.#left.how]
  }

  get whenLeft(): AbortSignal {
    return this.#leaves.signal
  }

  /** Runs its code. @returns How that has ended; `undefined`: this process leaves the run before. */
  async run(): Promise<Exit<unknown, unknown> | undefined> {
    const { id, input, cancelMs } = this.#head
    const found = this.#read(id, input)
    if (found === undefined || this.#left !== undefined) return undefined
    const { body } = this.#room
    const fiber = (this.#fiber = forkAsked(() => {
      enter(this, currentFiber())
      return body(found.value as never)
    }, undefined))
    this.#replay.begin()
    if (cancelMs !== undefined) void this.cancel()
    if (this.#isClosing) this.#rested()
    const exit = await Promise.race([fiber.await(), this.#hasLeft])
    return this.#left === undefined && exit !== undefined ? exit : undefined
  }

  /** @throws {RunError} `RUN_DIVERGED` when the code has ended before what was recorded of it. */
  checkEnd(): void {
    this.#replay.checkEnd()
  }

  /** Let the steps that run end, and begin none. */
  close(): void {
    this.#isClosing = true
    this.#rested()
  }

  leave(how: Leaving, why?: unknown): void {
    if (this.#left !== undefined) return
    this.#left = { how, why }
    this.#exposed?.end()
    this.#replay.close()
    this.#endResting()
    this.#leaves.abort()
    const reason = new RunError('RUN_LEFT', { ...this.facts, reason: REASONS[how] })
    // Its code may be what runs now.
    queueMicrotask(() => void this.#fiber?.interrupt(reason))
    this.#settle()
  }

  /** No user can send a signal of such a name. */
  get awaitsChild(): boolean {
    return this.#waits.names.some((name) => name.includes('child('))
  }

  /** The signals that are kept. */
  receive(signals: readonly Signal[]): void {
    this.#waits.receive(signals)
  }

  /** It is to end: when that is recorded, its fiber is interrupted. */
  async cancel(): Promise<void> {
    if (this.isCancelled) return
    this.isCancelled = true
    await orAborted(this.#replay.over, this.whenLeft)
    if (this.#left !== undefined) return
    const entry = { kind: 'cancel', key: '', atMs: this.#room.nowMs() } as const
    await this.#busy(() => this.#inTurn(entry), this.whenLeft)
    if (this.#left === undefined) this.#interrupt()
  }

  #interrupt(): void {
    void this.#fiber?.interrupt(new RunError('RUN_CANCELLED', this.facts))
  }

  /** Something has begun or ended: it may rest now. */
  #rested(): void {
    this.#endResting()
    if (this.#active > 0 || this.#left !== undefined || this.#fiber === undefined) return
    if (this.#isClosing) return this.leave('closed')
    if (this.#waits.size === 0) return
    const { engine, idleMs, nowMs } = this.#room
    this.#endResting = engine.clock.after(idleMs, () => {
      const { dueMs, names: awaits } = this.#waits
      if (this.#active > 0 || this.#waits.size === 0) return
      if (!this.#journal.isWritten) return this.#rested()
      if (dueMs - nowMs() > idleMs) this.leave('waiting', { dueMs, awaits })
    })
  }

  /** What fails ends the run here, and its fibers are interrupted; the journal has done so if it is that. */
  async #busy<Value>(work: () => Promise<Value>, interrupted: AbortSignal): Promise<Value | undefined> {
    this.#active++
    this.#endResting()
    try {
      return await work()
    } catch (error) {
      this.leave('lost', error)
      return await aborted(interrupted)
    } finally {
      this.#active--
      this.#rested()
    }
  }

  async ask(what: Asked, begin: Begin, interrupted: AbortSignal): Promise<unknown> {
    this.#endResting()
    let entry: Promise<JournalEntry> | undefined
    try {
      entry = this.#replay.ask(what)
    } catch (error) {
      this.leave('diverged', error)
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
      if (!interrupted.aborted) return await begin(this, interrupted)
    } finally {
      // The run goes on without it: after a crash it is not begun again.
      if (interrupted.aborted && this.#left === undefined) {
        const [begunMs, atMs] = [this.running.get(what.key), this.#room.nowMs()]
        this.#note({ kind: 'left', key: what.key, atMs, ...(begunMs !== undefined && { begunMs }) })
      }
    }
    return undefined
  }

  async #outcome({ kind, key, frame }: JournalEntry, interrupted: AbortSignal): Promise<unknown> {
    const found = this.#read(key, frame)
    if (kind === 'error' && found !== undefined) throw found.value
    return found === undefined ? aborted(interrupted) : found.value
  }

  /** What a frame has; if it cannot be read here, the run diverges. */
  #read(record: string, frame: Kept | undefined): { readonly value: unknown } | undefined {
    try {
      return { value: readable(this.facts, record, () => valueOf(frame)) }
    } catch (error) {
      this.leave('diverged', error)
      return undefined
    }
  }

  /** Nobody waits for it. What cannot be written ends the run here. */
  #note(entry: JournalEntry): void {
    this.#journal.append(entry).catch(() => {})
  }

  /** What was recorded goes on when it is kept, in its turn. */
  async #record(
    { key }: Asked,
    more: Partial<JournalEntry>,
    interrupted: AbortSignal,
    atMs = this.#room.nowMs(),
  ): Promise<unknown> {
    const entry: JournalEntry = { kind: 'done', key, atMs, ...more }
    await this.#busy(() => this.#inTurn(entry), interrupted)
    return this.#resumed(entry, interrupted)
  }

  /** Entries that are written at once have their turns in the order of the journal. */
  #inTurn(entry: JournalEntry): Promise<void> {
    return this.#journal.append(entry).then(() => this.#turns.next())
  }

  async #resumed(entry: JournalEntry, interrupted: AbortSignal): Promise<unknown> {
    if (this.#left !== undefined) return aborted(interrupted)
    this.#shown()
    return this.#outcome(entry, interrupted)
  }

  async step(what: Asked, call: StepCall, interrupted: AbortSignal): Promise<unknown> {
    const { key, name } = what
    const driver = call.retry?.start()
    const failures = [...this.#replay.failures(key)]
    for (const { frame, atMs } of failures) {
      const error = this.#read(key, frame)
      if (error === undefined) return aborted(interrupted)
      driver?.next(error.value, atMs)
    }
    const { engine, nowMs } = this.#room
    const of = { clock: engine.clock, journal: this.#journal, run: this.facts, trace: this.#head.trace }
    for (;;) {
      const dueMs = failures.at(-1)?.dueMs ?? 0
      if (dueMs > 0) await this.#waits.wait(dueMs, undefined, interrupted)
      if (interrupted.aborted) return undefined
      const about = { key: `${this.facts.name}/${this.#head.id}/${key}`, attempt: failures.length + 1 }
      // Until its end is kept: a process that closes waits for both.
      const entry = await this.#busy(async (): Promise<JournalEntry | undefined> => {
        await this.#checkHeld()
        if (interrupted.aborted) return undefined // meanwhile: nothing would abort its function
        const begunMs = nowMs()
        this.running.set(key, begunMs)
        try {
          const outcome = await attempted(call, about, { ...of, name, interrupted })
          if (interrupted.aborted) return undefined
          const entry = entryOf(what, outcome, { driver, journal: this.#journal, begunMs, atMs: nowMs() })
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

  /**
   * A process that was suspended, or cut off while a step waited to be retried, may have lost the run: before
   * it has an effect again it writes, which only its holder can.
   */
  async #checkHeld(): Promise<void> {
    const { engine, leaseMs, nowMs } = this.#room
    if (engine.clock.nowMs() - this.#journal.heldMs <= leaseMs / 2) return
    await this.#journal.append({ kind: 'still', key: '', atMs: nowMs() })
  }

  async pause(what: Asked, ms: number, interrupted: AbortSignal): Promise<unknown> {
    await this.#waits.wait(this.#due(what.key, ms), undefined, interrupted)
    return interrupted.aborted ? undefined : this.#record(what, {}, interrupted)
  }

  /** When what began before, or begins now, is due. */
  #due(key: string, ms: number): number {
    const begun = this.#replay.dueMs(key)
    if (begun !== undefined) return begun
    const atMs = this.#room.nowMs()
    this.#note({ kind: 'begun', key, atMs, dueMs: atMs + ms })
    return atMs + ms
  }

  async signal(what: Asked, { name, timeoutMs }: SignalCall, interrupted: AbortSignal): Promise<unknown> {
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
    if (found === undefined) return this.#record(what, {}, interrupted)
    const { frame, id: signal } = found
    const more = { frame, signal, ...(what.name !== `signal(${name})` && { sent: name }) }
    const value = await this.#record(what, more, interrupted)
    this.received.add(signal)
    if (this.#left === undefined) void this.#forget()
    return value
  }

  /** Signals that are recorded need not wait any more. What is not done now is done with the next one. */
  #forget(): Promise<void> {
    return forgetSignals(this.#room, this.facts, this.received).catch((error: unknown) => {
      if (!isForLater(error)) throw error
    })
  }

  async checkpoint(_: Asked, frame: Kept, interrupted: AbortSignal): Promise<unknown> {
    this.#journal.checkSize('the input of checkpoint()', frame)
    // Nothing would interrupt what waits in a finalizer.
    if (this.isCancelled && interrupted === this.whenLeft) throw new RunError('RUN_CANCELLED', this.facts)
    // One that is cancelled does not begin again.
    if (!this.isCancelled) this.leave('anew', frame)
    return aborted(interrupted)
  }

  value(what: Asked, see: (atMs: number) => unknown, interrupted: AbortSignal): Promise<unknown> {
    const atMs = this.#room.nowMs()
    return this.#record(what, { frame: keptOf(see(atMs)) }, interrupted, atMs)
  }

  isPast(what: Asked): boolean {
    return this.#replay.isPast(what)
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
    if (this.#left === undefined) this.#exposed?.changed()
  }

  /** Resolves when what it shows is written, or cannot be. */
  async show(): Promise<void> {
    await this.#exposed?.write()
  }

  children(name: string): Promise<Children> {
    return this.#room.children(name)
  }
}
