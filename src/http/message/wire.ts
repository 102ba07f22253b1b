/**
 * The interface between the app side of WebSockets and the cores.
 *
 * A core frames, masks, compresses, pings and closes by the terms that it is given; the app side has
 * handlers, rooms by name and the errors of programs. Both cores are given the same terms and keep them.
 */

/** The terms of one WebSocket, complete and checked; handlers.ts has names and defaults. */
export interface SocketTerms {
  readonly messageBytesMax: number
  readonly queuedBytesMax: number
  readonly pingMs: number
  readonly pongMs: number
  readonly closeMs: number
  /** Messages from this length on are compressed; undefined: none are. */
  readonly compressedBytesMin: number | undefined
}

/** What the app side has decided about an upgrade. */
export interface Grant {
  /** The value of `sec-websocket-key`; undefined over HTTP/2. */
  readonly key: string | undefined
  /** The subprotocol; '' without one. */
  readonly protocol: string
  /** Whether `permessage-deflate` was agreed on, without context takeover. */
  readonly deflates: boolean
  /** Further complete header lines of the response. */
  readonly lines: string
  readonly terms: SocketTerms
  /** The app frames by itself: `lines` are all of the response, messages are bytes as they come. */
  readonly isRaw?: boolean
}

/** What a core reports of a WebSocket; nothing after `onClose`. */
export interface WireEvents {
  /** Bytes are a copy. */
  onMessage(message: string | Uint8Array): void
  /** Less than half of `outBytesMax` waits, after more than that did. */
  onDrain(): void
  onClose(code: number, reason: string): void
}

/** A WebSocket in a core. After its end, calls do nothing. */
export interface Wire {
  /** Returns how many bytes wait to be sent, as far as the core has been asked. */
  send(message: string | Uint8Array): number
  /** How many bytes wait to be sent. */
  queuedBytes(): number
  ping(payload: Uint8Array): void
  close(code: number, reason: string): void
  /** Closes the connection without a close frame. */
  terminate(): void
  join(room: string): void
  leave(room: string): void
}

/** A connection whose bytes are the app's: what `isRaw` grants. */
export interface RawWire extends Wire {
  /** Whether more than `outBytesMax` waits: `onDrain` follows. */
  isFull(): boolean
  /** Reads no more for now, or again. */
  pause(isPaused: boolean): void
}

/** The rooms of one core. */
export interface Rooms {
  /** Sends a message to all members of a room but one. */
  publish(room: string, message: string | Uint8Array, except: Wire | undefined): void
}
