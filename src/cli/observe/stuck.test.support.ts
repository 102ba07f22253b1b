/**
 * What a worker does while the main thread is in a loop: looks into the process, and ends the loop.
 *
 * Loaded by its URL.
 */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

export async function snapshotWhile(path: string, shared: SharedArrayBuffer): Promise<unknown> {
  try {
    const socket = connect(path)
    socket.write('{"version":1,"method":"snapshot"}\n')
    return (JSON.parse(await text(socket)) as { readonly result: unknown }).result
  } finally {
    Atomics.store(new Int32Array(shared), 0, 1)
  }
}
