/**
 * `napa.sync`: a lock that travels, which blocks the thread that waits for it.
 *
 * As in napajs the main thread may block, too.
 */
import { Lock as CoreLock } from '../sync/index.ts'
import {
  type AnyFunction,
  type Transportable,
  type TransportContext,
  type Unchecked,
  registerAs,
} from './values.ts'

/** A mutual-exclusion lock of all threads. {@link createLock} makes one. */
export class Lock implements Transportable {
  #lock = new CoreLock()

  /**
   * Blocks this thread until it holds the lock, calls `fn` with `params` and returns its value.
   * @throws {SyncError} `SYNC_DEADLOCK` when this thread holds it, `SYNC_ASYNC_BODY` when `fn` is async.
   */
  guardSync<Fn extends AnyFunction>(fn: Fn, params: Unchecked[] = []): ReturnType<Fn> {
    return this.#lock.guardSync((): ReturnType<Fn> => fn(...params), { allowBlocking: true })
  }

  /** The name of its class for the transport. */
  cid(): string {
    return 'napajs.Lock'
  }

  /** Its payload. */
  marshall(context: TransportContext): object {
    return { _cid: this.cid(), at: context.put(this.#lock, true) }
  }

  /** Becomes the lock of a payload. */
  unmarshall(payload: object, context: TransportContext): void {
    this.#lock = context.take((payload as { readonly at: number }).at) as CoreLock
  }
}

registerAs('napajs.Lock', Lock)

/** Creates a lock. */
export function createLock(): Lock {
  return new Lock()
}
