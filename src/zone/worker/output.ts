/**
 * Sends what a worker thread prints at once.
 *
 * Node sends the first write to the main thread and keeps all others until that has replied, for which both
 * threads must be in their event loops. So a task in an endless loop showed its first line alone, and a
 * program that ended with its last result lost most of what its tasks had printed. Here a write waits for
 * replies only while much is on its way.
 */
import type { Writable } from 'node:stream'

/** Characters of one stream that may be on their way; what is written beyond them waits. */
const SENT_MAX = 2 ** 18

/** Called before the thread prints; a thread that never does pays nothing. */
export function sendOutputAtOnce(): void {
  for (const name of ['stdout', 'stderr'] as const) {
    const own = Object.getOwnPropertyDescriptor(process, name)
    if (own?.get === undefined) continue
    const get = (): Writable => {
      Object.defineProperty(process, name, own)
      return sentAtOnce(process[name])
    }
    Object.defineProperty(process, name, { ...own, get })
  }
}

function sentAtOnce(stream: Writable): Writable {
  const { _writev: send } = stream
  if (send === undefined) return stream
  let sent = 0
  stream._writev = (chunks, done) => {
    const length = chunks.reduce((sum, { chunk }) => sum + (chunk as string | Uint8Array).length, 0)
    sent += length
    const waits = sent > SENT_MAX
    const replied = (error?: Error | null): void => {
      sent -= length
      if (waits) done(error)
    }
    Reflect.apply(send, stream, [chunks, replied])
    if (!waits) done()
  }
  return stream
}
