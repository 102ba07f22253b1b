/**
 * The numbers that the native core and this side agree on: where things lie in the memory they share.
 *
 * The same constants stand, each explained, in crates/http/src/layout.rs; crates/http/README.md tells how a
 * batch goes back and forth.
 */

/** Bytes before the records of either region. */
export const HEADER_BYTES = 64
/** Bytes of the inbound region for records; bytes from sockets follow. */
export const WORDS_BYTES = 96 * 1024
/** Bytes read from a socket at once. */
export const READ_BYTES_MAX = 32 * 1024
/** Offsets within a head have sixteen bits. */
export const HEADER_BYTES_MAX = 0xffff

/** Word of the inbound region: how many records follow the header. */
export const COUNT = 0
/** Words of the out region. */
export const Out = { end: 0, inBatch: 1, found: 2 } as const

/** Words of a record that is a request. */
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
} as const
/** Words of a request before its fields. */
export const REQUEST_WORDS = 15
/** Words of a field: where its name begins, both lengths (the name's low), where its value begins. */
export const FIELD_WORDS = 3

/** Flags of a request's kind. */
export const Flag = { newTarget: 0x100, whole: 0x200 } as const
/** A target without a number. */
export const NO_TARGET = -1
/** Targets that are remembered. */
export const TARGETS = 256

/** Kinds of inbound records; all but requests have three words. */
export const Event = { request: 1, body: 2, gone: 3, drained: 4, stopped: 5, closed: 6 } as const
/** Words of a record that is no request. */
export const EVENT_WORDS = 3

/** Kinds of answers, and how many words each has before its lines. */
export const Reply = { respond: 1, start: 2, write: 3, end: 4, abort: 5 } as const
/** Words of an answer: kind and type, slot, stamp, status, bytes of lines, bytes (two), elsewhere. */
export const ANSWER_WORDS = 8

/** What a pull found, if no bytes; smaller numbers are minus a status. */
export const Pull = { end: 0, wait: -1, gone: -2 } as const

/** Methods by number; 0 is any other. */
export const METHODS = ['', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'] as const
