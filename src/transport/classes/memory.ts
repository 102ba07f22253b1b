/**
 * Which buffers their owner gave away.
 *
 * `move` only marks; the memory leaves this thread when a frame of this process that contains the buffer is
 * complete, so a value that is refused loses nothing.
 */
import { isArrayBuffer } from 'node:util/types'
import { shown } from '../../base/index.ts'
import { TransportError } from '../errors.ts'
import { whyRefused } from './platform.ts'

const marked = new WeakSet<object>()

/**
 * Give the memory of `source` to whoever receives it, instead of copying it: afterwards `source` is empty
 * here. Applies to the next frame that stays in this process (a task's arguments, its result, a channel);
 * frames for disk and network copy. A call that is refused (`ZONE_FULL`) takes nothing: the memory stays.
 * @param source An ArrayBuffer, or a view of one that does not belong to Node's pool of small Buffers.
 * @returns `source` itself, to be passed on.
 * @throws {TransportError} `TRANSPORT_ARGUMENT` for anything else.
 */
export function move<Source extends ArrayBuffer | ArrayBufferView>(source: Source): Source {
  const buffer: unknown = ArrayBuffer.isView(source) ? source.buffer : source
  const isPooled = Buffer.isBuffer(source) && source.byteLength !== source.buffer.byteLength
  if (!isArrayBuffer(buffer) || isPooled) {
    throw new TransportError('TRANSPORT_ARGUMENT', {
      name: 'move(): source',
      expected: 'an ArrayBuffer or a view that owns its whole buffer',
      received: isPooled ? 'a Buffer that shares a larger one' : receivedAs(source),
    })
  }
  marked.add(buffer)
  return source
}

/** What was passed instead of memory, and what to do with it if it belongs to its thread. */
function receivedAs(source: unknown): string {
  const prototype: unknown = typeof source === 'object' && source !== null && Object.getPrototypeOf(source)
  const why = typeof prototype === 'object' && prototype !== null ? whyRefused(prototype) : undefined
  return why === undefined ? shown(source) : `${shown(source)}: ${why}`
}

/** True when the owner gave this buffer away. */
export function isMoved(buffer: ArrayBuffer): boolean {
  return marked.has(buffer)
}

/** The buffer has left. */
export function forgetMoved(buffer: object): void {
  marked.delete(buffer)
}
