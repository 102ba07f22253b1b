/**
 * For development: a run that has ended is called a second time with its journal, and what it does then is
 * compared. Code that reads the clock, a random number or anything else that differs is found before a crash
 * finds it.
 *
 * Nothing is recorded, no step is called, and nothing is waited for that was not recorded.
 */
import { type Exit, currentFiber } from '../fiber/index.ts'
import { forkAsked } from '../fiber/internal.ts'
import { failedBy } from './attempt.ts'
import { type Asked, type Asking, enter } from './context.ts'
import { RunError, type RunFacts } from './errors.ts'
import { journalNamed } from './heads.ts'
import { aborted, orAborted } from './interrupts.ts'
import type { Journal } from './journal.ts'
import { type Head, type JournalEntry, type RunStatus, journalIn } from './records.ts'
import { Replay } from './replay.ts'
import type { OwnRoom } from './room.ts'
import { type Kept, isSame, keptOf, valueOf } from './values.ts'

interface Ended {
  readonly run: RunFacts
  readonly seed: string
  readonly input: unknown
  readonly entries: readonly JournalEntry[]
  /** What it has returned, as a frame. */
  readonly frame: Kept
}

/** How a run ends, whose code does the same again if that is checked. */
export async function checkedEnd(
  end: [RunStatus, Kept],
  of: {
    readonly room: OwnRoom
    readonly run: RunFacts
    readonly head: Head
    readonly goesOn: () => boolean
  },
  written: Pick<Journal, 'errorFrame'>,
): Promise<[RunStatus, Kept]> {
  const [status, frame] = end
  const { room, run, head, goesOn } = of
  if (!room.check || status !== 'done') return end
  const { id, seed = id } = head
  const input = valueOf(head.input)
  try {
    const journal = journalNamed(room, run, journalIn(head), goesOn)
    await checkRepeats(room.body, { run, seed, input, entries: await journal.read(), frame })
    return end
  } catch (error) {
    if (!(error instanceof RunError) || error.code !== 'RUN_DIFFERS') throw error
    return failedBy(error, written)
  }
}

/** @throws {RunError} `RUN_DIFFERS` when the second time is not as the first one. */
async function checkRepeats(body: OwnRoom['body'], ended: Ended): Promise<void> {
  const second = new Second(ended)
  const fiber = forkAsked(() => {
    enter(second, currentFiber())
    return body(ended.input as never)
  }, undefined)
  second.begin()
  const exit = await Promise.race<Exit<unknown, unknown> | RunError>([fiber.await(), second.differs])
  if (exit instanceof RunError) {
    await fiber.interrupt(exit)
    throw exit
  }
  const left = second.end()
  if (left !== undefined) throw left
  const isSame = exit.kind === 'success' && hasFrame(exit.value, ended.frame)
  const how = exit.kind === 'success' ? 'returns another value' : `ends with ${exit.kind}`
  if (!isSame) throw new RunError('RUN_DIFFERS', { ...ended.run, second: how })
}

function hasFrame(value: unknown, frame: Kept): boolean {
  try {
    return isSame(keptOf(value), frame)
  } catch {
    return false // what cannot be written is another value
  }
}

class Second implements Asking {
  readonly facts: RunFacts
  readonly seed: string
  readonly leftReason = undefined
  readonly #leaves = new AbortController()
  readonly whenLeft = this.#leaves.signal
  readonly #replay: Replay
  #differ: (error: RunError) => void = () => {}
  /** Resolves when it asks for something else than the first time. */
  readonly differs = new Promise<RunError>((resolve) => (this.#differ = resolve))

  constructor({ run, seed, entries }: Ended) {
    this.facts = run
    this.seed = seed
    this.#replay = new Replay(run, entries, () => {})
  }

  begin(): void {
    this.#replay.begin()
  }

  /** What it was to ask for until its end. */
  end(): RunError | undefined {
    try {
      this.#replay.checkEnd()
      return undefined
    } catch (error) {
      const { recorded } = (error as RunError<'RUN_DIVERGED'>).facts
      return new RunError('RUN_DIFFERS', { ...this.facts, second: `does not ask for ${recorded}` })
    } finally {
      this.#replay.close()
    }
  }

  #differs(asked: string): void {
    this.#replay.close()
    this.#differ(new RunError('RUN_DIFFERS', { ...this.facts, second: `asks for ${asked}` }))
  }

  async ask(what: Asked, _: unknown, interrupted: AbortSignal): Promise<unknown> {
    let entry: Promise<JournalEntry> | undefined
    try {
      entry = this.#replay.ask(what)
    } catch {
      this.#differs(what.name)
      return aborted(interrupted)
    }
    const found = entry && (await orAborted(entry, interrupted))
    if (found !== undefined) {
      const value = valueOf(found.frame)
      if (found.kind === 'error') throw value
      return value
    }
    if (interrupted.aborted || this.#replay.wasLeft(what.key)) return aborted(interrupted)
    await orAborted(this.#replay.over, interrupted)
    // Of a fiber that nobody waits for, it may not have been recorded before the run had ended.
    if (!interrupted.aborted && what.path === '') this.#differs(what.name)
    return aborted(interrupted)
  }

  isPast(what: Asked): boolean {
    return this.#replay.isPast(what)
  }

  expose(): void {}
}
