/**
 * `napa.transport`: the classes that travel, and values as JSON.
 *
 * How they are written is in values.ts.
 */
import { isAbsolute, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TransportError, callerFile } from '../transport/internal.ts'
import {
  type Transportable,
  type TransportableClass,
  TransportContext,
  marshallTransform,
  registerAs,
} from './values.ts'

export {
  type AnyFunction,
  type Transportable,
  type TransportableClass,
  type Unchecked,
  TransportContext,
  isTransportable,
  loadFunction,
  marshall,
  marshallTransform,
  saveFunction,
  unmarshall,
} from './values.ts'

/** A class that has its name in payloads. */
type Named = TransportableClass & { _cid?: string }

/** A base of classes that define what travels, by `save` and `load`. Their constructors need no arguments. */
export abstract class TransportableObject implements Transportable {
  /** The name of its class in payloads. */
  cid(): string {
    return (this.constructor as Named)._cid as string
  }

  /** Writes the object into `payload`. */
  abstract save(payload: object, context: TransportContext): void
  /** Reads the object from `payload`, whose inner objects have been read. */
  abstract load(payload: object, context: TransportContext): void

  /** Its payload. */
  marshall(context: TransportContext): object {
    const payload = { _cid: this.cid() }
    this.save(payload, context)
    return payload
  }

  /** Becomes the object of a payload. */
  unmarshall(payload: object, context: TransportContext): void {
    this.load(payload, context)
  }
}

/** A base of classes all of whose own properties travel. */
export class AutoTransportable extends TransportableObject {
  /** Writes its own properties. */
  save(payload: object, context: TransportContext): void {
    for (const [name, value] of Object.entries(this))
      Object.assign(payload, { [name]: marshallTransform(value, context) })
  }

  /** Takes the properties of `payload` over. */
  load(payload: object): void {
    const { _cid, ...own } = payload as { readonly _cid: string }
    Object.assign(this, own)
  }
}

/**
 * Registers a class by the name that its `cid()` returns, in each thread that imports its module.
 * @throws {TransportError} `TRANSPORT_REGISTRATION` when it has no name, or another class has it.
 */
export function register(subClass: TransportableClass): void {
  const name = (subClass as Named)._cid ?? new subClass().cid()
  if (typeof name !== 'string') {
    const why = 'its cid() returns no name; write @cid() before the class'
    throw new TransportError('TRANSPORT_REGISTRATION', { cid: subClass.name, why })
  }
  registerAs(name, subClass)
}

/**
 * Class decorator that names and registers a class: by `guid`, or by its module and its own name. Works as a
 * standard decorator and with TypeScript's `experimentalDecorators`.
 * @throws {TransportError} `TRANSPORT_REGISTRATION` when another class has the name.
 */
export function cid(guid?: string) {
  const module = guid === undefined ? moduleName(callerFile(cid)) : undefined
  return (subClass: TransportableClass, _context?: unknown): void => {
    const name = guid ?? `${module}.${subClass.name}`
    Object.defineProperty(subClass, '_cid', { value: name, configurable: true, writable: true })
    register(subClass)
  }
}

/** An empty context, for {@link marshall}. */
export function createTransportContext(): TransportContext {
  return new TransportContext()
}

/** The same in all threads: the path in its package, or below the working directory. */
function moduleName(file: string): string {
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  const name = path
    .replace(/\.[cm]?[jt]s$/, '')
    .split(sep)
    .join('/')
  const inPackage = name.lastIndexOf('node_modules/')
  if (inPackage >= 0) return name.slice(inPackage + 'node_modules/'.length)
  return isAbsolute(path) ? relative(process.cwd(), name).split(sep).join('/') : name
}
