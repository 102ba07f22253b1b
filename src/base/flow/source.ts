/**
 * What streams of zones and of fibers read their items from, by one interface: iterables, streams of the web
 * and of Node, Blobs.
 *
 * A stream of the web is read by a reader of its own, which can be cancelled while it waits; the iterator of
 * one, or of a stream of Node, only ends when the next item has arrived.
 */
export interface ItemReader {
  /** The values of a synchronous source may be promises. */
  readonly isSync: boolean
  /** Nobody else has the memory of its items. */
  readonly isOwned: boolean
  next(): unknown
  /** Whether `close` waits for the item that is being read, which may never come. */
  readonly closesLate: boolean
  /**
   * Read no more, and let the source clean up. @param reason What a stream of the web is cancelled with.
   * @throws What the source throws.
   */
  close(reason?: unknown): Promise<unknown>
}

/** @throws What opening the source throws. */
export function readerFor(source: object): ItemReader {
  if (source instanceof Blob) return webReader(source.stream(), true)
  if (source instanceof ReadableStream) return webReader(source, false)
  const open = (source as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator]
  const isSync = open === undefined || open === null
  const iterator = isSync ? (source as Iterable<unknown>)[Symbol.iterator]() : open.call(source)
  return {
    isSync,
    isOwned: false,
    closesLate: !isNodeStream(source),
    next: () => iterator.next(),
    close: async () => {
      const returned = iterator.return?.()
      // A stream of Node that waits for data does not return before it has some.
      if (isNodeStream(source)) source.destroy()
      await returned
    },
  }
}

function webReader(stream: ReadableStream<unknown>, isOwned: boolean): ItemReader {
  const reader = stream.getReader()
  const close = (reason?: unknown): Promise<void> => reader.cancel(reason)
  return { isSync: false, isOwned, closesLate: false, next: () => reader.read(), close }
}

function isNodeStream(source: object): source is { destroy(): void } {
  const { destroy, pipe } = source as { readonly destroy?: unknown; readonly pipe?: unknown }
  return typeof destroy === 'function' && typeof pipe === 'function'
}
