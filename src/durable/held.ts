/**
 * A run while this process has it: its lease, its head, and how it ends here.
 *
 * Whatever happens that is not recorded leaves the journal as it is, and the run to whoever is lent it next.
 *
 * ```text
 *  lease ─▶ read the head ─▶ ended ─▶ the item is done
 *              │      └─▶ waits, and is not due ─▶ again, when it is
 *              ▼
 *           read the journal ─▶ append that it is held here (the fence) ─▶ replay ─▶ live (live.ts)
 *              │                                                              │
 *              ▼                                                              ▼
 *           diverged, unreadable: the head has why ─▶ again, later      the fiber ends ─▶ end, by revision
 *                                                                        waits for long ─▶ waiting ─▶ again
 *                                                                        lost, closed ─▶ again, at once
 * ```
 * One that is cancelled has that recorded, and is interrupted in its turn: what its finalizers ask for is
 * recorded as all else, also over restarts, and its end is that of its fiber.
 *
 * Over 400 lines: one class, whose methods are the ways of one run and share its head and its lease.
 */
import { meters } from '../base/index.ts'
import type { Exit } from '../fiber/index.ts'
import { type Entry, type Lease, certainly, errorFrame, isDone } from '../fleet/internal.ts'
import { endOf } from './attempt.ts'
import { forgetSignals, signalsIn } from './boxes.ts'
import { checkedEnd } from './check.ts'
import { RunError, type RunFacts, isForLater, readable } from './errors.ts'
import { clear, drop, headOfItem, journalNamed, replaceHead } from './heads.ts'
import { type Running, writeHolding } from './holder.ts'
import { Journal } from './journal.ts'
import { LiveRun } from './live.ts'
import { type Head, type Signal, hasEnded, inputBeside, journalIn, readHead } from './records.ts'
import type { OwnRoom } from './room.ts'
import { Slot } from './slot.ts'
import type { Kept } from './values.ts'

/** How often a lease is extended in its span. */
const EXTENSIONS = 3
/** Longest time until one that waits is lent again, which then waits on. */
const AGAIN_MS_MAX = 86_400_000
/** Until a run that was lost or has diverged is lent again; of the latter twice as long each time. */
const AGAIN_MS = 250
const DIVERGED_MS_MAX = 300_000
/** Until one is lent again that goes on with another release, which a process has. */
const ELSEWHERE_MS = 500

const isUnreadable = (error: unknown): error is RunError =>
  error instanceof RunError && error.code === 'RUN_UNREADABLE'

export class HeldRun {
  readonly #facts: RunFacts
  readonly #room: OwnRoom
  #lease: Lease
  readonly #lentMs: number
  #head!: Head
  #revision = 0
  #journal!: Journal
  #live: LiveRun | undefined
  #isClosing = false
  /** What is not confirmed is not repeated any more. */
  #isAbandoned = false
  #isOver = false
  #endExtending = (): void => {}
  #isLooking = false
  #looksAgain = false
  #slot: Slot
  #isSlotLost = false

  constructor(room: OwnRoom, lease: Lease) {
    this.#room = room
    this.#lease = lease
    this.#lentMs = room.engine.clock.nowMs()
    this.#facts = { name: room.name, key: lease.id }
    this.#slot = new Slot(room, () => {
      this.#isSlotLost = true
      this.#live?.leave('lost')
    })
  }

  /** When the attempts that run have begun, by the keys of their steps. */
  get running(): Running | undefined {
    return this.#live?.running
  }

  /** It is lent to this process again, since its lease was lost. @returns False: this process leaves it. */
  async adopt(lease: Lease): Promise<boolean> {
    const isItsOwn = lease.addedMs === this.#lease.addedMs
    // Another item is that of the next run with its key, unless the head that is read behind it is its own.
    // What cannot be read now is lent again.
    if (!isItsOwn && !(await this.#isLive().catch(() => false))) return false
    const isAdopted = !this.#isOver && (this.#live === undefined ? isItsOwn : this.#live.left === undefined)
    if (isAdopted) this.#lease = lease
    const limit = isAdopted ? this.#live && this.#head.limit : undefined
    if (limit !== undefined) this.#slot.free(limit, lease).catch(() => {}) // its time ends
    return isAdopted
  }

  async #isLive(): Promise<boolean> {
    const found = this.#live && (await this.#found())
    return this.#isSame(found) && !hasEnded(found)
  }

  /** Resolves when this process has left it. */
  async run(): Promise<void> {
    this.#extend(1)
    try {
      const live = await this.#begin()
      if (live !== undefined) await this.#perform(live)
    } catch (error) {
      if (!isForLater(error)) throw error
      await this.#slot.end()
      this.#lease.again(isUnreadable(error) ? this.#laterMs : AGAIN_MS)
    } finally {
      this.#isOver = true
      this.#live?.leave('lost')
      this.#endExtending()
      await this.#slot.end()
    }
  }

  /** Let the steps that run end, and begin none. */
  close(): void {
    this.#isClosing = true
    this.#live?.close()
  }

  /** Leave it as it is, now. */
  abandon(): void {
    this.#isAbandoned = true
    this.#live?.leave('closed')
  }

  #extend(count: number): void {
    const { engine, leaseMs } = this.#room
    this.#endExtending = engine.clock.after(leaseMs / EXTENSIONS, () => {
      this.#lease.extend()
      const { running } = this
      // Again with the next, if it fails.
      if (running !== undefined)
        writeHolding(this.#room, this.#facts.key, journalIn(this.#head), running).catch(() => {})
      // What was reported may not have arrived.
      if (count % EXTENSIONS === 0) this.check()
      if (this.#isInTheWay()) this.#live?.close()
      this.#extend(count + 1)
    })
  }

  /** Whether it waits for a child, which may wait for its slot: it begins nothing, and others have that. */
  #isInTheWay(): boolean {
    const limit = this.#live && this.#head.limit
    return limit !== undefined && this.#live?.awaitsChild === true && this.#room.limiter.isAwaited(limit)
  }

  readonly #goesOn = (): boolean => !this.#isAbandoned

  #certainly<Value>(work: () => Promise<Value>): Promise<Value> {
    return certainly(this.#room.engine, work, this.#goesOn)
  }

  /** Its code; `undefined`: it is not to run here now. */
  async #begin(): Promise<LiveRun | undefined> {
    const entry = await headOfItem(this.#room, this.#facts, () => this.#lease, this.#goesOn)
    if (entry === undefined) return this.#forgotten()
    this.#head = this.#headIn(entry.bytes)
    this.#revision = entry.revision
    if (hasEnded(this.#head)) return this.#drop()
    try {
      return await this.#open()
    } catch (error) {
      if (!isUnreadable(error)) throw error
      return this.#diverged(error)
    }
  }

  /** Reads its journal, unless it still waits. */
  async #open(): Promise<LiveRun | undefined> {
    const { engine, journals, nowMs } = this.#room
    const box = await this.#box()
    const { status, dueMs, awaits, cancelMs, before, next } = this.#head
    const leftMs = dueMs - nowMs()
    const waits = status === 'waiting' && leftMs > 0 && cancelMs === undefined
    if (waits && !box.some(({ name }) => awaits.includes(name))) {
      this.#lease.again(Math.min(leftMs, AGAIN_MS_MAX))
      return undefined
    }
    if (await this.#isElsewhere()) {
      this.#lease.again(ELSEWHERE_MS)
      return undefined
    }
    if (cancelMs === undefined && !(await this.#enters())) return undefined
    const [run, goesOn] = [this.#facts, this.#goesOn]
    if (before !== undefined) await journalNamed(this.#room, run, before, goesOn).remove()
    const lost = (): void => this.#live?.leave('lost')
    const isNamed = async (): Promise<boolean> => this.#isSame(await this.#certainly(() => this.#found()))
    const times = { sinceMs: this.#lentMs, sureMs: this.#room.leaseMs / 2 }
    const of = { engine, values: journals, id: journalIn(this.#head), run, ...times, goesOn, lost, isNamed }
    this.#journal = new Journal(of)
    const entries = await this.#journal.read()
    // Its item may be a new one, of who has woken it.
    const isAnother = this.#lease.attempt > 1 || entries.length > 0
    const by = crypto.randomUUID()
    const nothing = { frame: undefined, dueMs: 0, awaits: [], before: undefined } as const
    const release = this.#room.releases?.own ?? this.#head.release
    const running = { status: 'running', ...nothing, by, release } as const
    // Also where it runs already: who had it before, and has not died, must not write that it waits.
    const isFresh = this.#head.status === 'running' && (before ?? next) === undefined && !isAnother
    const isWritten = isFresh && release === this.#head.release
    if (!isWritten && !(await this.#write(running))) {
      this.#lease.again(AGAIN_MS)
      return undefined
    }
    if (next !== undefined) {
      // Of who was to run it again, and finds another head.
      await journalNamed(this.#room, run, next, goesOn).remove()
      this.#head = { ...this.#head, next: undefined }
    }
    if (isAnother) await this.#journal.append({ kind: 'held', key: '', atMs: nowMs() })
    const live = new LiveRun({ room: this.#room, run, head: this.#head, journal: this.#journal, entries })
    live.receive(box)
    if (this.#isClosing) live.close()
    if (this.#isAbandoned) live.leave('closed')
    if (this.#isSlotLost) live.leave('lost')
    return (this.#live = live)
  }

  /** Whether a process has the release that has begun it, and this one has another. */
  async #isElsewhere(): Promise<boolean> {
    const { releases } = this.#room
    const { release } = this.#head
    if (releases === undefined || release === undefined || release === releases.own) return false
    return releases.has(release)
  }

  /** Whether its limit lets it run. If not it is lent again when its turn is called, or it is cancelled. */
  async #enters(): Promise<boolean> {
    const refused = this.#head.limit && (await this.#slot.enter(this.#head.limit, this.#lease))
    if (refused === undefined) return true
    const { waitMs, isInLine } = refused
    // Where a process has it still, that one alone writes the head.
    const isParked = isInLine && this.#head.status === 'running'
    const isWritten = !isParked || (await this.#write({ status: 'waiting', dueMs: 0, awaits: [] }))
    this.#lease.again(!isWritten ? AGAIN_MS : this.#head.cancelMs === undefined ? waitMs : 0)
    return false
  }

  /** The signals that are kept. @throws {RunError} `RUN_UNREADABLE`. */
  async #box(): Promise<readonly Signal[]> {
    return signalsIn(this.#facts, await this.#certainly(() => this.#room.boxes.get(this.#facts.key)))
  }

  /** The head that is kept. */
  async #found(): Promise<Head | undefined> {
    const bytes = (await this.#room.heads.get(this.#facts.key))?.bytes
    return bytes && this.#headIn(bytes)
  }

  /** @throws {RunError} `RUN_UNREADABLE`. */
  #headIn(bytes: Uint8Array): Head {
    return readable(this.#facts, this.#facts.key, () => readHead(bytes))
  }

  /** Whether it is the head of this run, with the journal that is written here. */
  #isSame(found: Head | undefined): found is Head {
    return found !== undefined && journalIn(found) === journalIn(this.#head)
  }

  /** @returns False: somebody else has changed it, and not by cancelling the run alone. */
  async #write(change: Partial<Head>): Promise<boolean> {
    for (;;) {
      const head = { ...this.#head, ...change }
      const { key } = this.#facts
      const revision = await replaceHead(this.#room, key, head, this.#revision, { goesOn: this.#goesOn })
      if (revision !== undefined) {
        this.#revision = revision
        this.#head = head
        return true
      }
      const found = await this.#certainly(() => this.#room.heads.get(key))
      if (!this.#isCancelledIn(found)) return false
      this.#revision = found.revision
    }
  }

  /** Somebody has cancelled it, and nothing else has changed. */
  #isCancelledIn(found: Entry | undefined): found is Entry {
    const { status, cancelMs: before } = this.#head
    if (found?.bytes === undefined || before !== undefined) return false
    const head = this.#headIn(found.bytes)
    const { cancelMs, cancelBy, status: isNow } = head
    if (cancelMs === undefined || isNow !== status || !this.#isSame(head)) return false
    this.#head = { ...this.#head, cancelMs, cancelBy }
    return true
  }

  /** Runs its code, and does what follows from how it has ended or was left. */
  async #perform(live: LiveRun): Promise<void> {
    const exit = await live.run()
    if (exit !== undefined) await this.#ended(live, exit)
    // Before another process has its item.
    await this.#slot.end()
    const { how, why } = live.left!
    switch (how) {
      case 'ended':
        return this.#drop()
      case 'diverged':
        return this.#diverged(why)
      case 'waiting':
        return this.#wait(live, why as Pick<Head, 'dueMs' | 'awaits'>)
      case 'anew':
        return this.#anew(live, why as Kept)
      default:
        this.#lease.again(how === 'lost' ? AGAIN_MS : 0)
        if (how === 'lost' && why !== undefined && !isForLater(why)) throw why
    }
  }

  /** The run ends as its fiber does. */
  async #ended(live: LiveRun, exit: Exit<unknown, unknown>): Promise<void> {
    try {
      if (exit.kind === 'success') live.checkEnd()
    } catch (error) {
      return live.leave('diverged', error)
    }
    const of = { room: this.#room, run: this.#facts, head: this.#head, goesOn: this.#goesOn }
    const [status, frame] = await checkedEnd(endOf(exit, live.isCancelled, this.#journal), of, this.#journal)
    await live.show()
    const input = inputBeside(this.#head, frame, this.#room.engine.messageBytesMax)
    const timed = this.#head.ttlMs !== undefined && { records: this.#journal.count }
    const end = { status, frame, input, endedMs: this.#room.nowMs(), dueMs: 0, awaits: [], ...timed }
    if (await this.#write(end)) {
      meters.ended?.('runsEnded', this.#facts.name, status)
      return live.leave('ended')
    }
    // Cancelled meanwhile, or ended by whoever has it now.
    await this.#look(live)
    live.leave('lost')
  }

  /** The item is done: it has ended. */
  async #drop(): Promise<undefined> {
    const { parent, id } = this.#head
    const { key } = this.#facts
    if (parent !== undefined) await this.#room.report(parent, { id, key })
    await this.#certainly(() => clear(this.#room, this.#facts, 'signals'))
    // What it has written is deleted with all else.
    if (this.#live !== undefined) await this.#journal.whenWritten
    await drop(this.#room, this.#facts, this.#head, () => this.#lease, this.#goesOn)
  }

  /** It is looked at twice, since a server that was cut off may not have had its head. */
  async #forgotten(): Promise<undefined> {
    if (this.#lease.attempt === 1) this.#lease.again(AGAIN_MS)
    else await this.#certainly(() => this.#lease.done())
  }

  /** It waits for other code, or for a class that is registered. */
  async #diverged(why: unknown): Promise<undefined> {
    await this.#write({ status: 'diverged', frame: errorFrame(why) })
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
  async #wait(live: LiveRun, { dueMs, awaits }: Pick<Head, 'dueMs' | 'awaits'>): Promise<void> {
    await live.show()
    if (!(await this.#write({ status: 'waiting', dueMs, awaits }))) return this.#lease.again(AGAIN_MS)
    const box = await this.#box()
    const isToEnd = this.#head.cancelMs !== undefined && !live.isCancelled
    const isAwaited = isToEnd || box.some(({ id, name }) => awaits.includes(name) && !live.received.has(id))
    const leftMs = Math.max(0, dueMs - this.#room.nowMs())
    this.#lease.again(isAwaited ? 0 : Math.min(leftMs, AGAIN_MS_MAX))
  }

  /** By `checkpoint()`. */
  async #anew({ received }: LiveRun, input: Kept): Promise<void> {
    try {
      // The new journal does not have what was received.
      await this.#certainly(async () => {
        while (!(await isDone(forgetSignals(this.#room, this.#facts, received))));
      })
      const fresh = { id: crypto.randomUUID(), seed: undefined, journal: undefined, release: undefined }
      const isWritten = await this.#write({ ...fresh, input, before: journalIn(this.#head) })
      this.#lease.again(isWritten ? 0 : AGAIN_MS)
    } catch {
      this.#lease.again(AGAIN_MS) // to be tried again
    }
  }

  /** Somebody may have cancelled it, or sent a signal. */
  check(): void {
    const live = this.#live
    if (live === undefined || live.left !== undefined) return
    this.#looksAgain = this.#isLooking
    if (this.#isLooking) return
    this.#isLooking = true
    this.#look(live)
      .catch(() => {}) // looked for again later
      .finally(() => {
        this.#isLooking = false
        if (this.#looksAgain) this.check()
      })
  }

  async #look(live: LiveRun): Promise<void> {
    const [found, box] = await Promise.all([this.#found(), this.#room.boxes.get(this.#facts.key)])
    if (found === undefined || hasEnded(found)) return live.leave('ended')
    if (!this.#isSame(found)) return live.leave('lost')
    if (found.cancelMs !== undefined) void live.cancel()
    live.receive(signalsIn(this.#facts, box))
  }
}
