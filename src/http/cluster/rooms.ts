/**
 * Messages to rooms, from one worker of a server to the others.
 *
 * They travel on a channel of their own, which a worker opens with its first WebSocket; a server without any
 * opens no channel. What waits for a worker is counted in the board, since a channel has no bound: a worker
 * that does not return to its event loop would collect messages without end.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { BroadcastChannel } from 'node:worker_threads'
import { HttpError } from '../errors.ts'
import type { Relay } from '../message/hub.ts'
import type { JoinedRooms, SharedRooms } from '../websocket/shared-rooms.ts'
import type { Board } from './board.ts'

/** Most bytes that wait for one worker. */
export const ROOM_BYTES_MAX = 64 * 1024 * 1024
/** What a message costs beside its bytes. */
const MESSAGE_BYTES = 64
/** How long, at most, a thread that closes receives what was sent to it, and how often it looks. */
const LAST_MS = 1000
const LOOK_MS = 5

interface Posted {
  readonly room: string
  readonly message: string | Uint8Array
}

export class RoomRelay implements Relay {
  readonly #id: string
  readonly #board: Board
  /** The number of this worker; -1 for a thread that only sends. */
  #row: number
  #channel: BroadcastChannel | undefined
  /** Messages of this turn. */
  #unsent: Posted[] = []
  #isClosed = false

  constructor(id: string, board: Board, row: number) {
    this.#id = id
    this.#board = board
    this.#row = row
  }

  listen(receive: (room: string, message: string | Uint8Array) => void): void {
    let arrived: Posted[] = []
    // Node ends a turn after each message of a channel, and a core sends at the end of a turn: taken one by
    // one, each would be sent to each member by itself, and the worker would not return to its event loop.
    const take = (): void => {
      const taken = arrived
      arrived = []
      for (const one of taken) {
        if (this.#row >= 0) this.#board.receiveRoom(this.#row, costOf(one))
        receive(one.room, one.message)
      }
    }
    this.#opened().addEventListener('message', (event) => {
      if (arrived.length === 0) setImmediate(take)
      arrived.push(...(event as unknown as { data: Posted[] }).data)
    })
    this.#board.listenToRooms(this.#row)
  }

  /** @throws {HttpError} `HTTP_ROOMS_FULL`; nothing is sent. */
  send(room: string, message: string | Uint8Array): void {
    if (this.#isClosed) return
    // The bytes are the caller's, who may write to them in this turn.
    const posted: Posted = { room, message: typeof message === 'string' ? message : new Uint8Array(message) }
    const bytes = costOf(posted)
    const { isReceived, full } = this.#board.roomListeners(this.#row, ROOM_BYTES_MAX - bytes)
    if (full !== undefined)
      throw new HttpError('HTTP_ROOMS_FULL', { worker: this.#nameOf(full), bytesMax: ROOM_BYTES_MAX })
    if (!isReceived) return
    this.#board.sendToRooms(this.#row, bytes)
    if (this.#unsent.push(posted) === 1) queueMicrotask(() => this.flush())
  }

  #nameOf(row: number): string {
    return this.#board.isServing(row) ? `worker ${row}` : 'the thread that called serve()'
  }

  /** Resolves when this thread has received what was sent to it, or soon if that does not arrive. */
  async received(): Promise<void> {
    const late = performance.now() + LAST_MS
    while (this.#board.waitsForRooms(this.#row) && performance.now() < late) await delay(LOOK_MS)
  }

  /** Sends the messages of this turn, all as one, so that each worker is woken once. */
  flush(): void {
    if (this.#unsent.length === 0) return
    const unsent = this.#unsent
    this.#unsent = []
    this.#opened().postMessage(unsent)
  }

  /** Another worker has its row now; until it closes, it sends and receives without being counted. */
  leaveRow(): void {
    this.#row = -1
  }

  close(): void {
    this.flush()
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

/** Connects the workers with other servers, in the thread that starts them: it passes on what both send. */
export async function joinWorkers(shared: SharedRooms, relay: RoomRelay): Promise<JoinedRooms> {
  const joined = await shared.join((room, message) => relay.send(room, message))
  relay.listen((room, message) => joined.send(room, message))
  return {
    // Refused by the workers, it is not sent elsewhere either.
    send(room, message) {
      relay.send(room, message)
      joined.send(room, message)
    },
    async leave() {
      await relay.received()
      await joined.leave()
    },
  }
}

function costOf({ room, message }: Posted): number {
  const bytes = typeof message === 'string' ? message.length : message.byteLength
  return room.length + bytes + MESSAGE_BYTES
}
