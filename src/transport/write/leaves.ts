/**
 * Whether an object was met twice, decided by the leaves of a frame: the objects that contain no other
 * object.
 *
 * Checked at the end of every value. Few leaves are compared in pairs. Of more, only those are compared by
 * identity whose content in the frame looks like that of another leaf.
 */

/** Up to this many leaves are compared pair by pair: faster than hashing them. */
const PAIRS_MAX = 32
/** Up to this many leaves each is searched for among the following: the engine compares many at once. */
const SEARCHED_MAX = 128
/** Bytes of its content by which a leaf is hashed. */
const LOOK_BYTES = 8
/** Leaves for which the tables are kept from frame to frame. */
const KEPT_MAX = 4096

/** The leaves of a frame, and where the content of each begins and ends in its bytes, without its tag. */
export interface Leaves {
  readonly objects: readonly (object | undefined)[]
  readonly from: Int32Array
  readonly to: Int32Array
}

/** True when no two of the first `count` leaves are the same object. */
export function areDistinct(leaves: Leaves, bytes: Uint8Array, count: number): boolean {
  if (count <= PAIRS_MAX) return isDistinct(leaves.objects, count)
  const suspects = alike(leaves, bytes, count)
  return suspects === undefined || isSet(suspects)
}

/** For each leaf its hash; a bit per hash that was met, and one per hash that was met again. */
interface Tables {
  readonly hashes: Int32Array
  readonly met: Int32Array
  readonly again: Int32Array
}

let kept: Tables | undefined

/** Tables for `count` leaves: more than 32 bits for each, so that few contents have the same hash. */
function tablesFor(count: number): Tables {
  return {
    hashes: new Int32Array(count),
    met: new Int32Array(wordsFor(count)),
    again: new Int32Array(wordsFor(count)),
  }
}

/** A power of two above `count`. */
function wordsFor(count: number): number {
  return 1 << (32 - Math.clz32(count))
}

/**
 * The leaves whose content has the hash of another leaf's; `undefined` when all hashes differ. An object met
 * twice is among them: it was written with the same content twice.
 */
function alike(leaves: Leaves, bytes: Uint8Array, count: number): object[] | undefined {
  const { objects, from, to } = leaves
  const words = wordsFor(count)
  const { hashes, met, again } = count < KEPT_MAX ? (kept ??= tablesFor(KEPT_MAX)) : tablesFor(count)
  if (count < KEPT_MAX) met.fill(0, 0, words)
  let isAlike = false
  for (let leaf = 0; leaf < count; leaf++) {
    const hash = look(bytes, from[leaf], to[leaf])
    hashes[leaf] = hash
    const word = (hash >>> 5) & (words - 1)
    const bit = 1 << hash
    if ((met[word] & bit) === 0) met[word] |= bit
    else {
      if (!isAlike) again.fill(0, 0, words)
      isAlike = true
      again[word] |= bit
    }
  }
  if (!isAlike) return undefined
  const suspects: object[] = []
  for (let leaf = 0; leaf < count; leaf++) {
    const hash = hashes[leaf]
    if ((again[(hash >>> 5) & (words - 1)] & (1 << hash)) !== 0) suspects.push(objects[leaf] as object)
  }
  return suspects
}

/** A hash of the content of a leaf: of its length and its last bytes. */
function look(bytes: Uint8Array, from: number, to: number): number {
  let hash = to - from
  for (let at = to - from > LOOK_BYTES ? to - LOOK_BYTES : from; at < to; at++) {
    hash = Math.imul(hash ^ bytes[at], 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return hash ^ (hash >>> 13)
}

/** True when no two of the first `count` objects are the same; for few. */
function isDistinct(objects: readonly (object | undefined)[], count: number): boolean {
  for (let later = 1; later < count; later++) {
    const object = objects[later]
    for (let earlier = 0; earlier < later; earlier++) if (objects[earlier] === object) return false
  }
  return true
}

/** True when no two of the objects are the same: without loops that the engine interprets at first. */
export function isSet(objects: readonly unknown[]): boolean {
  const count = objects.length
  if (count > SEARCHED_MAX) return new Set(objects).size === count
  for (let index = 1; index < count; index++)
    if (objects.indexOf(objects[index - 1], index) !== -1) return false
  return true
}
