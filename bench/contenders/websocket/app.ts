/**
 * The routes of Corespun's servers in table websocket, as a module that every worker of a zone can load.
 *
 * `/echo` returns each message, `/room` as well once its socket is in the room, and what `/publish` receives
 * goes to the room.
 */
import type { ServerSocket } from 'corespun/http'

type Message = string | Uint8Array<ArrayBuffer>

const echo = (socket: ServerSocket, message: Message): void => void socket.send(message)

export const routes = {
  '/': (): string => 'ready',
  '/echo': { websocket: { message: echo } },
  '/room': { websocket: { open: (socket: ServerSocket) => socket.subscribe('room'), message: echo } },
  '/publish': {
    websocket: { message: (socket: ServerSocket, message: Message) => socket.publish('room', message) },
  },
}
