/**
 * Rooms that several servers share, on one machine or many: what a server needs of whatever connects them.
 *
 * corespun/fleet implements it. A server without the option `rooms` loads none of this.
 */
import type { Hub } from '../message/hub.ts'

/** Receives a message that another server has published. May throw, if nobody here can receive it now. */
export type ReceiveRoom = (room: string, message: string | Uint8Array) => void

/** Rooms that several servers share: `fleet.rooms(name)` of corespun/fleet. */
export interface SharedRooms {
  /**
   * Connects a server. Resolves when it receives what others publish from then on.
   * @param receive Is not called with what this server sends.
   */
  join(receive: ReceiveRoom): Promise<JoinedRooms>
}

/** One server of {@link SharedRooms}. */
export interface JoinedRooms {
  /** Sends a message to all other servers, in order. Copies it; never throws. */
  send(room: string, message: string | Uint8Array): void
  /** Disconnects the server, once what it has sent is on its way. */
  leave(): Promise<void>
}

/** Connects the hub of a server in this thread. */
export async function joinHub(shared: SharedRooms, hub: Hub): Promise<JoinedRooms> {
  let receive: ReceiveRoom = () => {} // until there is a WebSocket
  const joined = await shared.join((room, message) => receive(room, message))
  hub.relay = {
    listen: (members) => {
      receive = members
    },
    send: (room, message) => joined.send(room, message),
  }
  return joined
}
