/**
 * The errors of the transport: values that cannot be encoded, bytes that cannot be decoded.
 *
 * `facts.path` is the path of the part in the caller's value (`args[1].user.socket`). Errors thrown by save
 * and load hooks of users pass unchanged.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  refuser,
} from '../base/index.ts'

/** The codes of {@link TransportError} with the facts of each. */
export type TransportCodes = {
  /** A value that no frame can contain, such as a symbol, a WeakMap or a promise. */
  TRANSPORT_REFUSED: {
    readonly path: string
    readonly what: string
    readonly why: string
  }
  /**
   * An object of a class that is not registered; `className` is '' for a class without a name. `base` is the
   * class of Node that it extends, if any.
   */
  TRANSPORT_CLASS_UNREGISTERED: {
    readonly path: string
    readonly className: string
    readonly base?: string
  }
  /** A function that cannot travel, or a function in a self-contained frame. */
  TRANSPORT_FUNCTION: { readonly path: string; readonly why: string }
  /** A value or a frame nested deeper than `depthMax`; of a value, `path` is the start of the nested part. */
  TRANSPORT_DEPTH: { readonly path?: string; readonly depthMax: number }
  /** The frame of the value would be longer than `bytesMax`. */
  TRANSPORT_TOO_LARGE: { readonly path: string; readonly bytes: number; readonly bytesMax: number }
  /** The frame contains an object of a class that is not registered in this thread. */
  TRANSPORT_CLASS_UNKNOWN: { readonly cid: string }
  /** The frame contains a kind of value that this version of Node does not have. */
  TRANSPORT_KIND_UNKNOWN: { readonly kind: string }
  /** The frame contains a version of a class that this thread cannot load. */
  TRANSPORT_CLASS_VERSION: {
    readonly cid: string
    readonly version: number
    readonly versionKnown: number
  }
  /** The frame contains a kind of handle that is not registered in this thread. */
  TRANSPORT_HANDLE_UNKNOWN: { readonly tag: string }
  /** A class that cannot be registered: its cid is taken, it needs hooks, or it travels without one. */
  TRANSPORT_REGISTRATION: { readonly cid: string; readonly why: string }
  /** The bytes are damaged or not a frame. `offset` counts from the start of the frame. */
  TRANSPORT_MALFORMED: { readonly offset: number; readonly why: string }
  /** A frame of process mode, read without that mode or written by another process. */
  TRANSPORT_PROCESS_FRAME: { readonly why: string }
  /** A frame of a format version that this release does not read. */
  TRANSPORT_VERSION: {
    readonly version: number
    readonly versionKnown: number
  }
  /** A wrong argument or option of a function of `corespun/transport`. */
  TRANSPORT_ARGUMENT: ArgumentFacts
}

const sentences: Sentences<TransportCodes> = {
  TRANSPORT_REFUSED: (f) => `${f.path} cannot be transported: ${f.what}: ${f.why}`,
  TRANSPORT_CLASS_UNREGISTERED: (f) =>
    `${f.path} cannot be transported: its class` +
    `${f.className === '' ? ', which has no name,' : ` ${f.className}`} is not registered; ` +
    (f.base === undefined ? '' : `it extends ${f.base}, so `) +
    `call register(${f.className || 'Class'}, { cid: 'app/${f.className || 'Class'}'` +
    `${f.base === undefined ? '' : ', save, load'} }) in a module that both threads import`,
  TRANSPORT_FUNCTION: (f) => `${f.path} cannot be transported: ${f.why}`,
  TRANSPORT_DEPTH: (f) =>
    (f.path === undefined ? 'the frame is' : `${f.path} cannot be transported:`) +
    ` nested deeper than ${f.depthMax} levels; send a flat form, such as a list with indices`,
  TRANSPORT_TOO_LARGE: (f) =>
    `${f.path} cannot be transported: its frame has ${f.bytes} bytes; the limit is ${f.bytesMax}; ` +
    'send it in parts',
  TRANSPORT_CLASS_UNKNOWN: (f) =>
    `the frame contains an object of class '${f.cid}', which is not registered in this thread; ` +
    'import the module that registers it',
  TRANSPORT_KIND_UNKNOWN: (f) =>
    `the frame contains a ${f.kind}, which Node ${process.versions.node} does not have; ` +
    'send a plain form of it, or use the same Node for both',
  TRANSPORT_CLASS_VERSION: (f) =>
    `the frame contains version ${f.version} of class '${f.cid}'; this thread has version ` +
    `${f.versionKnown}, registered without a load hook that reads other versions; ` +
    'register() it with one',
  TRANSPORT_HANDLE_UNKNOWN: (f) =>
    `the frame contains a handle of kind '${f.tag}', which is not registered in this thread; ` +
    'import the module that has its class',
  TRANSPORT_REGISTRATION: (f) => `class '${f.cid}' cannot be registered: ${f.why}`,
  TRANSPORT_MALFORMED: (f) =>
    `damaged frame, or not a frame: ${f.why}${f.offset === 0 ? '' : ` at byte ${f.offset}`}; ` +
    'pass exactly the bytes that encode() returned',
  TRANSPORT_PROCESS_FRAME: (f) => `a frame of process mode is refused: ${f.why}`,
  TRANSPORT_VERSION: (f) =>
    `not a frame of encode(), or one of format version ${f.version}; ` +
    `this release reads version ${f.versionKnown}; encode the value with it`,
  TRANSPORT_ARGUMENT: argumentSentence,
}

/**
 * A value that cannot be encoded, or bytes that cannot be decoded. Compare `code`; read `facts`.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { TransportError, encode } from 'corespun/transport'
 *
 * try {
 *   encode({ user: { id: Symbol('1') } })
 *   assert.fail()
 * } catch (error) {
 *   assert.ok(error instanceof TransportError)
 *   assert.equal(error.code, 'TRANSPORT_REFUSED')
 *   assert.equal((error.facts as { path: string }).path, 'value.user.id')
 * }
 * ```
 */
export class TransportError<Code extends keyof TransportCodes = keyof TransportCodes> extends CorespunError<
  TransportCodes,
  Code
> {
  /** @internal */
  static readonly sentences = sentences
}

export const wrong = refuser((facts) => new TransportError('TRANSPORT_ARGUMENT', facts))
