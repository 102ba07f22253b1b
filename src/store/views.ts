/**
 * The values that a thread has frozen, by key, each with the version it was read at.
 *
 * A view is unchanged as long as the word that all keys of its kind share in the native core is what it was:
 * then nothing is asked of the core. The keys are names in objects that are nothing but a dictionary: there a
 * name that was used before is found in the same time however many there are and in whichever order, where a
 * Map compares.
 */

/** Views kept by one handle, at most; about half of them, the ones not asked for since, go together. */
const VIEWS_MAX = 16_384
/** Every so many looks at a version are atomic. */
const ATOMIC_EVERY = 64

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
}

type Dictionary = Record<string, View | undefined>

/** The views of one handle. */
export class Views {
  readonly #versions: Uint32Array
  #recent = dictionary()
  #earlier = dictionary()
  #count = 0
  #looks = 0

  /** Over the core's version words, shared by all threads. */
  constructor(versions: Uint32Array) {
    this.#versions = versions
  }

  /**
   * The view of a key if nobody wrote and its time is not over.
   *
   * The version is read by an atomic load now and then only (a call, a quarter of all that this costs). A
   * plain one is enough to be right: whoever learned that a key was written learned it by an atomic
   * operation, a message or a lock of the core, and no load moves to before one of these, in the engine or in
   * the processor; a changed version that is seen leads into the core, whose lock orders the looks that
   * follow. What a plain load may lack is an end: an engine may move it out of a loop that does nothing else.
   * The atomic ones stay where they are, so such a loop is told too.
   */
  unchanged(key: string): View | undefined {
    const view = this.#recent[key]
    if (view === undefined) return undefined
    const looks = (this.#looks + 1) % ATOMIC_EVERY
    this.#looks = looks
    const word = looks === 0 ? Atomics.load(this.#versions, view.index) : this.#versions[view.index]
    if (word !== view.word) return undefined
    return view.deadline === 0 || performance.now() < view.deadline ? view : undefined
  }

  /** The view of a key, whatever became of it. */
  last(key: string): View | undefined {
    return this.#recent[key] ?? this.#earlier[key]
  }

  /** Keep a view, in place of the one of the same key. */
  keep(key: string, view: View): void {
    if (this.#recent[key] === undefined) {
      if (this.#count === VIEWS_MAX / 2) {
        this.#earlier = this.#recent
        this.#recent = dictionary()
        this.#count = 0
      }
      this.#count += 1
    }
    this.#recent[key] = view
  }

  /** Forget the view of a key that is gone. */
  forget(key: string): void {
    delete this.#earlier[key]
    if (this.#recent[key] === undefined) return
    delete this.#recent[key]
    this.#count -= 1
  }
}

/** Without a prototype, so that every key is a name like any other. */
function dictionary(): Dictionary {
  return Object.create(null) as Dictionary
}
