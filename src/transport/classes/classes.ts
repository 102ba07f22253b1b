/**
 * The registry of classes and handles that may travel, one per thread.
 *
 * A cid means the same class in every thread because every thread runs the module that registers it. The
 * default keeps own enumerable fields and the prototype. It cannot see #private members and the internal
 * state of Node's classes, so `register` refuses such a class without hooks: the loss would be silent.
 * `checkState` refuses objects with other state outside of their fields.
 */
import { TransportError, wrong } from '../errors.ts'
import { type Kind, callback, integer, optionsOf, text } from '../../base/index.ts'
import type { Class, ClassEntry } from '../class-entry.ts'
import { Refusal } from '../sink.ts'
import { VIEW_KINDS } from '../format.ts'
import { platformNameOf } from './platform.ts'
import { privateNames } from './private-names.ts'

/** How objects of a class are saved and loaded. */
export interface ClassOptions<Instance extends object = object, Saved = unknown> {
  /** The name of the class in frames: any string, the same in every thread and release. */
  readonly cid: string
  /** Version of the saved form, an integer from 0 to 4294967295; 0 by default. `load` receives it. */
  readonly version?: number
  /** Returns what to keep of an object: any value that can travel. Default: its own enumerable fields. */
  readonly save?: (object: Instance) => Saved
  /** Makes the object. Default: an object with the saved fields; the constructor does not run. */
  readonly load?: (saved: Saved, version: number) => Instance
}

/** How a kind of handle travels: both sides refer to the same native object, not to a copy. */
export interface HandleOptions<Handle extends object = object, Saved = unknown> {
  /** The name of the kind in frames. */
  readonly tag: string
  /** Which objects are handles of this kind: a class, or a test. */
  readonly is: Class<Handle> | ((value: object) => boolean)
  /** Returns what identifies the object: any value that can travel. Runs once per frame. */
  readonly save: (handle: Handle) => Saved
  /** Finds the object that is so identified, in the thread that reads. */
  readonly load: (saved: Saved) => Handle
  /** Whether the frame may leave this process; `false` by default. */
  readonly isSelfContained?: boolean
  /** `save` reads public members only, so that it works on handles of another copy of the package. */
  readonly isOfAnyCopy?: boolean
}

export interface HandleEntry {
  readonly tag: string
  readonly is: (value: object) => boolean
  readonly save: (handle: object) => unknown
  readonly load: (saved: unknown) => object
  readonly isSelfContained: boolean
}

const classesByPrototype = new Map<object, ClassEntry>()
const classesByCid = new Map<string, ClassEntry>()
const handlesByTag = new Map<string, HandleEntry>()
const handlesByPrototype = new Map<object, HandleEntry>()
const handlesByTest: HandleEntry[] = []

/** Tags, by prototype, of the handles that any copy of the package in this thread can save. */
const ofAnyCopy = sharedByCopies()

function sharedByCopies(): WeakMap<object, string> {
  const key = Symbol.for('corespun.handles')
  const known = (globalThis as { [key]?: WeakMap<object, string> })[key]
  if (known !== undefined) return known
  const value = new WeakMap<object, string>()
  Object.defineProperty(globalThis, key, { value })
  return value
}

/**
 * Register a class under the name `options.cid`, so that its objects can travel. Every thread that reads them
 * must register the class too: call `register` in the module of the class. Registering the class again under
 * the same cid replaces its options.
 * @throws {TransportError} `TRANSPORT_REGISTRATION` when the cid belongs to another class or the class to
 *   another cid, when the class travels without a registration, or when its content is not in its fields
 *   (#private members, classes of Node) and the hooks for it are missing. `TRANSPORT_ARGUMENT` when an
 *   argument or an option is wrong.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { decode, encode, register } from 'corespun/transport'
 *
 * class Money {
 *   #cents: number
 *   constructor(cents: number) {
 *     this.#cents = cents
 *   }
 *   get cents(): number {
 *     return this.#cents
 *   }
 * }
 * register(Money, { cid: 'shop.Money', save: (money) => money.cents, load: (cents) => new Money(cents) })
 * const price = decode(encode(new Money(250))) as Money
 * assert.equal(price.cents, 250)
 * ```
 */
export function register<Instance extends object, Saved = unknown>(
  constructor: Class<Instance>,
  options: ClassOptions<Instance, Saved>,
): void {
  const entry = checkedEntry(constructor, options as unknown as ClassOptions)
  const named = classesByCid.get(entry.cid)
  if (named !== undefined && named.prototype !== entry.prototype)
    refuse(entry.cid, `the cid belongs to another class${ofName(named.prototype)}; choose another cid`)
  const known = classesByPrototype.get(entry.prototype)
  if (known !== undefined && known.cid !== entry.cid)
    refuse(entry.cid, `the class is registered as '${known.cid}'`)
  if (known !== undefined) {
    known.isStale = true
    known.writers.clear()
  }
  classesByCid.set(entry.cid, entry)
  classesByPrototype.set(entry.prototype, entry)
}

/**
 * Class decorator that calls {@link register}: `@transportable('orders.Order') class Order {}`. Works as a
 * standard decorator and with TypeScript's `experimentalDecorators`.
 * @throws {TransportError} `TRANSPORT_REGISTRATION` or `TRANSPORT_ARGUMENT`, as {@link register}.
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { decode, encode, transportable } from 'corespun/transport'
 *
 * class Order {
 *   total = 0
 * }
 * transportable('orders.Order')(Order) // in code that is compiled: @transportable('orders.Order')
 * assert.ok(decode(encode(new Order())) instanceof Order)
 * ```
 */
export function transportable<Instance extends object = object, Saved = unknown>(
  cid: string,
  options: Omit<ClassOptions<Instance, Saved>, 'cid'> = {},
) {
  if (typeof cid !== 'string')
    throw wrong('transportable(): cid', "a string, as in @transportable('orders.Order')", cid)
  return (constructor: Class<Instance>, _context?: unknown): void => {
    register(constructor, { ...options, cid })
  }
}

/** Register a kind of handle. @throws {TransportError} `TRANSPORT_REGISTRATION` when its tag is taken. */
export function registerHandle<Handle extends object, Saved>(options: HandleOptions<Handle, Saved>): void {
  const {
    tag,
    is,
    save,
    load,
    isSelfContained = false,
    isOfAnyCopy = false,
  } = options as unknown as HandleOptions
  const prototype: unknown = (is as { prototype?: unknown }).prototype
  const isClass = typeof prototype === 'object' && prototype !== null
  const test = isClass
    ? (value: object) => Object.prototype.isPrototypeOf.call(prototype, value)
    : (is as (value: object) => boolean)
  if (handlesByTag.has(tag)) refuse(tag, 'another kind of handle has this tag')
  const entry: HandleEntry = { tag, is: test, save, load, isSelfContained }
  handlesByTag.set(tag, entry)
  if (isClass) handlesByPrototype.set(prototype, entry)
  else handlesByTest.push(entry)
  if (isClass && isOfAnyCopy) ofAnyCopy.set(prototype, tag)
}

export function classOfPrototype(prototype: object): ClassEntry | undefined {
  return classesByPrototype.get(prototype)
}

export function classOfCid(cid: string): ClassEntry | undefined {
  return classesByCid.get(cid)
}

export function handleOf(value: object): HandleEntry | undefined {
  for (let up: object | null = Object.getPrototypeOf(value); up !== null; up = Object.getPrototypeOf(up)) {
    const entry = handlesByPrototype.get(up)
    if (entry !== undefined) return entry
    const tag = ofAnyCopy.get(up)
    if (tag !== undefined) return handlesByTag.get(tag)
  }
  return handlesByTest.find((entry) => entry.is(value))
}

export function handleOfTag(tag: string): HandleEntry | undefined {
  return handlesByTag.get(tag)
}

const CLASS = {
  cid: text<string | undefined>(undefined),
  version: integer(0, 0xffff_ffff, 0),
  save: callback as Kind<ClassEntry['save']>,
  load: callback as Kind<ClassEntry['load']>,
}

function checkedEntry(constructor: Class, options: ClassOptions): ClassEntry {
  if (typeof constructor !== 'function' || typeof constructor.prototype !== 'object')
    throw wrong('register(): Class', 'a class', constructor)
  const { cid, version, save, load } = optionsOf(options, CLASS, wrong, 'register()')
  if (cid === undefined) throw wrong('register()', '{ cid }', cid, { verb: 'needs' })
  if (constructor.prototype === Object.prototype) refuse(cid, 'plain objects need no registration')
  if (builtins().has(constructor.prototype as object)) {
    refuse(cid, `${constructor.name} travels without a registration and its hooks would never run; extend it`)
  }
  // The look at base classes needs the core; a class with both hooks is registered without it.
  const keepsAll = save !== undefined && load !== undefined
  const base = keepsAll ? undefined : platformNameOf(constructor.prototype as object)
  if (base !== undefined) {
    const which = base === constructor.name ? 'Node provides' : 'it extends'
    refuse(cid, `${which} ${base}, whose content is not in its fields; pass save and load that keep it`)
  }
  const names = keepsAll ? [] : privateNames(constructor)
  if (names.length > 0)
    refuse(cid, `it has private members (${names.join(', ')}); pass save and load that keep them`)
  return {
    cid,
    version,
    prototype: constructor.prototype as object,
    constructor,
    save,
    load,
    number: 0,
    writers: new Map(),
    frame: 0,
    isStale: false,
  }
}

let travelling: Set<object> | undefined

/** Prototypes of objects that travel without a registration. */
function builtins(): Set<object> {
  if (travelling !== undefined) return travelling
  const views = VIEW_KINDS.map((name) => (globalThis as Record<string, unknown>)[name])
  const others = [Array, Map, Set, Date, RegExp, ArrayBuffer, SharedArrayBuffer, URL]
  const all = [...others, Number, String, Boolean, BigInt, ...views] as ({ prototype: object } | undefined)[]
  travelling = new Set(all.flatMap((each) => (each === undefined ? [] : [each.prototype])))
  return travelling
}

/**
 * Check that the enumerable string keys of an object of a class without hooks are all its state.
 * @throws {Refusal} for a symbol as key and for a field that is not enumerable.
 */
export function checkState(object: object): void {
  for (const key of Reflect.ownKeys(object)) {
    if (typeof key === 'string' && Object.prototype.propertyIsEnumerable.call(object, key)) continue
    const which = typeof key === 'symbol' ? `under ${String(key)}` : `in '${key}', which is not enumerable`
    const why = `it has state ${which}; register its class with save and load that keep it`
    throw new Refusal(object, 'refused', why)
  }
}

/** `, Order` for the prototype of a class of that name. */
function ofName(prototype: object): string {
  const { constructor } = prototype as { readonly constructor?: { readonly name?: unknown } }
  return typeof constructor?.name === 'string' && constructor.name !== '' ? `, ${constructor.name}` : ''
}

function refuse(cid: string, why: string): never {
  throw new TransportError('TRANSPORT_REGISTRATION', { cid, why })
}
