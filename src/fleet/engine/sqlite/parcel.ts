/**
 * How requests and outcomes travel between the thread of a file and the one that asks.
 *
 * They are flat lists, and the bytes in them lie in one memory, which is moved: of many small objects with a
 * memory each, the clone costs V8 four times as much. The memory of a parcel is freed with its last part.
 */
/* c8 ignore start: another Node runs it where this one lacks SQLite; the counts of two do not add up */
import type { MessagePort, Worker } from 'node:worker_threads'
import type { Outcome, Request } from './requests.ts'

/** Words and, where `at` names them, lengths of the next bytes. */
export interface Parcel {
  readonly flat: unknown[]
  readonly at: readonly number[]
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** Larger ones travel by themselves, so that they keep nothing else alive. */
const PACKED_MAX = 16 * 1024

function post(port: MessagePort | Worker, flat: unknown[]): void {
  const at: number[] = []
  let size = 0
  for (let index = 0; index < flat.length; index++) {
    const part = flat[index]
    if (!(part instanceof Uint8Array)) continue
    if (part.byteLength <= PACKED_MAX) {
      at.push(index)
      size += part.byteLength
    } // A message has all of the memory that a view is a part of.
    else if (part.byteLength < part.buffer.byteLength) flat[index] = new Uint8Array(part)
  }
  const bytes = new Uint8Array(size)
  let offset = 0
  for (const index of at) {
    const part = flat[index] as Uint8Array
    bytes.set(part, offset)
    flat[index] = part.byteLength
    offset += part.byteLength
  }
  port.postMessage({ flat, at, bytes } satisfies Parcel, [bytes.buffer])
}

function unpacked({ flat, at, bytes }: Parcel): unknown[] {
  let offset = 0
  for (const index of at) flat[index] = bytes.subarray(offset, (offset += flat[index] as number))
  return flat
}

/** Each after its length. */
export function postRequests(port: Worker, requests: readonly Request[]): void {
  const flat: unknown[] = []
  for (const request of requests) flat.push(request.length, ...request)
  post(port, flat)
}

/** Adds the requests of a parcel to others. */
export function addRequests(parcel: Parcel, requests: Request[]): void {
  const flat = unpacked(parcel)
  for (let at = 0; at < flat.length;) {
    const end = at + 1 + (flat[at] as number)
    requests.push(flat.slice(at + 1, end) as unknown as Request)
    at = end
  }
}

export function postOutcome(port: MessagePort, { entries, leases, replies, over, fatal }: Outcome): void {
  const flat: unknown[] = [entries.length, leases.length, replies.length]
  for (const [watch, { key, bytes, revision }] of entries) flat.push(watch, key, bytes, revision)
  for (const [take, { id, seq, attempt, addedMs, bytes }] of leases)
    flat.push(take, id, seq, attempt, addedMs, bytes)
  for (const [id, value, failure] of replies) flat.push(id, value, failure)
  flat.push(over, fatal)
  post(port, flat)
}

export function outcomeOf(parcel: Parcel): Outcome {
  const flat = unpacked(parcel) as never[]
  let at = 3
  const several = <Each>(count: number, next: () => Each): Each[] => Array.from({ length: count }, next)
  const entries = several(flat[0], () => {
    const [watch, key, bytes, revision] = [flat[at++], flat[at++], flat[at++], flat[at++]]
    return [watch, { key, bytes, revision }] as const
  })
  const leases = several(flat[1], () => {
    const [take, id, seq, attempt] = [flat[at++], flat[at++], flat[at++], flat[at++]]
    return [take, { id, seq, attempt, addedMs: flat[at++], bytes: flat[at++] }] as const
  })
  const replies = several(flat[2], () => [flat[at++], flat[at++], flat[at++]] as const)
  return { entries, leases, replies, over: flat[at], fatal: flat[at + 1] }
}
