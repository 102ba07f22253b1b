/**
 * The values that a thread has frozen, by key, each with the version it was read at.
 *
 * As long as the core's version word of a key (some keys share one) is what it was, the view is unchanged,
 * and the core is not asked. The keys are names in objects that are nothing but a dictionary: a string that
 * was used before is found there by its place in memory, however many there are and in whichever order they
 * come; a Map compares.
 */

/** Views kept by one handle, at most; about half of them, the ones not asked for since, go together. */
const VIEWS_MAX = 16_384
/** Bytes of their values as the store has them, at most; a single larger value is kept beside other views. */
const BYTES_MAX = 64 * 1024 * 1024
/** Every so many looks at a view ask the core. */
const ASK_EVERY = 64

/** A frozen value, and what must not have changed since it was made. */
export interface View {
  readonly value: unknown
  /** Which word of the core's tells of writes to the key, and what it said. */
  readonly index: number
  word: number
  readonly version: number
  readonly versionHigh: number
  /** By performance.now(); 0: it does not end. */
  deadline: number
  /** Its length in the store. */
  readonly bytes: number
  /** How often it was looked at since the core was asked. */
  looks: number
}

type Dictionary = Record<string, View | undefined>

/** The views of one handle. */
export class Views {
  readonly #versions: Uint32Array
  #recent = dictionary()
  #earlier = dictionary()
  #count = 0
  /** Of the recent ones. */
  #bytes = 0

  /**
   * Over the core's version words, shared by all threads. Where memory of others is not allowed there are
   * none: then every look asks the core.
   */
  constructor(versions: Uint32Array) {
    this.#versions = versions
  }

  /**
   * The view of a key if nobody wrote and its time is not over.
   *
   * The version is read plainly (an atomic load is a call, a quarter of all that this costs). That is enough
   * to be right. Whoever learned that a key was written learned it by an atomic operation, a message or a
   * lock of the core, and no load moves to before one of these, in the engine or in the processor. Of two
   * threads that each write a key and then look at the other's, one sees the other's write, because a write
   * ends with a fence (crates/store/src/words.rs). What a plain load may lack is an end: an engine may move
   * it out of a loop that does nothing else. So every so many looks at a view go to the core as if it had
   * changed. There they are also counted, all of them, and keep a value hot that is read by views alone.
   */
  unchanged(key: string): View | undefined {
    const view = this.#recent[key]
    if (view === undefined || this.#versions[view.index] !== view.word) return undefined
    if (view.looks === ASK_EVERY - 1) return undefined
    if (view.deadline !== 0 && performance.now() >= view.deadline) return undefined
    view.looks += 1
    return view
  }

  /** The view of a key, whatever became of it. */
  last(key: string): View | undefined {
    return this.#recent[key] ?? this.#earlier[key]
  }

  /** Keep a view, in place of the one of the same key. */
  keep(key: string, view: View): void {
    const old = this.#recent[key]
    if (old === view) return
    if (old !== undefined) {
      this.#count -= 1
      this.#bytes -= old.bytes
    }
    if (this.#count === VIEWS_MAX / 2 || (this.#count > 0 && this.#bytes + view.bytes > BYTES_MAX / 2)) {
      this.#earlier = this.#recent
      this.#recent = dictionary()
      this.#count = 0
      this.#bytes = 0
    }
    this.#count += 1
    this.#bytes += view.bytes
    this.#recent[key] = view
  }

  /** Forget the view of a key that is gone. */
  forget(key: string): void {
    delete this.#earlier[key]
    const old = this.#recent[key]
    if (old === undefined) return
    delete this.#recent[key]
    this.#count -= 1
    this.#bytes -= old.bytes
  }
}

/** Without a prototype, so that every key is a name like any other. */
function dictionary(): Dictionary {
  return Object.create(null) as Dictionary
}
