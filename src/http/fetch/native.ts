/**
 * Node's own `Request`, `Response` and `Headers`, whatever the global ones are at the moment, without loading
 * undici before something needs it: a server of strings and JSON never does.
 *
 * What of ours inherits from them has to as soon as anybody can compare with them: when undici has defined
 * them, whoever has loaded it. The globals do not show that: since Node 24 a look at their descriptor loads
 * undici, and a program that assigns one takes Node's class away. So `Object.defineProperties`, by which
 * undici defines the three, is watched until then; if a program has replaced that function, what it has put
 * there is watched once undici asks for the global dispatcher. A program that replaces or redefines that one
 * changes nothing otherwise. All this depends on undici's code: where that is not known to do so, or this is
 * a realm of node:vm, it is loaded at once.
 */

import { isObject } from '../../base/index.ts'

/** Node's classes. */
export interface NativeClasses {
  readonly Request: typeof globalThis.Request
  readonly Response: typeof globalThis.Response
  readonly Headers: typeof globalThis.Headers
}
type Name = keyof NativeClasses
type Link = (native: NativeClasses) => void

const NAMES: readonly Name[] = ['Request', 'Response', 'Headers']
/** Other globals of undici, by which it is loaded where a program has replaced those. */
const LEADS = [...NAMES, 'FormData', 'MessageEvent']
const DISPATCHERS = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`))
/** The newest versions of undici that were seen to do this, by the major one: test/native.test.ts. */
const KNOWN: Readonly<Record<string, number>> = { 7: 30, 8: 12 }

let classes: NativeClasses | undefined
/** What watches `Object.defineProperties`. */
let watcher: typeof Object.defineProperties | undefined
const links = new Set<Link>()

/** Node's classes, which are loaded now if they are not yet. */
export function native(): NativeClasses {
  for (const name of LEADS) if (classes === undefined) Reflect.get(globalThis, name)
  if (classes === undefined) Reflect.get(process.getBuiltinModule('node:http'), 'WebSocket')
  return classes ?? linked(globalThis)
}

/** As the class itself for who makes an object of it, which loads it. */
function late<N extends Name>(name: N): NativeClasses[N] {
  const construct = (_: object, given: unknown[]): object =>
    Reflect.construct(native()[name], given) as object
  return new Proxy(Object, { construct }) as unknown as NativeClasses[N]
}

export const NativeRequest = late('Request')
export const NativeResponse = late('Response')

/**
 * Calls `link` when the classes are loaded, at once if they are. It may not throw: undici is being loaded.
 * Returns what makes it not be called.
 */
export function whenLoaded(link: Link): () => void {
  if (classes === undefined) links.add(link)
  else link(classes)
  return () => links.delete(link)
}

/** As `instanceof` a class of Node's, and of ours; nobody has one of Node's before they are loaded. */
export function isNative<N extends Name>(name: N, value: unknown): value is InstanceType<NativeClasses[N]> {
  return classes !== undefined && value instanceof classes[name]
}

export function areLoaded(): boolean {
  return classes !== undefined
}

function linked({ Request, Response, Headers }: NativeClasses): NativeClasses {
  classes = { Request, Response, Headers }
  for (const link of links) link(classes)
  links.clear()
  return classes
}

/** The modules of Node that this thread has loaded; `undefined` for another realm, and other runtimes. */
function loadedNames(): readonly string[] | undefined {
  const names: unknown = Reflect.get(process, 'moduleLoadList')
  const isOfThisRealm = isObject(names) && Object.getPrototypeOf(names) === Array.prototype
  return isOfThisRealm ? (names as string[]) : undefined
}

const isUndici = (name: string): boolean => name.endsWith('internal/deps/undici/undici')

/** Whether Node's undici has called the caller: the package undici does the same. */
function isCalledByNode(): boolean {
  const { getCallSites } = process.getBuiltinModule('node:util')
  return getCallSites(3, { sourceMap: false }).some(({ scriptName }) => isUndici(scriptName))
}

/** Whether undici is not loaded, and will be seen to be. */
function canWait(): boolean {
  const [major, minor] = (process.versions['undici'] ?? '').split('.')
  if (!(Number(minor) <= KNOWN[major])) return false
  if (loadedNames()?.some(isUndici) !== false || DISPATCHERS.some((name) => name in globalThis)) return false
  return Object.getOwnPropertyDescriptor(Object, 'defineProperties')?.writable === true
}

/** Take Node's classes when undici has defined them. */
function watch(): void {
  const { defineProperties } = Object
  const found: Partial<Record<Name, unknown>> = {}
  const define: typeof defineProperties = (on, properties) => {
    const defined = defineProperties(on, properties)
    const name = Object.getOwnPropertyDescriptor(on, Symbol.toStringTag)?.value as Name
    if (classes !== undefined || !NAMES.includes(name) || !isCalledByNode()) return defined
    found[name] = (on as { constructor: unknown }).constructor
    if (NAMES.some((each) => found[each] === undefined)) return defined
    // What a program has put there since, or frozen, stays.
    if (Object.defineProperties === define) Reflect.set(Object, 'defineProperties', defineProperties)
    linked(found as unknown as NativeClasses)
    return defined
  }
  Object.defineProperty(define, 'name', { value: 'defineProperties' })
  watcher = define
  Reflect.set(Object, 'defineProperties', define)
}

/** Whoever else asks for a dispatcher before undici has set it, as the package undici, finds Node's. */
function offer(name: symbol): void {
  // What a program has put there since stays.
  const end = (): void => {
    if (Object.getOwnPropertyDescriptor(globalThis, name)?.get === get)
      Reflect.deleteProperty(globalThis, name)
  }
  const get = (): unknown => {
    if (!isCalledByNode()) native()
    else if (Object.defineProperties !== watcher) watch()
    end()
    return Reflect.get(globalThis, name)
  }
  const set = (value: unknown): void => {
    native()
    end()
    Reflect.set(globalThis, name, value)
  }
  Object.defineProperty(globalThis, name, { configurable: true, get, set })
}

if (canWait()) {
  watch()
  DISPATCHERS.forEach(offer)
} else linked(globalThis)
