/**
 * The numbers that both sides of the border have, printed from crates/http/src/layout.rs when the core
 * is compiled: change that file. It explains each of them.
 */

/** Bytes before the records of either region. */
export const HEADER_BYTES = 64

/** Bytes of the inbound region for records; bytes from sockets follow. */
export const WORDS_BYTES = 96 * 1024

/** Bytes read from a socket at once. */
export const READ_BYTES_MAX = 32 * 1024

/** Offsets within a head have sixteen bits. */
export const HEADER_BYTES_MAX = 0xffff

/** Words of the inbound region's header. */
export const Inbound = { count: 0 } as const

/** Words of the out region's header. */
export const Out = { end: 0, inBatch: 1, found: 2 } as const

/** Words of an inbound record that is a request; its fields follow. */
export const Request = {
  kind: 0,
  slot: 1,
  stamp: 2,
  method: 3,
  target: 4,
  methodAt: 5,
  methodBytes: 6,
  targetAt: 7,
  targetBytes: 8,
  fields: 9,
  lengthLow: 10,
  lengthHigh: 11,
  bodyAt: 12,
  bodyBytes: 13,
  headBytes: 14,
  words: 15,
} as const

/**
 * Words of a field: offset of its name, both lengths (that of the name in the low half), offset of its
 * value.
 */
export const FIELD_WORDS = 3

/** Flags of a request's kind, and of a message's. */
export const Flag = {
  newTarget: 0x100,
  whole: 0x200,
  connect: 0x400,
  first: 0x800,
  text: 0x100,
  elsewhere: 0x200,
} as const

/** A target without a number. */
export const NO_TARGET = -1

/** Number of targets that are cached. */
export const TARGETS = 256

/** Kinds of inbound records. All but requests and messages are `EVENT_WORDS` long: kind, slot, stamp. */
export const Event = {
  request: 1,
  body: 2,
  disconnected: 3,
  drained: 4,
  stopped: 5,
  closed: 6,
  fileShort: 7,
  message: 8,
  closing: 9,
  socketClosed: 10,
  asks: 11,
  refused: 12,
} as const

/** Words of an inbound record that is neither a request nor a message. */
export const EVENT_WORDS = 3

/** Words of a message of a WebSocket behind kind, slot and stamp. */
export const Message = { at: 3, bytes: 4, code: 5, words: 6 } as const

/** Words of a record in the out region; header lines and body follow, then padding to a word. */
export const Head = {
  kind: 0,
  slot: 1,
  stamp: 2,
  status: 3,
  lines: 4,
  bytes: 5,
  bytesHigh: 6,
  elsewhere: 7,
  words: 8,
} as const

/** Kinds of records in the out region. */
export const Reply = {
  respond: 1,
  start: 2,
  write: 3,
  end: 4,
  abort: 5,
  upgrade: 6,
  send: 7,
  close: 8,
  ping: 9,
  terminate: 10,
  join: 11,
  leave: 12,
  publish: 13,
  ask: 14,
  hint: 15,
  trailers: 16,
  pause: 17,
} as const

/** Flag of the kind of a response or of its start: the connection closes after it. */
export const FLAG_LAST = 0x1_0000

/** Bits of a message that is sent. */
export const Send = { text: 1, compress: 2 } as const

/** Words that a WebSocket begins with. */
export const Terms = {
  messageBytesMax: 0,
  queuedBytesMax: 1,
  pingMs: 2,
  pongMs: 3,
  closeMs: 4,
  deflates: 5,
  isRaw: 6,
  words: 7,
} as const

/** Results of a pull without bytes; smaller numbers are refusals: minus the status. */
export const Pull = { end: 0, wait: -1, disconnected: -2 } as const

/** Methods by number. */
export const Method = { other: 0, get: 1, head: 2, post: 3, put: 4, delete: 5, patch: 6, options: 7 } as const

/** Content types by number. */
export const TYPES = [
  '',
  'text/plain;charset=UTF-8',
  'application/json',
  'text/html;charset=UTF-8',
  'application/octet-stream',
] as const

/** Connections that wait in the kernel to be accepted, as in node:http; `somaxconn` bounds it, too. */
export const BACKLOG = 511

/** Then a connection is closed, so that a client that never disconnects meets new servers. */
export const REQUESTS_PER_CONNECTION_MAX = 1_000_000

/** Numbers that a server is opened with, as doubles; from the third on those of `Limits`. */
export const Opening = {
  port: 0,
  isShared: 1,
  headerBytesMax: 2,
  headersMax: 3,
  targetBytesMax: 4,
  bodyBytesMax: 5,
  idleMs: 6,
  headersMs: 7,
  bodyMs: 8,
  connectionsMax: 9,
  outBytesMax: 10,
  outBytesTotalMax: 11,
  isProxied: 12,
  inherited: 13,
  streamsMax: 14,
  resetsMax: 15,
  numbers: 16,
} as const

/** What is found of a file, as doubles. */
export const Found = { file: 0, bytes: 1, seconds: 2, nanoseconds: 3, isIndex: 4, numbers: 5 } as const

/** Counts of a server, as doubles; see `Stats`. */
export const Counts = {
  connections: 0,
  connectionsTotal: 1,
  requests: 2,
  constants: 3,
  refused: 4,
  aborted: 5,
  bytesIn: 6,
  bytesOut: 7,
  cut: 8,
  heldBytes: 9,
  openFiles: 10,
  numbers: 11,
} as const
