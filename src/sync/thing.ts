/**
 * What all of them are: a number in the process, and this thread's handle on it.
 *
 * A thing with a name is made by whoever asks for it first, and stays until it is disposed of. One without a
 * name goes with its only handle; once that has been sent to another thread it stays as well, because
 * somebody who is about to receive a handle cannot be seen.
 */
import { native } from '../native/index.ts'
import { Kind, type Scratch, thisScratch } from '../bridge/index.ts'
import { SyncError, type Which, wrong } from './errors.ts'

const NAME_LENGTH_MAX = 256

/** A thing that arrived from another thread. */
export class Arrived {
  readonly number: number
  readonly name: string

  /**
   * @param saved What `saveThing` made.
   * @throws {TypeError} when it is something else: from a damaged frame.
   */
  constructor(saved: Saved) {
    if (typeof saved.name !== 'string') throw new TypeError('a thing without a name')
    this.number = saved.number
    this.name = saved.name
  }
}

/** How a thing travels. */
export interface Saved {
  readonly number: number
  readonly name: string
}

/** What is left to do when nobody has a handle of this thread any more. */
interface Left {
  readonly handle: number
  readonly number: number
  /** Nobody else can know it. */
  isOnly: boolean
}

const gone = new FinalizationRegistry<Left>(({ handle, number, isOnly }) => {
  native.syncDrop(handle)
  if (isOnly) native.syncForget(number)
})

export class Thing {
  /** Its name; `''` when it has none. */
  readonly name: string
  /** Its number in the process. @internal */
  readonly number: number
  /** This thread's handle. @internal */
  readonly handle: number
  /** What it holds: permits or messages. @internal */
  readonly amount: number
  readonly #left: Left
  /** @internal */
  readonly which: Which
  readonly #scratch: Scratch

  /**
   * @throws {SyncError} `SYNC_DIFFERENT`, `SYNC_UNKNOWN`, `SYNC_ARGUMENT`.
   * @internal
   */
  constructor(kind: keyof typeof Kind, name: string | Arrived | undefined, amount: number) {
    this.#scratch = thisScratch()
    let [number, handle] = [0, -1]
    if (name instanceof Arrived) {
      this.name = name.name
      number = name.number
      handle = native.syncOpen(number)
      if (handle < 0) throw new SyncError('SYNC_UNKNOWN', { kind })
    } else {
      checkName(kind, name)
      this.name = name ?? ''
      // Again when another thread has disposed of it in between: the name is free then.
      while (handle < 0) {
        number = native.syncMake(Kind[kind], this.name, amount, name !== undefined)
        handle = native.syncOpen(number)
      }
    }
    this.which = { kind, name: this.name }
    this.number = number
    this.handle = handle
    this.amount = native.syncAmount(this.handle)
    const isOnly = name === undefined
    this.#left = { handle: this.handle, number: this.number, isOnly }
    gone.register(this, this.#left)
    if (!(name instanceof Arrived) && this.amount !== amount && kind !== 'counter') {
      throw new SyncError('SYNC_DIFFERENT', { ...this.which, expected: amount, found: this.amount })
    }
  }

  /**
   * Forget it: its name is free for a new one, and a handle on its way arrives as `SYNC_UNKNOWN`. Threads
   * that have a handle can go on with it, and it ends with the last of them.
   */
  [Symbol.dispose](): void {
    native.syncForget(this.number)
  }

  /** As `Symbol.dispose`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this[Symbol.dispose]()
  }

  /** This thread's scratch; private, so that whoever freezes or prints a thing stops there. @internal */
  static scratchOf(thing: Thing): Scratch {
    return thing.#scratch
  }

  /** It travels: others may know it from now on. @internal */
  static sent(thing: Thing): void {
    thing.#left.isOnly = false
  }
}

/** A thing on its way to another thread. */
export function saveThing(thing: Thing): Saved {
  Thing.sent(thing)
  return { number: thing.number, name: thing.name }
}

/** An integer from 1 to `max`. @throws {SyncError} `SYNC_ARGUMENT`. */
export function checkCount(argument: string, count: number, max: number): number {
  if (Number.isSafeInteger(count) && count >= 1 && count <= max) return count
  throw wrong(argument, `an integer from 1 to ${max}`, count)
}

function checkName(kind: string, name: unknown): void {
  if (name === undefined) return
  if (typeof name !== 'string' || name === '' || name.length > NAME_LENGTH_MAX)
    throw wrong(`${kind}: name`, `a string of 1 to ${NAME_LENGTH_MAX} characters`, name)
}
