/**
 * Buffers marked by `move`.
 *
 * The memory leaves this thread when a frame of process mode that contains the buffer is complete, so a value
 * that is refused loses nothing.
 */
import { isArrayBuffer } from 'node:util/types'
import { shown } from '../../base/index.ts'
import { TransportError } from '../errors.ts'
import { kindOfPrototype, whyRefused } from './platform.ts'

const marked = new WeakSet<object>()

/**
 * Mark the memory of `source` to be moved to the receiver instead of copied; `source` is empty afterwards.
 *
 * Applies to the next frame that stays in this process (a task's arguments, its result, a channel, a store);
 * self-contained frames copy. When a call is refused (`ZONE_FULL`), the memory stays here.
 * @param source An ArrayBuffer, or a view that is not part of Node's pool of small Buffers.
 * @returns `source` itself, to be passed on.
 * @throws {TransportError} `TRANSPORT_ARGUMENT` for anything else.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { decode, encode, move } from 'corespun/transport'
 *
 * const pixels = new Uint8Array(1_000_000)
 * const frame = encode(move(pixels), { mode: 'process' })
 * assert.equal(pixels.length, 0)
 * assert.equal((decode(frame, { mode: 'process' }) as Uint8Array).length, 1_000_000)
 * ```
 */
export function move<Source extends ArrayBuffer | ArrayBufferView>(source: Source): Source {
  const buffer: unknown = ArrayBuffer.isView(source) ? source.buffer : source
  const isPooled = Buffer.isBuffer(source) && source.byteLength !== source.buffer.byteLength
  if (!isArrayBuffer(buffer) || isPooled) {
    throw new TransportError('TRANSPORT_ARGUMENT', {
      name: 'move(): source',
      expected: 'an ArrayBuffer or a view that owns its whole buffer',
      received: isPooled
        ? 'a Buffer that shares a larger one; copy it first: move(new Uint8Array(buffer))'
        : receivedAs(source),
    })
  }
  marked.add(buffer)
  return source
}

/** The received value and, for an object of a class of Node, what to send instead. */
function receivedAs(source: unknown): string {
  const prototype: unknown = typeof source === 'object' && source !== null && Object.getPrototypeOf(source)
  if (typeof prototype !== 'object' || prototype === null) return shown(source)
  const isCopied = kindOfPrototype(prototype) !== undefined
  const why = isCopied ? 'its content is copied; send it without move()' : whyRefused(prototype)
  return why === undefined ? shown(source) : `${shown(source)}: ${why}`
}

export function isMoved(buffer: ArrayBuffer): boolean {
  return marked.has(buffer)
}

export function forgetMoved(buffer: object): void {
  marked.delete(buffer)
}
