/**
 * The frozen values of a thread by key, each with the version it was read at.
 *
 * A view is current while the core's version word of its key (some keys share one) is unchanged; then the
 * core is not called. The keys are property names of dictionary objects: the engine finds a string that was
 * used before by its address, whereas a Map compares strings.
 */

/** Most views of one handle. The older half is dropped at once. */
const VIEWS_MAX = 16_384
/** Most bytes of their encoded values; a single larger value is kept as well. */
const BYTES_MAX = 64 * 1024 * 1024
/** Every 64th read of a view calls the core. */
const ASK_EVERY = 64

/** A frozen value and its version. */
export interface View {
  readonly value: unknown
  /** Index of the key's version word, and the word when the value was read. */
  readonly index: number
  word: number
  readonly version: number
  readonly versionHigh: number
  /** Expiration by performance.now(); 0 means never. */
  deadline: number
  /** Encoded length. */
  readonly bytes: number
  /** Reads since the last call of the core. */
  looks: number
}

type Dictionary = Record<string, View | undefined>

export class Views {
  readonly #versions: Uint32Array
  #recent = dictionary()
  #earlier = dictionary()
  #count = 0
  /** Bytes of the recent views. */
  #bytes = 0

  /** @param versions The core's version words; empty where external memory is not allowed. */
  constructor(versions: Uint32Array) {
    this.#versions = versions
  }

  /**
   * Returns the view of a key unless the key has been written or the entry has expired.
   *
   * The version is read by a plain load, because an atomic load is a call and a quarter of the whole cost.
   * The plain load is correct. A thread learns of a write by an atomic operation, a message or a lock of the
   * core, and neither the engine nor the processor moves a load before one of these. Of two threads that each
   * write a key and then read the other's, one sees the other's write, because a write ends with a fence
   * (crates/store/src/memory/words.rs). However, an engine may hoist the load out of a loop that does
   * nothing else. Therefore every 64th read calls the core, which also counts all of them and marks the
   * entry as used.
   */
  unchanged(key: string): View | undefined {
    const view = this.#recent[key]
    if (view === undefined || this.#versions[view.index] !== view.word) return undefined
    if (view.looks === ASK_EVERY - 1) return undefined
    if (view.deadline !== 0 && performance.now() >= view.deadline) return undefined
    view.looks += 1
    return view
  }

  /** The last view of a key, current or not. */
  last(key: string): View | undefined {
    return this.#recent[key] ?? this.#earlier[key]
  }

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

  forget(key: string): void {
    delete this.#earlier[key]
    const old = this.#recent[key]
    if (old === undefined) return
    delete this.#recent[key]
    this.#count -= 1
    this.#bytes -= old.bytes
  }
}

/** Without a prototype, so that every string is a valid key. */
function dictionary(): Dictionary {
  return Object.create(null) as Dictionary
}
