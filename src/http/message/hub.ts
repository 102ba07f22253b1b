/**
 * What the WebSockets of one server in one thread have in common: the rooms of its core, the way to the other
 * workers, and the reporting of errors.
 *
 * A message to a room goes to the members in this thread at once. In a zone it is then sent to the other
 * workers, each of which passes it to its own members. An order exists per sender, not between senders.
 */
import type { Rooms, Wire } from './wire.ts'

/** Passes messages to rooms on to other workers. */
export interface Relay {
  /** This worker has WebSockets: messages from others are received from now on. */
  listen(receive: (room: string, message: string | Uint8Array) => void): void
  /** @throws {HttpError} `HTTP_ROOMS_FULL`. */
  send(room: string, message: string | Uint8Array): void
}

/** Rooms whose members this thread keeps. */
export class MemberRooms implements Rooms {
  readonly #rooms = new Map<string, Set<Wire>>()

  publish(room: string, message: string | Uint8Array, except: Wire | undefined): void {
    const members = this.#rooms.get(room)
    if (members === undefined) return
    for (const member of [...members]) if (member !== except) member.send(message)
  }

  join(room: string, member: Wire): void {
    const members = this.#rooms.get(room)
    if (members === undefined) this.#rooms.set(room, new Set([member]))
    else members.add(member)
  }

  leave(room: string, member: Wire): void {
    const members = this.#rooms.get(room)
    if (members?.delete(member) === true && members.size === 0) this.#rooms.delete(room)
  }
}

export class Hub {
  /** Passes an error of a handler to the app. */
  readonly report: (error: unknown, request: Request, where: string) => void
  /** Where its server listens. */
  address: { readonly host: string; readonly port: number } | undefined = undefined
  #rooms: Rooms | undefined
  #relay: Relay | undefined

  constructor(report: Hub['report']) {
    this.report = report
  }

  /** Connects it to other workers. */
  set relay(relay: Relay) {
    this.#relay = relay
  }

  /** A core has its first WebSocket. */
  open(rooms: Rooms): void {
    this.#rooms = rooms
    this.#relay?.listen((room, message) => rooms.publish(room, message, undefined))
  }

  /** @throws {HttpError} `HTTP_ROOMS_FULL`; the members in this thread have received it then. */
  publish(room: string, message: string | Uint8Array, except: Wire | undefined): void {
    this.#rooms?.publish(room, message, except)
    this.#relay?.send(room, message)
  }
}
