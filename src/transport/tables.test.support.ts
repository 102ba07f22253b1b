/**
 * The tables of a process in one thread, for tests of the codec alone, which load no native core.
 *
 * A test that imports a door of the transport has the tables of the core instead.
 */
import { setFunctionTable } from './functions/functions.ts'
import { type ProcessTables, setProcessTables } from './process.ts'

/** Numbering within this thread. */
export class LocalTables implements ProcessTables {
  readonly #keys: Map<string, number>[] = []
  readonly #names: string[][] = []
  readonly #buffers = new Map<number, ArrayBuffer | SharedArrayBuffer>()
  readonly #entriesMax: number
  #bufferLast = 0
  #token: Uint8Array | undefined

  /** @param entriesMax Most entries of one table; a full one returns 0. */
  constructor(entriesMax = 65_535) {
    this.#entriesMax = entriesMax
  }

  intern(table: number, key: string): number {
    const keys = (this.#keys[table] ??= new Map())
    const known = keys.get(key)
    if (known !== undefined) return known
    if (keys.size >= this.#entriesMax) return 0
    keys.set(key, keys.size + 1)
    const names = (this.#names[table] ??= [''])
    names.push(key)
    return keys.size
  }

  interned(table: number, id: number): string | undefined {
    return id === 0 ? undefined : this.#names[table]?.[id]
  }

  bufferShare(buffer: SharedArrayBuffer): number {
    for (const [id, known] of this.#buffers) if (known === buffer) return id
    this.#buffers.set(++this.#bufferLast, buffer)
    return this.#bufferLast
  }

  bufferMove(buffer: ArrayBuffer): number {
    this.#buffers.set(++this.#bufferLast, structuredClone(buffer, { transfer: [buffer] }))
    return this.#bufferLast
  }

  /** A frame is never refused here: as `bufferMove`. */
  bufferLend(buffer: ArrayBuffer): number {
    return this.bufferMove(buffer)
  }

  bufferLeave(): void {}

  /** The memory of an id. @throws {RangeError} for an unknown id. */
  bufferTake(id: number): ArrayBuffer | SharedArrayBuffer {
    const buffer = this.#buffers.get(id)
    if (buffer === undefined) throw new RangeError(`no buffer has the id ${id}`)
    if (buffer instanceof ArrayBuffer) this.#buffers.delete(id)
    return buffer
  }

  bufferRelease(id: number): void {
    this.#buffers.delete(id)
  }

  frameToken(offer: Uint8Array): void {
    offer.set((this.#token ??= offer.slice()))
  }
}

const local = new LocalTables()
setProcessTables(local)
setFunctionTable({
  intern: (key) => local.intern(0, key),
  interned: (number) => local.interned(0, number),
})
