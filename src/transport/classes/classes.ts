/**
 * Classes and handles that may travel: who registered under which name, and how an object is saved and
 * loaded.
 *
 * One registry per thread; a cid means the same class in every thread because every thread registers it by
 * running the same module. The default keeps own enumerable fields and the prototype. What that default
 * cannot see (#private fields, what Node and the engine keep of their classes) a class must save itself:
 * silence would lose data. `checkState` refuses the rest at the first object of a class and shape.
 */
import { TransportError, wrong } from '../errors.ts'
import { type Kind, callback, integer, optionsOf, text } from '../../base/index.ts'
import { parseSource } from '../functions/captures.ts'
import type { Class, ClassEntry } from './class-entry.ts'
import { Refusal } from '../write/sink.ts'
import { VIEW_KINDS } from '../format.ts'
import { platformNameOf } from './platform.ts'

/** How a class travels. */
export interface ClassOptions<Instance extends object = object, Saved = unknown> {
  /** The name of the class in frames: any text, the same in every thread and release. */
  readonly cid: string
  /** Version of what is saved, 0 to 4294967295; 0 unless given. `load` learns which one it reads. */
  readonly version?: number
  /** What to keep of an object: any value that can travel. Default: its own enumerable fields. */
  readonly save?: (object: Instance) => Saved
  /** The object again. Default: an object of the class with those fields, its constructor not run. */
  readonly load?: (saved: Saved, version: number) => Instance
}

/** How a kind of handle travels: the same thing on the other side, not a copy. */
export interface HandleOptions<Handle extends object = object, Saved = unknown> {
  /** The name of the kind in frames. */
  readonly tag: string
  /** Which objects are handles of this kind: a class, or a test. */
  readonly is: Class<Handle> | ((value: object) => boolean)
  /** What names the thing: any value that can travel. Runs once per frame. */
  readonly save: (handle: Handle) => Saved
  /** The thing that is so named, in the thread that reads. */
  readonly load: (saved: Saved) => Handle
  /** False (the default): the frame must stay in this process. */
  readonly isSelfContained?: boolean
  /** `save` reads what is public, so that it can be given an object of another copy of the package too. */
  readonly isOfAnyCopy?: boolean
}

/** A kind of handle as the codec sees it. */
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

/** The kinds of handles that any copy of the package in this thread can save: their tags by prototype. */
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
 * Let objects of `constructor` travel under the name `options.cid`. Registering the same class under the same
 * cid again replaces the options.
 * @throws {TransportError} `TRANSPORT_REGISTRATION` when the cid belongs to another class, the class to
 *   another cid, or the class has private fields and no `save`; `TRANSPORT_ARGUMENT` for a wrong argument.
 */
export function register<Instance extends object, Saved = unknown>(
  constructor: Class<Instance>,
  options: ClassOptions<Instance, Saved>,
): void {
  const entry = checkedEntry(constructor, options as unknown as ClassOptions)
  const named = classesByCid.get(entry.cid)
  if (named !== undefined && named.prototype !== entry.prototype)
    refuse(entry.cid, 'the cid belongs to another class')
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
 * Decorator form of {@link register}, for decorators of the language and of TypeScript alike:
 * `@transportable('orders.Order') class Order {}`.
 * @throws {TransportError} as {@link register}.
 */
export function transportable<Instance extends object = object, Saved = unknown>(
  cid: string,
  options: Omit<ClassOptions<Instance, Saved>, 'cid'> = {},
) {
  return (constructor: Class<Instance>, _context?: unknown): void => {
    register(constructor, { ...options, cid })
  }
}

/**
 * Let a kind of handle travel. For modules of Corespun that own something process-wide.
 * @throws {TransportError} `TRANSPORT_REGISTRATION` when the tag is taken by another kind.
 */
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
  if (handlesByTag.has(tag)) refuse(tag, 'the tag of a handle is taken')
  const entry: HandleEntry = { tag, is: test, save, load, isSelfContained }
  handlesByTag.set(tag, entry)
  if (isClass) handlesByPrototype.set(prototype, entry)
  else handlesByTest.push(entry)
  if (isClass && isOfAnyCopy) ofAnyCopy.set(prototype, tag)
}

/** The class whose objects have this prototype. */
export function classOfPrototype(prototype: object): ClassEntry | undefined {
  return classesByPrototype.get(prototype)
}

/** The class of this name. */
export function classOfCid(cid: string): ClassEntry | undefined {
  return classesByCid.get(cid)
}

/** The kind of handle that `value` is, if it is one. */
export function handleOf(value: object): HandleEntry | undefined {
  for (let up: object | null = Object.getPrototypeOf(value); up !== null; up = Object.getPrototypeOf(up)) {
    const entry = handlesByPrototype.get(up)
    if (entry !== undefined) return entry
    const tag = ofAnyCopy.get(up)
    if (tag !== undefined) return handlesByTag.get(tag)
  }
  return handlesByTest.find((entry) => entry.is(value))
}

/** The kind of handle of this tag. */
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
  const { cid, version, save, load } = optionsOf(options ?? null, CLASS, wrong, 'register()')
  if (cid === undefined) throw wrong('register(): cid', CLASS.cid.expected, cid)
  if (constructor.prototype === Object.prototype) refuse(cid, 'plain objects need no registration')
  if (builtins().has(constructor.prototype as object)) {
    refuse(cid, `${constructor.name} travels by itself, and no hook of it would run; extend it`)
  }
  const base = platformNameOf(constructor.prototype as object)
  if (base !== undefined && (save === undefined || load === undefined)) {
    const which = base === constructor.name ? 'Node provides' : 'it extends'
    refuse(cid, `${which} ${base}, whose content no field shows, and it has no save and load that keep it`)
  }
  if (save === undefined) {
    const names = privateNames(constructor)
    if (names.length > 0)
      refuse(cid, `it has private fields (${names.join(', ')}) and no save that keeps them`)
  }
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

/** The prototypes of what travels without a registration. */
function builtins(): Set<object> {
  const views = VIEW_KINDS.map((name) => (globalThis as Record<string, unknown>)[name])
  const others = [Array, Map, Set, Date, RegExp, ArrayBuffer, SharedArrayBuffer, URL]
  const all = [...others, Number, String, Boolean, BigInt, ...views] as ({ prototype: object } | undefined)[]
  return new Set(all.flatMap((each) => (each === undefined ? [] : [each.prototype])))
}

/** Names of the private fields of a class and the classes it extends, from their source text. */
function privateNames(constructor: Class): string[] {
  const names: string[] = []
  for (let up: unknown = constructor; typeof up === 'function'; up = Object.getPrototypeOf(up)) {
    const source = Function.prototype.toString.call(up)
    if (!source.includes('#')) continue
    for (const element of classElements(source)) {
      if (
        element.type === 'PropertyDefinition' &&
        element.static !== true &&
        element.key?.type === 'PrivateIdentifier'
      ) {
        names.push(`#${element.key.name}`)
      }
    }
  }
  return names
}

interface ClassElement {
  readonly type: string
  readonly static?: boolean
  readonly key?: { readonly type: string; readonly name?: string }
}

function classElements(source: string): readonly ClassElement[] {
  // Without the sign of a private name there is none, and the parser need not be loaded.
  if (!source.startsWith('class') || !source.includes('#')) return []
  try {
    const program = parseSource(`(${source})`) as unknown as {
      body: [{ expression: { body: { body: ClassElement[] } } }]
    }
    return program.body[0].expression.body.body
  } catch {
    // Syntax newer than the parser, or a class nested in a generator or an async function: nothing to learn
    // here.
    return []
  }
}

/**
 * Refuse an object of a class without hooks that has fields which writing its fields leaves behind.
 * @throws {Refusal} for symbols as keys and for fields that are not enumerable.
 */
export function checkState(object: object): void {
  for (const key of Reflect.ownKeys(object)) {
    if (typeof key === 'string' && Object.prototype.propertyIsEnumerable.call(object, key)) continue
    const which = typeof key === 'symbol' ? `under ${String(key)}` : `in '${key}', which is not enumerable`
    const why = `it has state ${which}; register its class with save and load that keep it`
    throw new Refusal(object, 'refused', why)
  }
}

function refuse(cid: string, why: string): never {
  throw new TransportError('TRANSPORT_REGISTRATION', { cid, why })
}
