/**
 * Replaces Node's `Response` with Corespun's while a server runs, and `Request`, `Headers` and `fetch` while
 * that of a web-standard app does.
 *
 * A web-standard app calls `new Response(...)` of the global class. Node's own builds a stream and header
 * lists, which a server then takes apart again. Corespun's classes pass `instanceof` in both directions, so
 * code that holds Node's classes continues to work. The global `fetch`, Node's or not, is wrapped only to
 * unwrap the requests of handlers, and so are the members of Node's `Request.prototype` that read private
 * fields. Globals that other code has replaced are not changed. The originals are restored when the last
 * server stops, unless other code has replaced them since.
 */
import { CorespunHeaders } from './headers.ts'
import { areLoaded, native, type NativeClasses, whenLoaded } from './native.ts'
import { HAS_PRIVATE_STATE, nativeRequest } from './request.ts'
import { CorespunResponse } from './response.ts'

let globalRequest: NativeClasses['Request'] | undefined

/** Node's Request, which takes requests of ours as its input. */
function requestOver(): NativeClasses['Request'] {
  return (globalRequest ??= new Proxy(native().Request, {
    construct(target, [input, ...rest], newTarget) {
      const given = input === undefined && rest.length === 0 ? [] : [nativeRequest(input), ...rest]
      return Reflect.construct(target, given, newTarget) as Request
    },
  }))
}

/** Whoever watches or mocks `fetch` has put theirs there before: it goes on being called. */
function fetchOver(inner: typeof fetch): typeof fetch {
  return function fetch(input, init) {
    return inner(nativeRequest(input) as Request, init)
  }
}

/** What is put where, and what it replaces. */
interface Patch {
  readonly on: object
  readonly name: string
  readonly ours: PropertyDescriptor
  readonly before: PropertyDescriptor
}

/** Patches that lie where they belong as long as a server uses them; what a program has frozen stays. */
class Patches {
  readonly #make: () => Patch[]
  #kept: readonly Patch[] = []
  #users = 0

  constructor(make: () => Patch[]) {
    this.#make = make
  }

  use(): void {
    this.#users += 1
    if (this.#users > 1) return
    this.#kept = this.#make()
    for (const { on, name, ours } of this.#kept) Reflect.defineProperty(on, name, ours)
  }

  leave(): void {
    this.#users -= 1
    if (this.#users > 0) return
    for (const { on, name, ours, before } of this.#kept) {
      const now = Object.getOwnPropertyDescriptor(on, name)
      if (now?.get === ours.get && now?.value === ours.value) Reflect.defineProperty(on, name, before)
    }
    this.#kept = []
  }
}

/** What handlers of routes make for each request. */
const response = new Patches(() => globalPatches({ Response: CorespunResponse }))
const others = new Patches(() => [
  ...globalPatches({ Request: requestOver(), Headers: CorespunHeaders, fetch: fetchOver(globalThis.fetch) }),
  ...(HAS_PRIVATE_STATE ? prototypePatches() : []),
])

function globalPatches(replacing: Readonly<Record<string, unknown>>): Patch[] {
  const nodes: unknown[] = Object.values(native())
  const patches: Patch[] = []
  for (const [name, value] of Object.entries(replacing)) {
    if (name !== 'fetch' && !nodes.includes(Reflect.get(globalThis, name))) continue
    const before = Object.getOwnPropertyDescriptor(globalThis, name)!
    const ours = { value, writable: true, configurable: true, enumerable: false }
    patches.push({ on: globalThis, name, ours, before })
  }
  return patches
}

/** Getters and methods of Node's prototype, which are called with requests of ours unwrapped. */
function prototypePatches(): Patch[] {
  const on = native().Request.prototype
  const patches: Patch[] = []
  for (const [name, before] of Object.entries(Object.getOwnPropertyDescriptors(on))) {
    const { get, value } = before
    if (name === 'constructor' || before.configurable !== true) continue
    const inner = (get ?? value) as unknown
    if (typeof inner !== 'function') continue
    const call = function (this: unknown, ...args: unknown[]): unknown {
      return Reflect.apply(inner, nativeRequest(this), args) as unknown
    }
    patches.push({
      on,
      name,
      before,
      ours: { ...before, ...(get === undefined ? { value: call } : { get: call }) },
    })
  }
  return patches
}

/**
 * Put them there, or `Response` alone; the function takes them away again when its caller is the last.
 * `Response` waits until something has loaded Node's, which is the one that it finds first.
 */
export function useGlobals(which: 'all' | 'Response'): () => void {
  if (which === 'Response' && !areLoaded()) {
    // Behind the module that defines it.
    const put = (): void => void (leave &&= useGlobals(which))
    let leave: (() => void) | undefined = whenLoaded(() => queueMicrotask(put))
    return () => {
      leave?.()
      leave = undefined
    }
  }
  const used = which === 'all' ? [response, others] : [response]
  for (const patches of used) patches.use()
  let isUsed = true
  return () => {
    if (!isUsed) return
    isUsed = false
    for (const patches of used) patches.leave()
  }
}
