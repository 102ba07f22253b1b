/**
 * Arguments and results that no message can have: kept in parts, each of them a value, by a reference.
 *
 * The item, the dead letter or the record of a job has the reference, and whoever removes that removes what
 * it refers to. Parts are written before their reference, so a crash between the two leaves some that nothing
 * refers to. Hosts look for those now and then, and pass over what is younger than an hour by the server's
 * clock, which may be referred to yet. Results end by themselves too, soon after their record.
 *
 * Values and not objects: each has its own time to live, and what there is can be listed without its bytes.
 */
import { createHash } from 'node:crypto'
import { randomText } from '../../base/index.ts'
import type { Keeps, KeyValue } from '../engine/engine.ts'
import { checkSize } from '../errors.ts'
import type { SqlClient } from '../job-settings.ts'
import { type Carried, isCount, readParts, written } from '../wire.ts'
import { opened } from '../certainly.ts'
import type { Room } from './listing.ts'
import { RECORD_BYTES, largeName, partsName, readJob, readLetter, readRecord } from './record.ts'

/** What nothing refers to is left alone for so long. */
const YOUNG_MS = 3_600_000
/** A result is kept for so long behind its record, which is written after it. */
const BEHIND_MS = 60_000
/** Manifests that are read at once. */
const SWEEP_ITEMS = 256
/** Key of the mark of a young one, which no reference begins with. */
const YOUNG = '~'

/** What it needs of its owner. */
export interface LargeOptions {
  readonly engine: Keeps
  readonly zone: string
  /** Most bytes of one of them. */
  readonly valueBytesMax: number
  /** Repeat it until it is confirmed, or as long as its owner waits. */
  certainly<Value>(work: () => Promise<Value>): Promise<Value>
}

interface Stores {
  /** A manifest for each reference, and marks of young ones. */
  readonly manifests: KeyValue
  readonly parts: KeyValue
}

/** A new reference: how many bytes, their digest where `isCompared`, and a random part. */
export function referenceTo(frame: Uint8Array, isCompared = false): string {
  const digest = isCompared ? createHash('sha256').update(frame).digest('base64url') : ''
  return `${frame.length}.${digest}.${randomText(12)}`
}

/** How many bytes there are, also of those that are referred to. */
export const bytesOf = (carried: Carried): number =>
  typeof carried === 'string' ? Number.parseInt(carried, 10) : carried.length

export class Large {
  readonly #of: LargeOptions
  readonly #stores = opened(() => this.#open())

  constructor(options: LargeOptions) {
    this.#of = options
  }

  async #open(): Promise<Stores> {
    const { engine, zone } = this.#of
    const [manifests, parts] = await Promise.all(
      [largeName(zone), partsName(zone)].map((name) => engine.keyValue(name, { ttlMs: 0 })),
    )
    return { manifests, parts }
  }

  /** Have the stores. @throws {FleetError} What the engine fails with. */
  async ready(): Promise<void> {
    await this.#of.certainly(() => this.#stores())
  }

  /** Most bytes of what is not large. */
  get #partBytes(): number {
    return this.#of.engine.messageBytesMax - RECORD_BYTES
  }

  /**
   * Write what a reference of a job refers to; doing it again is safe.
   * @param ttlMs Of the record that has the reference. Absent: until it is deleted.
   * @throws {FleetError} `FLEET_TOO_LARGE`, and what the engine fails with.
   */
  async put(reference: string, key: string, frame: Uint8Array, ttlMs?: number): Promise<void> {
    const { certainly, valueBytesMax } = this.#of
    checkSize(frame.length, valueBytesMax)
    const { manifests, parts } = await certainly(() => this.#stores())
    const all = this.#partsOf(frame)
    const how = ttlMs === undefined ? {} : { ttlMs: ttlMs + BEHIND_MS }
    await certainly(() => manifests.put(YOUNG + reference, written('young'), { ttlMs: YOUNG_MS }))
    // Before its parts, which are found by it.
    await certainly(() => manifests.put(reference, written('large', key, all.length), how))
    for (const [index, part] of all.entries())
      await certainly(() => parts.put(`${reference}.${index}`, part, how))
  }

  /**
   * As {@link put} of arguments, within the transaction of a caller that adds the job: what is rolled back
   * has never been there, so nothing is young.
   * @throws What the client throws.
   */
  async putWithin(client: SqlClient, reference: string, key: string, frame: Uint8Array): Promise<void> {
    const { manifests, parts } = await this.#stores()
    const all = this.#partsOf(frame)
    await manifests.putWithin?.(client, reference, written('large', key, all.length))
    for (const [index, part] of all.entries()) await parts.putWithin?.(client, `${reference}.${index}`, part)
  }

  #partsOf(frame: Uint8Array): Uint8Array[] {
    const length = this.#partBytes
    const count = Math.ceil(frame.length / length)
    return Array.from({ length: count }, (_, index) => frame.subarray(index * length, (index + 1) * length))
  }

  /**
   * @param goOn Called before each part; what it throws ends it.
   * @returns `undefined` for what is not kept any more.
   * @throws {FleetError} `FLEET_TOO_LARGE` before it is read, and what the engine fails with.
   */
  async get(reference: string, goOn: () => void = () => {}): Promise<Uint8Array | undefined> {
    const { certainly, valueBytesMax } = this.#of
    const bytes = bytesOf(reference)
    checkSize(bytes, valueBytesMax)
    const { manifests, parts } = await certainly(() => this.#stores())
    const manifest = readManifest((await certainly(() => manifests.get(reference)))?.bytes)
    if (manifest === undefined) return undefined
    const frame = Buffer.allocUnsafeSlow(bytes)
    let end = 0
    for (let index = 0; index < manifest.count; index++) {
      goOn()
      const part = (await certainly(() => parts.get(`${reference}.${index}`)))?.bytes
      if (part === undefined || end + part.length > bytes) return undefined
      frame.set(part, end)
      end += part.length
    }
    return end === bytes ? frame : undefined
  }

  /** Remove what is referred to, if it is; whoever removes its reference does. Hosts find what is left. */
  async delete(carried: Carried | undefined): Promise<void> {
    if (typeof carried !== 'string') return
    try {
      await this.#delete(carried)
    } catch {
      // As by a connection that has ended: see sweep().
    }
  }

  async #delete(reference: string): Promise<void> {
    const { certainly } = this.#of
    const { manifests, parts } = await certainly(() => this.#stores())
    const manifest = readManifest((await certainly(() => manifests.get(reference)))?.bytes)
    for (let index = 0; index < (manifest?.count ?? 0); index++)
      await certainly(() => parts.delete(`${reference}.${index}`))
    await certainly(() => manifests.delete(reference))
    await certainly(() => manifests.delete(YOUNG + reference))
  }

  /** Remove what nothing of its job refers to, as behind a submission that was refused. */
  async drop(room: Room, key: string, reference: string): Promise<void> {
    if (!(await isReferred(room, key, reference))) await this.delete(reference)
  }

  /**
   * Remove all that nothing refers to and that is not young: what crashes have left.
   * @returns How many there were.
   * @throws {FleetError} What the engine fails with.
   */
  async sweep(room: Room): Promise<number> {
    const { engine, zone } = this.#of
    // Opens nothing where nothing has ever been large.
    if ((await engine.valuesIn(largeName(zone))) === 0) return 0
    const { manifests } = await this.#stores()
    let count = 0
    let after: string | undefined
    do {
      const page = await manifests.page({ after, itemsMax: SWEEP_ITEMS })
      for (const { key: reference, bytes } of page.items) {
        const manifest = readManifest(bytes)
        if (manifest === undefined || (await manifests.get(YOUNG + reference)) !== undefined) continue
        if (await isReferred(room, manifest.key, reference)) continue
        await this.#delete(reference)
        count++
      }
      after = page.next
    } while (after !== undefined)
    return count
  }
}

function readManifest(bytes: Uint8Array | undefined): { key: string; count: number } | undefined {
  const [kind, key, count] = (bytes && readParts(bytes)) ?? []
  return kind === 'large' && typeof key === 'string' && isCount(count) ? { key, count } : undefined
}

/** What has a reference passes it on to the next one before it is removed: items to letters, and back. */
async function isReferred(room: Room, key: string, reference: string): Promise<boolean> {
  const { queue, records, letters } = room
  const isItems = async (): Promise<boolean> => argsIn((await queue.find(key))?.bytes) === reference
  return (
    (await isItems()) ||
    readRecord((await records.get(key))?.bytes)?.value === reference ||
    argsIn(readLetter((await letters.get(key))?.bytes)?.job) === reference ||
    isItems()
  )
}

/** The arguments of a job, or the reference to them. */
export const argsIn = (bytes: Uint8Array | undefined): Carried | undefined => bytes && readJob(bytes)?.args
