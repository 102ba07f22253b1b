/**
 * This thread's handle on a lock, semaphore, channel or counter of the core.
 *
 * A named object stays in the process until it is disposed of. An anonymous one is freed with its only
 * handle; once that handle has been sent to another thread, the object stays until it is disposed of as well,
 * because handles in transit cannot be counted.
 */
import { Kind, type Scratch, thisScratch } from '../bridge/index.ts'
import { native } from '../native/index.ts'
import { SyncError, type SyncFacts, wrong } from './errors.ts'

const NAME_LENGTH_MAX = 256
/** Most names that an error lists. */
const KNOWN_MAX = 10

/** The classes, as errors name them. */
const CLASS = {
  lock: 'Lock',
  rwLock: 'RwLock',
  semaphore: 'Semaphore',
  channel: 'Channel',
  counter: 'AtomicCounter',
} as const

type KindName = keyof typeof CLASS

/** The options that state an amount. */
const AMOUNT: Partial<Record<KindName, string>> = { semaphore: 'permits', channel: 'messagesMax' }

/** How a handle travels to another thread. */
export interface Saved {
  readonly number: number
  readonly name: string
}

interface Collectable {
  readonly handle: number
  readonly number: number
  /** No other thread can have a handle. */
  isOnly: boolean
}

const collected = new FinalizationRegistry<Collectable>(({ handle, number, isOnly }) => {
  native.syncDrop(handle)
  if (isOnly) native.syncForget(number)
})

export class SyncHandle {
  readonly which: SyncFacts
  /** The object's number in the process. */
  readonly number: number
  /** The number of this handle in the core; each thread numbers its own. */
  readonly id: number
  /** Permits or the most messages; 0 for a counter. */
  readonly amount: number
  readonly scratch: Scratch
  readonly #collectable: Collectable

  private constructor(kind: KindName, name: string, number: number, handle: number, isOnly: boolean) {
    this.which = { kind, name }
    this.number = number
    this.id = handle
    this.amount = native.syncAmount(handle)
    this.scratch = thisScratch()
    this.#collectable = { handle, number, isOnly }
    collected.register(this, this.#collectable)
  }

  static anonymous(kind: KindName, amount: number): SyncHandle {
    thisScratch()
    const number = native.syncMake(Kind[kind], '', amount, false)
    return new SyncHandle(kind, '', number, native.syncOpen(number), true)
  }

  /** @throws {SyncError} `SYNC_EXISTS`, `SYNC_ARGUMENT`. */
  static create(kind: KindName, name: string, amount: number): SyncHandle {
    checkName(`${CLASS[kind]}.create()`, name)
    thisScratch()
    for (;;) {
      const number = native.syncMake(Kind[kind], name, amount, true)
      if (number === 0) throw new SyncError('SYNC_EXISTS', { kind, name })
      const handle = native.syncOpen(number)
      // Below 0 when another thread has disposed of it in between; the name is free again.
      if (handle >= 0) return new SyncHandle(kind, name, number, handle, false)
    }
  }

  /** @throws {SyncError} `SYNC_UNKNOWN`, `SYNC_ARGUMENT`. */
  static get(kind: KindName, name: string): SyncHandle {
    checkName(`${CLASS[kind]}.get()`, name)
    thisScratch()
    const number = native.syncNumber(Kind[kind], name)
    const handle = number === 0 ? -1 : native.syncOpen(number)
    if (handle >= 0) return new SyncHandle(kind, name, number, handle, false)
    throw new SyncError('SYNC_UNKNOWN', { kind, name, known: native.syncNames(Kind[kind], KNOWN_MAX) })
  }

  /** @throws {SyncError} `SYNC_ARGUMENT`, also when the object exists with another amount. */
  static getOrCreate(kind: KindName, name: string, amount: number): SyncHandle {
    checkName(`${CLASS[kind]}.getOrCreate()`, name)
    thisScratch()
    for (;;) {
      const number = native.syncNumber(Kind[kind], name) || native.syncMake(Kind[kind], name, amount, true)
      const handle = number === 0 ? -1 : native.syncOpen(number)
      if (handle < 0) continue
      const opened = new SyncHandle(kind, name, number, handle, false)
      if (opened.amount === amount || kind === 'counter') return opened
      const expected = `${opened.amount}, as the ${kind} "${name}" exists with it`
      throw wrong(`${CLASS[kind]}.getOrCreate(): ${AMOUNT[kind]}`, expected, amount)
    }
  }

  /**
   * The handle that another thread has sent.
   * @throws {SyncError} `SYNC_UNKNOWN` when the object has been disposed of.
   * @throws {TypeError} for a damaged frame.
   */
  static load(kind: KindName, { number, name }: Saved): SyncHandle {
    if (typeof name !== 'string') throw new TypeError(`a ${kind} without a name`)
    thisScratch()
    const handle = native.syncOpen(number)
    if (handle < 0) throw new SyncError('SYNC_UNKNOWN', { kind, name })
    return new SyncHandle(kind, name, number, handle, false)
  }

  save(): Saved {
    this.#collectable.isOnly = false
    return { number: this.number, name: this.which.name }
  }

  /** Removes the object from the process. Threads that have a handle can continue to use it. */
  dispose(): void {
    native.syncForget(this.number)
  }
}

/**
 * The handle of an object that is being constructed: the one this module passes, or a new anonymous object's.
 * @throws {SyncError} `SYNC_ARGUMENT` for any other argument.
 */
export function handleOrNew(kind: KindName, amount: number, argument: unknown): SyncHandle {
  if (argument instanceof SyncHandle) return argument
  if (argument === undefined) return SyncHandle.anonymous(kind, amount)
  const expected = `no argument: use ${CLASS[kind]}.getOrCreate(name) for a named one`
  throw wrong(`new ${CLASS[kind]}()`, expected, argument, { verb: 'takes' })
}

function checkName(call: string, name: unknown): void {
  if (typeof name !== 'string' || name === '' || name.length > NAME_LENGTH_MAX)
    throw wrong(`${call}: name`, `a string of 1 to ${NAME_LENGTH_MAX} characters`, name)
}
