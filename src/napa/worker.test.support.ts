/**
 * The functions that the cases call by the name of a module, as programs for napajs do.
 *
 * Those that assert do so where they run, and their error is the rejection of the call.
 */
import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import * as napa from './index.ts'
import type { TransportContext, Unchecked } from './values.ts'

export const api = {
  inner: {
    echo: (value: Unchecked): Unchecked => value,
  },
}

export function echo(value: Unchecked): Unchecked {
  return value
}

export default function whole(value: Unchecked): Unchecked {
  return value
}

/** Calls a zone from here; the names of modules are relative to this file. */
export async function relay(to: string, method: string, ...args: Unchecked[]): Promise<Unchecked> {
  const zone = napa.zone.get(to) as unknown as Record<string, (...all: Unchecked[]) => Unchecked>
  const result = await zone[method](...args)
  return result instanceof napa.zone.Result ? result.value : undefined
}

/** A zone goes with its last reference. */
const keptZones: napa.zone.Zone[] = []

export function createZone(id: string): napa.zone.Zone {
  keptZones.push(napa.zone.create(id, { workers: 1 }))
  return keptZones[0]
}

export function getZone(id: string): napa.zone.Zone {
  return napa.zone.get(id)
}

export function currentZone(): napa.zone.Zone {
  return napa.zone.current
}

/** Sends a function that uses what only this module has. */
export async function relayClosure(to: string, method: 'execute' | 'broadcast'): Promise<void> {
  const zone = napa.zone.get(to)
  await zone[method](() => zone.id)
}

export async function timed(to: string, ms: number, timeout: number): Promise<Unchecked> {
  return (await napa.zone.get(to).execute(spin, [ms], { timeout })).value
}

export function never(): Promise<never> {
  return new Promise(() => {})
}

export function spin(ms: number): number {
  const begun = Date.now()
  while (Date.now() - begun < ms);
  return ms
}

let kept: napa.store.Store | undefined

export function getOrCreateStore(id: string): void {
  kept = napa.store.getOrCreate(id)
  assert.deepEqual([kept.id, kept.size], [id, 0])
}

export function setValue(id: string, key: string, value: Unchecked): void {
  napa.store.get(id)?.set(key, value)
}

export function checkValue(id: string, key: string, expected: Unchecked): void {
  const found = napa.store.get(id)?.get(key)
  assert.deepEqual(found, expected)
}

export function deleteValue(id: string, key: string): void {
  napa.store.get(id)?.delete(key)
}

export function checkAbsent(id: string, key: string): void {
  const store = napa.store.get(id)
  assert.equal(store?.has(key), false)
  assert.equal(store?.get(key), undefined)
}

/** Not registered: its objects do not travel. */
export class Unknown {
  count = 1
}

/** Travels by `save` and `load`. */
export class Pair extends napa.transport.TransportableObject {
  allocator: napa.memory.Allocator | undefined

  constructor(allocator?: napa.memory.Allocator) {
    super()
    this.allocator = allocator
  }

  save(payload: { allocator?: object | undefined }, context: TransportContext): void {
    payload.allocator = this.allocator?.marshall(context)
  }

  load(payload: { allocator: napa.memory.Allocator }): void {
    this.allocator = payload.allocator
  }
}
napa.transport.cid()(Pair)

/** All of its properties travel. */
export class Auto extends napa.transport.AutoTransportable {
  data: Unchecked

  constructor(data?: Unchecked) {
    super()
    this.data = data
  }
}
napa.transport.cid('napa.test.Auto')(Auto)

/** Values whose text becomes the same value again. */
export const VALUES: Readonly<Record<string, () => Unchecked>> = {
  simple: () => ({ a: 'text', b: { c: [0, 1] }, d: null }),
  object: () => [new Pair(napa.memory.crtAllocator), new Auto({ a: 1, b: ['x'] })],
  addon: () => napa.memory.debugAllocator(napa.memory.crtAllocator),
  function: () => () => 0,
  composite: () => ({ a: [napa.memory.defaultAllocator, 1], b: { c: new Auto(2) } }),
}

/** Writes a value and reads it again, in this thread. */
export function checkRound(which: string): void {
  const value = VALUES[which]()
  const context = napa.transport.createTransportContext()
  const read = napa.transport.unmarshall(napa.transport.marshall(value, context), context)
  assert.equal(String(read), String(value))
  assert.equal(JSON.stringify(read), JSON.stringify(value))
  assert.equal(inspect(read), inspect(value))
}

export function checkRefusal(): void {
  const context = napa.transport.createTransportContext()
  assert.throws(() => napa.transport.marshall({ a: new Unknown() }, context), { code: 'TRANSPORT_REFUSED' })
}

export function checkAllocator(which: 'crtAllocator' | 'defaultAllocator'): void {
  const allocator = napa.memory[which]
  const handle = allocator.allocate(10)
  assert.equal(napa.memory.isEmpty(handle), false)
  allocator.deallocate(handle, 10)
}

export function checkDebugger(): void {
  const allocator = napa.memory.debugAllocator(napa.memory.defaultAllocator)
  allocator.deallocate(allocator.allocate(10), 10)
  assert.deepEqual(JSON.parse(allocator.getDebugInfo()), {
    allocate: 1,
    allocatedSize: 10,
    deallocate: 1,
    deallocatedSize: 10,
  })
}

/** Fills from the end, each element in another thread, and returns what each of them has seen of the last. */
export async function fill(ids: string[], array: Uint8Array, at: number): Promise<number[]> {
  array[at] = 7
  if (at === 0) return [array[array.length - 1]]
  const inner = await napa.zone.get(ids[at % ids.length]).execute(MODULE, 'fill', [ids, array, at - 1])
  return [array[0], ...inner.value]
}

const MODULE = import.meta.url

/** Of four callbacks the second is cancelled; the others run in their order. */
export function immediates(): Promise<string> {
  const order: number[] = []
  return new Promise((resolve) => {
    const all = [0, 1, 2, 3].map((task) =>
      setImmediate(() => {
        order.push(task)
        if (task === 3) resolve(order.join())
      }),
    )
    clearImmediate(all[1])
  })
}

export function timeouts(first: number): Promise<string> {
  const order: number[] = []
  return new Promise((resolve) => {
    const all = [0, 1, 2, 3].map((task) =>
      setTimeout(
        () => {
          order.push(task)
          if (task === 3) resolve(order.join())
        },
        first + task * 5,
      ),
    )
    clearTimeout(all[1])
  })
}

/** How often it ran, and whether it still does after it was cancelled. */
export function intervals(count: number): Promise<number> {
  let runs = 0
  return new Promise((resolve) => {
    const interval = setInterval(() => {
      if (++runs !== count) return
      clearInterval(interval)
      setTimeout(() => resolve(runs), 20)
    }, 2)
  })
}
