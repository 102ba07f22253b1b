/**
 * Which releases of its code a definition is offered with: a run goes on with the release that has begun it
 * while a process has that, and with any other when none has, so that no run waits for code that is over.
 *
 * Each process that takes runs has a value here, which ends with its lease, as its runs would.
 */
import { type End, type KeyValue, certainly } from '../fleet/internal.ts'
import { releasesName } from './records.ts'
import type { Offered, Room } from './room.ts'
import { opening } from './rooms.ts'

/** Shortest time that engines keep a value. */
const KEPT_MS_MIN = 1000
/** How often the value of a process is written in its span. */
const EXTENSIONS = 3
/** For so long what was read is taken for what there is. */
const READ_MS = 200
const PAGE_ITEMS = 1000

/** What this process offers, and what the others do. */
export class Releases implements Offered {
  /** That of this process. */
  readonly own: string
  readonly #engine: Room['engine']
  readonly #values: KeyValue
  readonly #leaseMs: number
  readonly #goesOn: () => boolean
  readonly #key: string = crypto.randomUUID()
  #endTimer: End = () => {}
  #isOver = false
  #writing: Promise<unknown> = Promise.resolve()
  #read: Promise<ReadonlySet<string>> | undefined
  #readMs = 0

  private constructor(
    own: string,
    { engine }: Room,
    values: KeyValue,
    of: { readonly leaseMs: number; readonly goesOn: () => boolean },
  ) {
    this.own = own
    this.#engine = engine
    this.#values = values
    this.#leaseMs = of.leaseMs
    this.#goesOn = of.goesOn
  }

  /** Resolves when the others can see it. */
  static async open(
    own: string,
    room: Room,
    of: { readonly leaseMs: number; readonly goesOn: () => boolean },
  ): Promise<Releases> {
    const { engine, name } = room
    const values = await opening(engine, () => engine.keyValue(releasesName(name), { ttlMs: 0 }))
    const releases = new Releases(own, room, values, of)
    await opening(engine, () => releases.#put())
    releases.#extend()
    return releases
  }

  #put(): Promise<number> {
    const ttlMs = Math.max(KEPT_MS_MIN, this.#leaseMs)
    return this.#values.put(this.#key, Buffer.from(this.own), { ttlMs })
  }

  #extend(): void {
    this.#endTimer = this.#engine.clock.after(this.#leaseMs / EXTENSIONS, () => {
      this.#writing = this.#put().catch(() => {}) // again with the next
      this.#extend()
    })
  }

  /** Whether a process offers that release. */
  async has(release: string): Promise<boolean> {
    const nowMs = this.#engine.clock.nowMs()
    if (this.#read === undefined || nowMs - this.#readMs > READ_MS) {
      this.#readMs = nowMs
      this.#read = this.#all()
    }
    return (await this.#read).has(release)
  }

  async #all(): Promise<ReadonlySet<string>> {
    const all = new Set<string>()
    for (let after: string | undefined, isMore = true; isMore;) {
      const page = (): ReturnType<KeyValue['page']> =>
        this.#values.page({ itemsMax: PAGE_ITEMS, ...(after !== undefined && { after }) })
      const { items, next } = await certainly(this.#engine, page, this.#goesOn)
      for (const { bytes } of items) if (bytes !== undefined) all.add(Buffer.from(bytes).toString())
      after = next
      isMore = next !== undefined
    }
    return all
  }

  /** This process takes no more runs. Resolves when the others can see that, or see it later. */
  async end(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    this.#endTimer()
    await this.#writing
    await this.#values.delete(this.#key).catch(() => {}) // it ends by itself
  }
}
