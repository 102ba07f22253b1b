/**
 * Messages to rooms, from one worker of a server to the others.
 *
 * They travel on a channel of their own, which a worker opens with its first WebSocket; a server without any
 * opens no channel. What waits for a worker is counted in the board, since a channel has no bound: a worker
 * that does not return to its event loop would collect messages without end.
 */
import { BroadcastChannel } from 'node:worker_threads'
import { HttpError } from '../errors.ts'
import type { Relay } from '../websocket/hub.ts'
import type { Board } from './board.ts'

/** Most bytes that wait for one worker. */
export const ROOM_BYTES_MAX = 64 * 1024 * 1024
/** What a message costs beside its bytes. */
const MESSAGE_BYTES = 64

interface Posted {
  readonly room: string
  readonly message: string | Uint8Array
}

export class RoomRelay implements Relay {
  readonly #id: string
  readonly #board: Board
  /** Of this worker; -1 for a thread that only sends. */
  readonly #row: number
  #channel: BroadcastChannel | undefined
  #isClosed = false

  constructor(id: string, board: Board, row: number) {
    this.#id = id
    this.#board = board
    this.#row = row
  }

  listen(receive: (room: string, message: string | Uint8Array) => void): void {
    this.#opened().addEventListener('message', (event) => {
      const posted = (event as unknown as { data: Posted }).data
      this.#board.receiveRoom(this.#row, costOf(posted))
      receive(posted.room, posted.message)
    })
    this.#board.listenToRooms(this.#row)
  }

  /** @throws {HttpError} `HTTP_ROOMS_FULL`; nothing is sent. */
  send(room: string, message: string | Uint8Array): void {
    if (this.#isClosed) return
    const isPart = typeof message !== 'string' && message.byteLength !== message.buffer.byteLength
    // A view would take all of its buffer along.
    const posted: Posted = { room, message: isPart ? message.slice() : message }
    const bytes = costOf(posted)
    const { isReceived, full } = this.#board.roomListeners(this.#row, ROOM_BYTES_MAX - bytes)
    if (full !== undefined)
      throw new HttpError('HTTP_ROOMS_FULL', { worker: `worker ${full}`, bytesMax: ROOM_BYTES_MAX })
    if (!isReceived) return
    this.#board.sendToRooms(this.#row, bytes)
    this.#opened().postMessage(posted)
  }

  close(): void {
    this.#isClosed = true
    this.#channel?.close()
  }

  #opened(): BroadcastChannel {
    if (this.#channel === undefined) {
      this.#channel = new BroadcastChannel(`${this.#id}.rooms`)
      this.#channel.unref()
    }
    return this.#channel
  }
}

function costOf({ room, message }: Posted): number {
  const bytes = typeof message === 'string' ? message.length : message.byteLength
  return room.length + bytes + MESSAGE_BYTES
}
