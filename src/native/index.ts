/**
 * The native core of this process, loaded once.
 *
 * The only folder that sees the .node file. When another copy of the package has loaded its core, that one is
 * used: all copies share one set of tables, each with a bridge of its own in every thread. The import of a
 * copy of another version is refused.
 */
import { types } from 'node:util'
import { otherRuntime } from '../base/index.ts'
import type { Binding } from './binding.ts'
import { type NativeCodes, NativeError } from './errors.ts'
import { loadBinding, loadLibrary } from './load.ts'

export type { Binding } from './binding.ts'
export { NativeError, type NativeCodes } from './errors.ts'
export {
  COUNTS,
  Ended,
  FOUND,
  Flag,
  DEPTH_MASK,
  DEPTH_UNKNOWN,
  Given,
  HEADER_BYTES,
  Helped,
  Mail,
  NO_TOKEN,
  OUTCOME,
  Order,
  Plan,
  RECORD_BYTES,
  Refused,
  Slow,
  Status,
  Step,
  Table,
  UNKNOWN_FUNCTION,
  WAITED_TICKS,
  Cancelled,
  Work,
} from './layout.ts'
export { checkAttached, doublesOf, namedBy, sharedMemory } from './memory.ts'

/**
 * The core, loaded with this module. If it does not load, each of its functions throws the
 * {@link NativeError}, so that modules which need no threads work without it. A core of another version fails
 * the import.
 */
export const native: Binding = loadOrRefuse()

function loadOrRefuse(): Binding {
  try {
    return theOne(loadBinding() as Binding)
  } catch (error) {
    // Two versions in one process also share symbols of the global object. A bundle of CommonJS has no URLs,
    // so the next module fails.
    if (error instanceof NativeError && (error.code === 'NATIVE_VERSION_MISMATCH' || hasNoUrl(error)))
      throw error
    return refusing(error)
  }
}

function hasNoUrl({ code, facts }: NativeError): boolean {
  return code === 'NATIVE_BUNDLED' && (facts as NativeCodes['NATIVE_BUNDLED']).file === ''
}

/** Functions of any name that throw `error`. */
function refusing(error: unknown): Binding {
  const refuse = (): never => {
    throw error
  }
  return new Proxy(Object.freeze({}) as Binding, { get: () => refuse })
}

function theOne(own: Binding): Binding {
  const other = own.otherInstance()
  // A copy: the object that the core has filled is in dictionary mode, and each call would be a hash look-up.
  const chosen = { ...(other === undefined ? own : shared(own, other)) }
  // Bun ends the process when a core polls a descriptor.
  if (otherRuntime() !== undefined) Object.assign(chosen, { httpOpen: undefined, linkOpen: undefined })
  const { bufferShare } = chosen
  // The core does not check the class: napi has no test for it in the oldest supported Node.
  chosen.bufferShare = (buffer) => {
    if (!types.isSharedArrayBuffer(buffer)) {
      const error = new TypeError('bufferShare: expected a SharedArrayBuffer')
      throw Object.assign(error, { code: 'NATIVE_ARGUMENT' })
    }
    return bufferShare(buffer)
  }
  return chosen
}

function shared(own: Binding, other: string): Binding {
  const space = other.indexOf(' ')
  const [version, path] = [other.slice(0, space), other.slice(space + 1)]
  if (version !== own.version()) {
    throw new NativeError('NATIVE_VERSION_MISMATCH', { path, expected: own.version(), found: version })
  }
  return loadLibrary(path) as Binding
}
