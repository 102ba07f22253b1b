/**
 * Puts Skein's `Request`, `Response` and `Headers` in the place of Node's while a server runs.
 *
 * A web-standard app says `new Response(...)` and means the global one; Node's own builds a stream and header
 * lists that a server then takes apart again. Ours pass `instanceof` in both directions, so code that kept
 * Node's classes goes on working. `fetch`, whosever it is, is wrapped only to unwrap the requests of
 * handlers; classes that somebody else has put there stay. What stood there comes back when the last server
 * stops, unless somebody else has put something of their own there.
 */
import { SkeinHeaders } from './headers.ts'
import { NativeRequest, nativeRequest } from './request.ts'
import { NativeResponse, SkeinResponse } from './response.ts'

/** Node's Request, which takes requests of ours as its input. */
class GlobalRequest extends NativeRequest {
  constructor(input: string | URL | Request, init?: RequestInit) {
    super(nativeRequest(input) as Request, init)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return false
    const { prototype } = this === GlobalRequest ? NativeRequest : this
    return Object.prototype.isPrototypeOf.call(prototype, value)
  }
}
Object.defineProperty(GlobalRequest, 'name', { value: 'Request' })

/** Whoever watches or mocks `fetch` has put theirs there before: it goes on being called. */
function fetchOver(inner: typeof fetch): typeof fetch {
  return function fetch(input, init) {
    return inner(nativeRequest(input) as Request, init)
  }
}

const OURS = { Request: GlobalRequest, Response: SkeinResponse, Headers: SkeinHeaders }
const NODES: readonly unknown[] = [NativeRequest, NativeResponse, globalThis.Headers]
/** What stands there for us, and what stood there before. */
const kept = new Map<string, { ours: unknown; before: PropertyDescriptor }>()
let users = 0

/** Put them there; the function takes them away again when its caller is the last. */
export function useGlobals(): () => void {
  users += 1
  if (users === 1) {
    for (const [name, value] of Object.entries({ ...OURS, fetch: fetchOver(globalThis.fetch) })) {
      if (name !== 'fetch' && !NODES.includes(Reflect.get(globalThis, name))) continue
      kept.set(name, { ours: value, before: Object.getOwnPropertyDescriptor(globalThis, name)! })
      Object.defineProperty(globalThis, name, {
        value,
        writable: true,
        configurable: true,
        enumerable: false,
      })
    }
  }
  let isUsed = true
  return () => {
    if (!isUsed) return
    isUsed = false
    users -= 1
    if (users > 0) return
    for (const [name, { ours, before }] of kept)
      if (Reflect.get(globalThis, name) === ours) Object.defineProperty(globalThis, name, before)
    kept.clear()
  }
}
