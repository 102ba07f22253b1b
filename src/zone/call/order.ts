/**
 * The order of a call among those that wait: its priority, its tenant, the worker that keeps its key.
 *
 * Options of calls, checked into a record that the submitter writes into the words of the core. Keys are
 * hashed with a secret of the process, so that nobody can choose one that shares another's line. The order
 * itself is the core's (crates/bridge/src/zone/queue).
 */
import { type Kind, flag, integer, meters, oneOf, valueOfKind } from '../../base/index.ts'
import { Order } from '../../native/index.ts'
import { processToken } from '../../transport/internal.ts'
import { wrong } from '../ground/settings.ts'

/** How urgent a call is. */
export type Priority = 'high' | 'normal' | 'low'

/** The options that choose which waiting call begins next. Calls without them pay nothing for them. */
export interface OrderOptions {
  /**
   * `high` calls begin before `normal` ones, those before `low` ones. None starves: while a call of a lower
   * priority waits, at most 32 calls of higher ones begin before the first of its own. Default `normal`.
   */
  readonly priority?: Priority | undefined
  /**
   * Whom the call is for: within a priority the tenants take turns, so that one with a million waiting calls
   * delays another's one by a single task; `tasksPerTenantMax` of the zone bounds how many wait. Calls
   * without a tenant are one tenant together. The number 7 and the string `'7'` are the same key. Default:
   * none.
   */
  readonly tenant?: string | number | undefined
  /**
   * Calls of this tenant that begin in one turn, 1 to 1000; of several weights of a tenant the last one given
   * counts. Needs `tenant`. Default 1.
   */
  readonly weight?: number | undefined
  /**
   * Calls with the same key run on the same worker, in turn with what any worker may run. When that worker is
   * replaced, because it died or by `reload`, its waiting calls run on its replacement, which
   * has nothing of its memory. Needs a zone whose number of workers is fixed. Default: none.
   */
  readonly affinity?: string | number | undefined
  /**
   * No other task runs beside this one in its worker, so that its end by `timeoutMs` or `signal`, which may
   * replace the worker, ends no other. At its turn it waits until a worker runs nothing; that worker begins
   * nothing meanwhile but what its tasks wait for. While the task itself awaits a call or a stream, tasks
   * that tasks have called may begin beside it, and if nothing moves in its streams, any that are not
   * exclusive. A task of the zone cannot make such a call, nor can one that another task called:
   * `ZONE_DEADLOCK`. Default false.
   */
  readonly exclusive?: boolean | undefined
}

/** The checked {@link OrderOptions} of a call that has some. */
export interface CallOrder {
  readonly given: OrderOptions
  /** The priority, the weight and whether it is exclusive, in the bits that the core reads. */
  readonly word: number
  readonly tenant: Hash
  /** By what the worker is chosen that is to run it; the worker itself where it was named. */
  readonly affinity: Hash | WorkerNumber | undefined
}

/** A worker as the `affinity` of the calls of `zone.worker(n)`. */
export class WorkerNumber {
  readonly worker: number

  constructor(worker: number) {
    this.worker = worker
  }
}

type Hash = readonly [low: number, high: number]

const KEY_LENGTH_MAX = 1024
const WEIGHT_MAX = 1000
const NO_TENANT: Hash = [0, 0]
const PRIORITIES = { high: Order.high, normal: Order.normal, low: Order.low } as const
const KEY: Kind<string | number | undefined> = {
  expected: `a number, or a string of ${KEY_LENGTH_MAX} characters at most`,
  accepts: (key) =>
    typeof key === 'string' ? key.length <= KEY_LENGTH_MAX : typeof key === 'number' && !Number.isNaN(key),
  default: undefined,
}

const AFFINITY: typeof KEY = {
  ...KEY,
  accepts: (key) => KEY.accepts(key) || key instanceof WorkerNumber,
}

export const ORDER_KINDS = {
  priority: oneOf<Priority, undefined>(['high', 'normal', 'low'], undefined),
  tenant: KEY,
  weight: integer<number | undefined>(1, WEIGHT_MAX, undefined),
  affinity: AFFINITY,
  exclusive: flag<boolean | undefined>(undefined),
}
export const ORDER_NAMES = Object.keys(ORDER_KINDS) as readonly (keyof OrderOptions)[]

/**
 * The checked options; `undefined` without any.
 * @throws {ZoneError} `ZONE_ARGUMENT`.
 */
export function orderOf(call: string, options: OrderOptions): CallOrder | undefined {
  // Not what a program has put on `Object.prototype`.
  const own = <Name extends keyof OrderOptions>(name: Name): OrderOptions[Name] =>
    Object.hasOwn(options, name) ? options[name] : undefined
  const given: OrderOptions = {
    priority: own('priority'),
    tenant: own('tenant'),
    weight: own('weight'),
    affinity: own('affinity'),
    exclusive: own('exclusive'),
  }
  const { priority, tenant, weight, affinity, exclusive } = given
  const isGiven =
    priority !== undefined || tenant !== undefined || weight !== undefined || affinity !== undefined
  if (!isGiven && exclusive === undefined) return undefined
  for (const name of ORDER_NAMES) valueOfKind<unknown>(call, name, given[name], ORDER_KINDS[name], wrong)
  if (weight !== undefined && tenant === undefined)
    throw wrong(`${call}: weight`, 'a tenant, whose calls it counts', weight, { verb: 'needs' })
  const isNamed = (affinity as unknown) instanceof WorkerNumber
  const flags = (isNamed ? 0 : Order.moves) | (exclusive === true ? Order.exclusive : 0)
  return {
    given,
    word: PRIORITIES[priority ?? 'normal'] | flags | ((weight ?? 1) << Order.weightShift),
    tenant: tenant === undefined ? NO_TENANT : named(String(tenant), hashed(tenant)),
    affinity: affinity === undefined || isNamed ? (affinity as WorkerNumber | undefined) : hashed(affinity),
  }
}

let lastNamed: string | undefined

/** Passes the name of a tenant to who counts, where the last call was for another one. */
function named(tenant: string, hash: Hash): Hash {
  if (meters.tenant !== undefined && tenant !== lastNamed) {
    lastNamed = tenant
    meters.tenant(tenant, hash[0], hash[1])
  }
  return hash
}

let last: { readonly text: string; readonly hash: Hash } | undefined

/** The hash of a key, never that of no tenant. */
function hashed(key: string | number): Hash {
  const text = String(key)
  if (last?.text === text) return last.hash
  const [low, high] = hashOf(text, processToken())
  const hash: Hash = [low | (low === 0 && high === 0 ? 1 : 0), high]
  last = { text, hash }
  return hash
}

/** Where the state of a hash begins; the last two bytes distinguish results of 64 bits. */
const [BEGIN_2, BEGIN_3, OF_64_BITS, FIRST, SECOND] = [0x6c796765, 0x74656462, 0xee, 0xee, 0xdd]

/**
 * HalfSipHash-1-3 with a result of 64 bits (J.-P. Aumasson, D. J. Bernstein: SipHash, 2012), on words of two
 * characters: without the key nobody can construct collisions.
 */
export function hashOf(text: string, [key0, key1]: readonly [number, number]): Hash {
  let [v0, v1, v2, v3] = [key0, key1 ^ OF_64_BITS, BEGIN_2 ^ key0, BEGIN_3 ^ key1]
  const mix = (): void => {
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
  }
  const take = (word: number): void => {
    v3 ^= word
    mix()
    v0 ^= word
  }
  const { length } = text
  for (let at = 0; at < length; at += 2)
    take(text.charCodeAt(at) | (at + 1 < length ? text.charCodeAt(at + 1) << 16 : 0))
  take(length)
  v2 ^= FIRST
  for (let round = 0; round < 3; round++) mix()
  const low = v1 ^ v3
  v1 ^= SECOND
  for (let round = 0; round < 3; round++) mix()
  return [low, v1 ^ v3]
}
