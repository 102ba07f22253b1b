/**
 * Replaces Node's `Request`, `Response` and `Headers` with Corespun's while a server runs.
 *
 * A web-standard app calls `new Response(...)` of the global class. Node's own builds a stream and header
 * lists, which a server then takes apart again. Corespun's classes pass `instanceof` in both directions, so
 * code that holds Node's classes continues to work. The global `fetch`, Node's or not, is wrapped only to
 * unwrap the requests of handlers, and so are the members of Node's `Request.prototype` that read private
 * fields. Globals that other code has replaced are not changed. The originals are restored when the last
 * server stops, unless other code has replaced them since.
 */
import { CorespunHeaders } from './headers.ts'
import { HAS_PRIVATE_STATE, NativeRequest, nativeRequest } from './request.ts'
import { NativeResponse, CorespunResponse } from './response.ts'

/** Node's Request, which takes requests of ours as its input. */
const GlobalRequest = new Proxy(NativeRequest, {
  construct(target, [input, ...rest], newTarget) {
    const given = input === undefined && rest.length === 0 ? [] : [nativeRequest(input), ...rest]
    return Reflect.construct(target, given, newTarget) as Request
  },
})

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

const OURS = { Request: GlobalRequest, Response: CorespunResponse, Headers: CorespunHeaders }
const NODES: readonly unknown[] = [NativeRequest, NativeResponse, globalThis.Headers]
const kept: Patch[] = []
let users = 0

function globalPatches(): Patch[] {
  const patches: Patch[] = []
  for (const [name, value] of Object.entries({ ...OURS, fetch: fetchOver(globalThis.fetch) })) {
    if (name !== 'fetch' && !NODES.includes(Reflect.get(globalThis, name))) continue
    const before = Object.getOwnPropertyDescriptor(globalThis, name)!
    const ours = { value, writable: true, configurable: true, enumerable: false }
    patches.push({ on: globalThis, name, ours, before })
  }
  return patches
}

/** Getters and methods of Node's prototype, which are called with requests of ours unwrapped. */
function prototypePatches(): Patch[] {
  const on = NativeRequest.prototype
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

/** Put them there; the function takes them away again when its caller is the last. */
export function useGlobals(): () => void {
  users += 1
  if (users === 1) {
    kept.push(...globalPatches(), ...(HAS_PRIVATE_STATE ? prototypePatches() : []))
    for (const { on, name, ours } of kept) Object.defineProperty(on, name, ours)
  }
  let isUsed = true
  return () => {
    if (!isUsed) return
    isUsed = false
    users -= 1
    if (users > 0) return
    for (const { on, name, ours, before } of kept.splice(0)) {
      const now = Object.getOwnPropertyDescriptor(on, name)
      if (now?.get === ours.get && now?.value === ours.value) Object.defineProperty(on, name, before)
    }
  }
}
