/**
 * The oracle of the transport's tests: is the far side the same as the near side?
 *
 * Stricter than `assert.deepStrictEqual`: two values are the same when a one-to-one mapping of their objects
 * exists under which everything agrees, so sharing and cycles count, and so do holes, −0, the order of keys,
 * and what no enumeration shows (an error's message, a pattern's lastIndex, the memory behind a view).
 */
import assert from 'node:assert/strict'
import { types } from 'node:util'
import { kindOfPrototype } from './classes/platform.ts'

/**
 * Fails with the path of the difference unless `far` is the same as `near`.
 * @param isMemory Whether the memory behind views counts as well, and not their bytes alone.
 */
export function assertSame(far: unknown, near: unknown, isMemory = true): void {
  compare(far, near, 'value', { farOf: new Map(), nearOf: new Map(), isMemory })
}

interface Compared {
  readonly farOf: Map<object, object>
  readonly nearOf: Map<object, object>
  readonly isMemory: boolean
}

function compare(far: unknown, near: unknown, path: string, compared: Compared): void {
  const { farOf, nearOf, isMemory } = compared
  if (typeof near === 'function' && typeof far === 'function') {
    assert.equal(String(far), String(near), `${path}: function`)
    return
  }
  if (typeof near !== 'object' || near === null) {
    assert.ok(Object.is(far, near), `${path}: ${String(far)} is not ${String(near)}`)
    return
  }
  assert.ok(typeof far === 'object' && far !== null, `${path}: no object arrived`)
  if (farOf.has(near) || nearOf.has(far)) {
    assert.equal(farOf.get(near), far, `${path}: shared differently`)
    assert.equal(nearOf.get(far), near, `${path}: shared differently`)
    return
  }
  farOf.set(near, far)
  nearOf.set(far, near)
  assert.equal(Object.getPrototypeOf(far), Object.getPrototypeOf(near), `${path}: prototype`)
  assert.equal(Object.prototype.toString.call(far), Object.prototype.toString.call(near), `${path}: kind`)
  const inner = (farPart: unknown, nearPart: unknown, step: string) =>
    compare(farPart, nearPart, path + step, compared)
  if (types.isMap(near)) inner([...(far as Map<unknown, unknown>)].flat(1), [...near].flat(1), ' entries')
  else if (types.isSet(near)) inner([...(far as Set<unknown>)], [...near], ' entries')
  else if (types.isAnyArrayBuffer(near)) compareBytes(far as ArrayBuffer, near as ArrayBuffer, path)
  else if (ArrayBuffer.isView(near)) compareViews(far as Uint8Array, near as Uint8Array, inner, isMemory)
  else compareFields(far, near, path, inner)
}

type Inner = (far: unknown, near: unknown, step: string) => void

function compareFields(far: object, near: object, path: string, inner: Inner): void {
  assert.deepEqual(Object.keys(far), Object.keys(near), `${path}: keys`)
  for (const key of Object.keys(near)) {
    inner((far as Record<string, unknown>)[key], (near as Record<string, unknown>)[key], `.${key}`)
  }
  if (Array.isArray(near)) assert.equal((far as unknown[]).length, near.length, `${path}: length`)
  if (types.isDate(near)) inner((far as Date).getTime(), near.getTime(), ' time')
  if (types.isBoxedPrimitive(near))
    inner((far as { valueOf(): unknown }).valueOf(), near.valueOf(), ' primitive')
  if (types.isRegExp(near)) {
    for (const part of ['source', 'flags', 'lastIndex'] as const)
      inner((far as RegExp)[part], near[part], `.${part}`)
  }
  if (near instanceof URL) inner((far as URL).href, near.href, '.href')
  const prototype = Object.getPrototypeOf(near) as object | null
  // The tests of these kinds do not rely on what is compared here: their own words for their content.
  const kind = prototype === null ? undefined : kindOfPrototype(prototype)
  if (kind !== undefined) inner(kind.save(far), kind.save(near), ` content of ${kind.name}`)
  if (near instanceof Error) {
    for (const part of ['name', 'message', 'stack', 'cause', 'errors', 'error', 'suppressed'] as const) {
      const [farPart, nearPart] = [far, near].map(
        (error) => (error as unknown as Record<string, unknown>)[part],
      )
      inner(farPart, nearPart, `.${part}`)
    }
  }
}

function compareBytes(far: ArrayBuffer, near: ArrayBuffer, path: string): void {
  assert.deepEqual(Buffer.from(far), Buffer.from(near), `${path}: bytes`)
  type Growing = ArrayBuffer & { maxByteLength?: number }
  assert.equal(
    (far as Growing).maxByteLength,
    (near as Growing).maxByteLength,
    `${path}: bytes it can grow to`,
  )
}

function compareViews(far: Uint8Array, near: Uint8Array, inner: Inner, isMemory: boolean): void {
  inner(far.byteLength, near.byteLength, '.byteLength')
  if (!isMemory) {
    const bytesOf = (view: Uint8Array): number[] => [
      ...new Uint8Array(view.buffer, view.byteOffset, view.byteLength),
    ]
    return inner(bytesOf(far), bytesOf(near), ' bytes')
  }
  // A Buffer over part of a pool leaves the rest of the pool where it is.
  if (Buffer.isBuffer(near) && near.length !== near.buffer.byteLength) return inner([...far], [...near], '')
  inner(far.byteOffset, near.byteOffset, '.byteOffset')
  inner(far.buffer, near.buffer, '.buffer')
}
