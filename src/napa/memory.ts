/**
 * Substitutes for napajs's allocators: objects that travel, with handles, counts and no memory behind them.
 *
 * napajs allocates for C++ add-ons, which do not run here. A program that passes allocators about, compares
 * their handles or reads the counts of a debug allocator runs; an address is a name that no other allocation
 * of the process has.
 */
import { AtomicCounter } from '../sync/index.ts'
import {
  type Handle,
  type Shareable,
  type SharedRecord,
  TransportContext,
  isCid,
  registerAs,
} from './values.ts'

export type { Handle, Shareable } from './values.ts'

/** The null pointer. */
export const EMPTY_HANDLE: Handle = [0, 0]

/** Whether a handle is the null pointer. */
export function isEmpty(handle: Handle | null | undefined): boolean {
  return handle === null || handle === undefined || (handle[0] === 0 && handle[1] === 0)
}

/** The hash of the type that a handle has; 0 if there is not one. */
export function getTypeHash(handle: Handle): number {
  return handle.length === 3 ? handle[2] : 0
}

/** Whether a value is an object that all threads share. */
export function isShareable(value: unknown): boolean {
  return isCid(value) && 'handle' in value && 'refCount' in value
}

const Count = { allocate: 0, allocatedSize: 1, deallocate: 2, deallocatedSize: 3, references: 4 } as const
const COUNTS = 5
/** Addresses begin behind those of the allocators. */
const FIRST_ADDRESS = 4096
/** Drops the references of objects that were collected. */
const references = new FinalizationRegistry<BigInt64Array>((counts) => {
  Atomics.sub(counts, Count.references, 1n)
})

function refer(holder: object, counts: BigInt64Array): void {
  Atomics.add(counts, Count.references, 1n)
  references.register(holder, counts)
}

/** Returns addresses in a range that nothing else in the process has. */
function address(size: number): Handle {
  const counter = AtomicCounter.getOrCreate('corespun.napa.memory')
  const end = FIRST_ADDRESS + counter.add(Math.max(1, size))
  const at = end - Math.max(1, size)
  return [at >>> 0, Math.floor(at / 2 ** 32)]
}

/** An allocator without memory. `crtAllocator` and `defaultAllocator` are two; programs make none. */
export class Allocator implements Shareable {
  /** Its address in napajs; here its name. */
  readonly handle: Handle
  /** What it is called in logs. */
  readonly type: string
  #counts: BigInt64Array

  /** @internal */
  constructor(record: SharedRecord = { handle: EMPTY_HANDLE, type: '', counts: newCounts() }) {
    this.handle = record.handle
    this.type = record.type
    this.#counts = record.counts
    refer(this, record.counts)
  }

  /** How many objects and contexts refer to it, as far as this thread's are not collected yet. */
  get refCount(): number {
    return Number(Atomics.load(this.#counts, Count.references))
  }

  /** @internal */
  get record(): SharedRecord {
    return { handle: this.handle, type: this.type, counts: this.#counts }
  }

  /** Whether its handle is the null pointer. */
  isNull(): boolean {
    return isEmpty(this.handle)
  }

  /** Returns an address of `size` bytes that no other allocation has, and no memory. */
  allocate(size: number): Handle {
    this.count(Count.allocate, size)
    return address(size)
  }

  /** Counts the end of an allocation; `sizeHint` bytes, 0 if that is not known. */
  deallocate(handle: Handle, sizeHint: number): void {
    if (!isEmpty(handle)) this.count(Count.deallocate, sizeHint)
  }

  /** The name of its class for the transport. */
  cid(): string {
    return 'napajs.Allocator'
  }

  /** Its payload; the context has what all threads share of it. */
  marshall(context: TransportContext): object {
    context.saveShared(this)
    return { _cid: this.cid(), handle: this.handle }
  }

  /** Becomes the allocator of a payload. */
  unmarshall(payload: object, context: TransportContext): void {
    const record = context.recordOf((payload as { readonly handle: Handle }).handle)
    Object.assign(this, { handle: record.handle, type: record.type })
    this.#counts = record.counts
    refer(this, record.counts)
  }

  /** @internal */
  protected counted(which: keyof typeof Count): number {
    return Number(Atomics.load(this.#counts, Count[which]))
  }

  private count(which: 0 | 2, size: number): void {
    Atomics.add(this.#counts, which, 1n)
    Atomics.add(this.#counts, which + 1, BigInt(Math.trunc(size)))
  }
}

/** An allocator that counts what others allocate through it, in all threads. */
export class AllocatorDebugger extends Allocator {
  /** The name of its class for the transport. */
  override cid(): string {
    return 'napajs.AllocatorDebugger'
  }

  /** Its counts as JSON: `allocate`, `allocatedSize`, `deallocate`, `deallocatedSize`. */
  getDebugInfo(): string {
    return JSON.stringify({
      allocate: this.counted('allocate'),
      allocatedSize: this.counted('allocatedSize'),
      deallocate: this.counted('deallocate'),
      deallocatedSize: this.counted('deallocatedSize'),
    })
  }
}

function newCounts(): BigInt64Array {
  return new BigInt64Array(new SharedArrayBuffer(COUNTS * BigInt64Array.BYTES_PER_ELEMENT))
}

/** The allocator of the C runtime. */
export const crtAllocator = new Allocator({ handle: [1, 0], type: 'CrtAllocator', counts: newCounts() })
/** The allocator that napajs uses. */
export const defaultAllocator = new Allocator({
  handle: [2, 0],
  type: 'DefaultAllocator',
  counts: newCounts(),
})

/** An allocator that counts the allocations made through it. */
export function debugAllocator(allocator: Allocator): AllocatorDebugger {
  return new AllocatorDebugger({
    handle: address(1),
    type: `AllocatorDebugger(${allocator.type})`,
    counts: newCounts(),
  })
}

registerAs('napajs.Allocator', Allocator)
registerAs('napajs.AllocatorDebugger', AllocatorDebugger)
TransportContext.loads = (record): Shareable =>
  record.type.startsWith('AllocatorDebugger') ? new AllocatorDebugger(record) : new Allocator(record)
