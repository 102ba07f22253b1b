/**
 * The rooms of WebSockets that servers on several machines share.
 *
 * One subscription and one publisher per server, whatever its workers; each message is sent once. Messages
 * are not kept: who is not connected when one is published never receives it.
 */
import type { JoinedRooms, SharedRooms } from '../../http/index.ts'
import type { Messages } from '../engine/engine.ts'
import { FleetError, wrong } from '../errors.ts'
import { type RoomsStats, RoomsLog } from './events.ts'
import { Receiving } from './receiving.ts'
import { ROOM_CHARS_MAX, Sending, isMessage, isRoom, roomsSubject } from './sending.ts'

let members = 0

/**
 * Rooms of a fleet. `fleet.rooms(name)` returns them, the same for each call; they end with the connection.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { type FarRooms, connect } from 'corespun/fleet'
 * import { type ServerSocket, serve } from 'corespun/http'
 *
 * await using fleet = await connect('memory:')
 * const chat: FarRooms = fleet.rooms('chat')
 * const open = (socket: ServerSocket) => socket.subscribe('lobby')
 * const server = await serve({ port: 0, rooms: chat, routes: { '/': { websocket: { open } } } })
 * assert.equal(chat.publish('lobby', 'to all members on all machines'), true)
 * await server.close()
 * ```
 */
export class FarRooms implements SharedRooms {
  /** The name in the fleet. */
  readonly name: string
  readonly #messages: Messages
  readonly #id: string
  readonly #log: RoomsLog
  #own: Sending | undefined
  #isWatched = false
  /** Servers. */
  #joined = 0
  #ended: string | undefined

  /** @internal */
  constructor(messages: Messages, name: string, id: string) {
    this.name = name
    this.#messages = messages
    this.#id = id
    this.#log = new RoomsLog(name)
  }

  /**
   * Send a message to the members of a room of all servers, this process's too: for programs that serve
   * nothing. A server has `publish` itself.
   * @returns Whether it is on its way; false while the servers cannot be reached, or while 64 MiB wait for
   *   them.
   * @throws {FleetError} `FLEET_ARGUMENT`, `FLEET_CLOSED`.
   */
  publish(room: string, message: string | Uint8Array): boolean {
    if (!isRoom(room))
      throw wrong('rooms.publish(): room', `a name of 1 to ${ROOM_CHARS_MAX} characters`, room)
    if (!isMessage(message)) throw wrong('rooms.publish(): the message', 'a string or a Uint8Array', message)
    if (this.#ended !== undefined) throw new FleetError('FLEET_CLOSED', { reason: this.#ended })
    this.#own ??= this.#sending()
    return this.#own.send(room, message)
  }

  /** What was sent and received by this process since the first use. */
  stats(): RoomsStats {
    return this.#log.stats()
  }

  /**
   * Connect a server: what the option `rooms` of `serve` does.
   * @throws {FleetError} `FLEET_CLOSED`; `FLEET_TIMEOUT` when the servers do not confirm it; `FLEET_DENIED`
   *   without the permission.
   */
  async join(receive: Parameters<SharedRooms['join']>[0]): Promise<JoinedRooms> {
    const sending = this.#sending()
    const receiving = new Receiving(sending.id, this.#log, receive)
    const end = await this.#messages.listen(roomsSubject(this.name), ({ bytes }) => receiving.take(bytes))
    let isOver = false
    this.#joined++
    return {
      send: (room, message) => void (isOver || sending.send(room, message)),
      leave: async () => {
        if (!isOver) this.#joined--
        isOver = true
        end()
        await sending.leave()
      },
    }
  }

  #sending(): Sending {
    if (!this.#isWatched) this.#watch()
    return new Sending(this.#messages, `${this.#id}.${++members}`, this.#log)
  }

  #watch(): void {
    this.#isWatched = true
    this.#messages.watchLink((isLinked) => this.#log.link(isLinked))
    void this.#messages.ended.then((reason) => {
      this.#ended = reason
      // Without a server nobody is surprised.
      if (this.#joined > 0) this.#log.link(false, `: ${reason}`)
      this.#log.isLinked = false
    })
  }
}
