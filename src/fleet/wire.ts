/**
 * What travels between callers and hosts: arrays in self-contained frames, and payloads inside of them.
 *
 * A payload is a frame of its own, the arguments of a call or its value, which the threads between its writer
 * and its reader pass on unread. One that is too large for a message goes through the object store, and the
 * message has its name. Reading trusts nothing: bytes that are not such an array are not a message.
 */
import { decode, encode } from '../transport/index.ts'
import type { TraceContext } from '../zone/index.ts'
import { checkedTrace } from '../zone/internal.ts'
import type { Keeps, Objects } from './engine/engine.ts'
import { FleetError, checkSize } from './errors.ts'

/** A payload as a message has it: itself, or the name of an object. */
export type Carried = Uint8Array | string

/** What a message consists of; the first part is its kind. */
export type Parts = readonly [kind: string, ...rest: unknown[]]

/** What is called where a part of an arrow is to run; no call has this as the name of its export. */
export const PART = ''
/** The objects that payloads are which no message can have. */
export const PAYLOADS = 'payloads'
/** Callers ask each host so often whether it runs their calls. */
export const PING_MS = 1000
/** A host that has not replied for so long is lost. */
export const SILENCE_MS = 5000
/** What a message takes beside its payload: a trace has up to 9 KiB. */
const HEAD_BYTES = 16_384
/** Objects that nobody has read are deleted after so long. */
const OBJECT_MS = 600_000

/** Where a host is asked who it is. */
export const surveySubject = (zone: string, version?: string): string =>
  version === undefined ? `corespun.zone.${zone}` : `corespun.zone.${zone}.${version}`
/** Where all hosts are asked who they are, whatever they host. */
export const PRESENCE = 'corespun.fleet'
/** Where hosts report that they come and leave. */
export const cardSubject = (zone: string): string => `corespun.card.${zone}`
/** Where a host is called. */
export const hostSubject = (zone: string, host: string): string => `corespun.host.${zone}.${host}`

/** The bytes of a message. */
export const written = (...parts: Parts): Uint8Array => encode(parts)

/** The parts of a message; `undefined` for bytes that are not a message. */
export function readParts(bytes: Uint8Array): Parts | undefined {
  try {
    const parts: unknown = decode(bytes, { bytes: 'view' })
    if (!Array.isArray(parts) || typeof parts[0] !== 'string') return undefined
    for (let index = 1; index < parts.length; index++) {
      const part: unknown = parts[index]
      if (part instanceof Uint8Array) parts[index] = framed(part)
    }
    return parts as unknown as Parts
  } catch {
    return undefined // from somebody who speaks something else, or who tries what happens
  }
}

/**
 * A frame in a message, for whoever writes it into another one: as a Buffer it is written by itself, and as
 * another view with all of the memory that it is a part of, which has messages of others.
 */
export const framed = (view: Uint8Array): Buffer => Buffer.from(view.buffer, view.byteOffset, view.byteLength)

/** Whether a part is a whole number from 0. */
export const isCount = (part: unknown): part is number => Number.isSafeInteger(part) && (part as number) >= 0

/** The trace that a message has; what is malformed in it is left out. */
export const readTrace = (part: unknown): TraceContext | undefined =>
  part === undefined ? undefined : checkedTrace(Object(part) as TraceContext)

/** Takes payloads apart from their messages where they are too large. */
export class Payloads {
  readonly #keeps: Keeps
  readonly #valueBytesMax: number
  #objects: Promise<Objects> | undefined
  #count = 0

  constructor(keeps: Keeps, valueBytesMax: number) {
    this.#keeps = keeps
    this.#valueBytesMax = valueBytesMax
  }

  /**
   * A payload as a message can have it.
   * @param owner Of what it belongs to: unique.
   * @throws {FleetError} `FLEET_TOO_LARGE`, and what objects fail with.
   */
  carry(payload: Uint8Array, owner: string): Carried | Promise<Carried> {
    const { length: bytes } = payload
    if (bytes <= this.#keeps.messageBytesMax - HEAD_BYTES) return payload
    checkSize(bytes, this.#valueBytesMax)
    return this.#put(payload, `${owner}.${this.#count++}`)
  }

  async #put(payload: Uint8Array, name: string): Promise<string> {
    await (await this.#store()).put(name, payload)
    return name
  }

  /** The payload that a message has; an object is deleted, since nobody else reads it. */
  open(carried: unknown): Uint8Array | Promise<Uint8Array> {
    if (carried instanceof Uint8Array) return carried
    if (typeof carried === 'string') return this.#take(carried)
    throw new FleetError('FLEET_ENGINE', { operation: 'reading a message', reason: 'it has no payload' })
  }

  async #take(name: string): Promise<Uint8Array> {
    const objects = await this.#store()
    const payload = await objects.get(name, this.#valueBytesMax)
    if (payload === undefined)
      throw new FleetError('FLEET_ENGINE', {
        operation: 'reading a large value',
        reason: 'it does not exist any more',
      })
    // Without it the store forgets it later.
    objects.delete(name).catch(() => {})
    return payload
  }

  /** Make what large payloads need of the servers. */
  async prepare(): Promise<void> {
    await this.#store()
  }

  #store(): Promise<Objects> {
    this.#objects ??= this.#keeps.objects(PAYLOADS, { ttlMs: OBJECT_MS })
    this.#objects.catch(() => (this.#objects = undefined))
    return this.#objects
  }
}
