/**
 * What the transport refuses, and what it says of bytes that are no frame.
 *
 * Every failure a caller can meet is one of these codes; `facts.path` says where in the value it lies, in the
 * words of the caller (`args[1].user.socket`). Errors thrown by save and load hooks of users pass unchanged.
 */
import {
  type ArgumentFacts,
  CorespunError,
  type Sentences,
  argumentSentence,
  refuser,
} from '../base/index.ts'

/** The facts of each code. */
export type TransportCodes = {
  /** A value no frame can carry: a symbol, a WeakMap, a promise... */
  TRANSPORT_REFUSED: {
    readonly path: string
    readonly what: string
    readonly why: string
  }
  /** An object of a class nobody registered. `base` is the class of Node that it extends, if it does. */
  TRANSPORT_CLASS_UNREGISTERED: {
    readonly path: string
    readonly className: string
    readonly base?: string
  }
  /** A function that cannot travel, or travels in a frame that may not carry code. */
  TRANSPORT_FUNCTION: { readonly path: string; readonly why: string }
  /** Nested deeper than `depthMax`, in a value, where `path` is how it begins; or in a frame, without. */
  TRANSPORT_DEPTH: { readonly path?: string; readonly depthMax: number }
  /** The frame of the value called `path` would be longer than `bytesMax`. */
  TRANSPORT_TOO_LARGE: { readonly path: string; readonly bytes: number; readonly bytesMax: number }
  /** The frame names a class that this thread did not register. */
  TRANSPORT_CLASS_UNKNOWN: { readonly cid: string }
  /** The frame holds a kind of the language that this version of Node lacks. */
  TRANSPORT_KIND_UNKNOWN: { readonly kind: string }
  /** The frame holds a version of a class that this thread cannot load. */
  TRANSPORT_CLASS_VERSION: {
    readonly cid: string
    readonly version: number
    readonly versionKnown: number
  }
  /** The frame holds a kind of handle that this thread did not register. */
  TRANSPORT_HANDLE_UNKNOWN: { readonly tag: string }
  /** A registration that cannot stand: its cid is taken, its class keeps fields nobody can save... */
  TRANSPORT_REGISTRATION: { readonly cid: string; readonly why: string }
  /** The bytes are no frame, or a damaged one. `offset` counts from the start of the frame. */
  TRANSPORT_MALFORMED: { readonly offset: number; readonly why: string }
  /** A frame that names things of a process, which nobody asked for or which this process did not write. */
  TRANSPORT_PROCESS_FRAME: { readonly why: string }
  /** A frame of a format version this release does not read. */
  TRANSPORT_VERSION: {
    readonly version: number
    readonly versionKnown: number
  }
  /** An argument of the transport's own functions is not what it must be. */
  TRANSPORT_ARGUMENT: ArgumentFacts
}

const sentences: Sentences<TransportCodes> = {
  TRANSPORT_REFUSED: (f) => `${f.path} cannot be transported: ${f.what}: ${f.why}`,
  TRANSPORT_CLASS_UNREGISTERED: (f) =>
    `${f.path} cannot be transported: its class ${f.className} is not registered; ` +
    (f.base === undefined
      ? `call register(${f.className}, {cid})`
      : `it extends ${f.base}, so call register(${f.className}, {cid, save, load})`),
  TRANSPORT_FUNCTION: (f) => `${f.path} cannot be transported: ${f.why}`,
  TRANSPORT_DEPTH: (f) =>
    f.path === undefined
      ? `nested deeper than ${f.depthMax} levels`
      : `${f.path} cannot be transported: nested deeper than ${f.depthMax} levels`,
  TRANSPORT_TOO_LARGE: (f) =>
    `${f.path} cannot be transported: its frame of ${f.bytes} bytes is longer than ` +
    `the ${f.bytesMax} a frame may have`,
  TRANSPORT_CLASS_UNKNOWN: (f) =>
    `the frame holds an object of class '${f.cid}', which is not registered in this thread`,
  TRANSPORT_KIND_UNKNOWN: (f) => `the frame holds a ${f.kind}, which this version of Node does not have`,
  TRANSPORT_CLASS_VERSION: (f) =>
    `the frame holds version ${f.version} of class '${f.cid}'; this thread knows version ${f.versionKnown} ` +
    'and its registration has no load that could read another',
  TRANSPORT_HANDLE_UNKNOWN: (f) =>
    `the frame holds a handle of kind '${f.tag}', which is not registered in this thread`,
  TRANSPORT_REGISTRATION: (f) => `class '${f.cid}' cannot be registered: ${f.why}`,
  TRANSPORT_MALFORMED: (f) => `not a frame, or a damaged one: ${f.why} at byte ${f.offset}`,
  TRANSPORT_PROCESS_FRAME: (f) =>
    `a frame that names functions, handles and memory of a process is refused: ${f.why}`,
  TRANSPORT_VERSION: (f) =>
    `a frame of format version ${f.version}; this release reads version ${f.versionKnown}`,
  TRANSPORT_ARGUMENT: argumentSentence,
}

/** A value that cannot travel, or bytes that are no frame. Decide by `code`, read `facts`. */
export class TransportError<Code extends keyof TransportCodes = keyof TransportCodes> extends CorespunError<
  TransportCodes,
  Code
> {
  /** @param code The failure. @param facts What it is about. @param options `cause`. */
  constructor(code: Code, facts: TransportCodes[Code], options?: ErrorOptions) {
    super(sentences, code, facts, options)
  }
}

/** The error for a value that an argument cannot have. */
export const wrong = refuser((facts) => new TransportError('TRANSPORT_ARGUMENT', facts))
