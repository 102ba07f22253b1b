/**
 * Whether an object was met twice, decided by the leaves of a frame: the objects that contain no other
 * object.
 *
 * Checked at the end of every value. Few leaves are compared in pairs; more are first compared by the bytes
 * written for them, before anything is hashed by identity.
 */

/** Up to this many leaves are compared pair by pair: faster than hashing them. */
const PAIRS_MAX = 32
/** Up to this many leaves each is searched for among the following: the engine compares many at once. */
const SEARCHED_MAX = 128
/** Most leaves of equal hash that are compared one by one. */
const PROBES_MAX = 8
/** Bytes of its content by which a leaf is hashed. */
const LOOK_BYTES = 8

/** The leaves of a frame, and where the content of each begins and ends in its bytes, without its tag. */
export interface Leaves {
  readonly objects: readonly (object | undefined)[]
  readonly from: readonly number[]
  readonly to: readonly number[]
}

/** True when no two of the first `count` leaves are the same object. */
export function areDistinct(leaves: Leaves, bytes: Uint8Array, count: number): boolean {
  if (count <= PAIRS_MAX) return isDistinct(leaves.objects, count)
  return areDistinctByContent(leaves, bytes, count) || isSet(leaves.objects.slice(0, count))
}

/**
 * True when no two leaves of equal content are the same object: an object met twice was written with the same
 * content twice. False when two are the same, or too many have the same hash.
 */
function areDistinctByContent({ objects, from, to }: Leaves, bytes: Uint8Array, count: number): boolean {
  const slots = 1 << (33 - Math.clz32(count))
  const table = new Int32Array(slots)
  for (let leaf = 0; leaf < count; leaf++) {
    let slot = look(bytes, from[leaf], to[leaf]) & (slots - 1)
    for (let probes = 0; table[slot] !== 0; probes++) {
      if (probes === PROBES_MAX || objects[table[slot] - 1] === objects[leaf]) return false
      slot = (slot + 1) & (slots - 1)
    }
    table[slot] = leaf + 1
  }
  return true
}

/** A hash of the content of a leaf: of its length and its last bytes. */
function look(bytes: Uint8Array, from: number, to: number): number {
  let hash = to - from
  for (let at = to - from > LOOK_BYTES ? to - LOOK_BYTES : from; at < to; at++) {
    hash = Math.imul(hash ^ bytes[at], 0x01000193)
  }
  return hash ^ (hash >>> 15)
}

/** True when no two of the first `count` objects are the same; for few. */
function isDistinct(objects: readonly (object | undefined)[], count: number): boolean {
  for (let later = 1; later < count; later++) {
    const object = objects[later]
    for (let earlier = 0; earlier < later; earlier++) if (objects[earlier] === object) return false
  }
  return true
}

/** True when no two of the objects are the same. */
function isSet(objects: readonly unknown[]): boolean {
  const count = objects.length
  if (count > SEARCHED_MAX) return new Set(objects).size === count
  for (let index = 1; index < count; index++)
    if (objects.indexOf(objects[index - 1], index) !== -1) return false
  return true
}
