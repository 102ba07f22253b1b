/**
 * The fibers of this thread as a tree: who owns whom, what each does and what it waits for.
 *
 * A picture of one moment, for people who look for what hangs. Fibers that never waited are not in it.
 */
import type { Fiber, FiberStatus } from './fiber.ts'
import type { Child, BaseScope } from './base-scope.ts'
import { root } from './fiber-scope.ts'
import { scopesWithChildren } from './scope.ts'

/** One fiber, or one scope, and what it owns. */
export interface FiberDump {
  /** Whether it is a fiber or a scope. */
  readonly kind: 'fiber' | 'scope'
  /** The fiber's number; 0 for a scope. */
  readonly id: number
  /** `''` for none. */
  readonly name: string
  /** `'open'` or `'closing'` for a scope. */
  readonly status: FiberStatus | 'open'
  /** What it waits for; `undefined` when it does not. */
  readonly waitsFor: string | undefined
  /** What it owns, the oldest first. */
  readonly children: readonly FiberDump[]
}

/**
 * Returns all fibers of this thread that have waited and not ended, by their scopes, the oldest first.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { dump, fork, never } from 'corespun/fiber'
 *
 * const fiber = fork(never(), { name: 'idle' })
 * assert.equal(dump()[0].name, 'idle')
 * await fiber.interrupt()
 * ```
 */
export function dump(): FiberDump[] {
  const scopes = [...scopesWithChildren].map((scope): FiberDump => {
    const status = scope.isOpen ? 'open' : 'closing'
    const { name } = scope
    return { kind: 'scope', id: 0, name, status, waitsFor: undefined, children: childrenOf([scope.members]) }
  })
  return [...childrenOf([root]), ...scopes]
}

/**
 * Returns {@link dump} as text: a line per fiber, children indented.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { dumpText, fork, sleep } from 'corespun/fiber'
 *
 * const fiber = fork(sleep(60_000), { name: 'idle' })
 * assert.match(dumpText(), /idle: waiting for 60000 ms/)
 * await fiber.interrupt()
 * ```
 */
export function dumpText(): string {
  const lines: string[] = []
  const rest = dump().map((one) => ({ one, depth: 0 }))
  rest.reverse()
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const { one, depth } = next
    const called = one.kind === 'scope' ? `scope '${one.name}'` : `#${one.id} ${one.name}`.trimEnd()
    const waits = one.waitsFor === undefined ? '' : ` for ${one.waitsFor}`
    lines.push(`${'  '.repeat(depth)}${called}: ${one.status}${waits}`)
    for (let index = one.children.length - 1; index >= 0; index -= 1)
      rest.push({ one: one.children[index], depth: depth + 1 })
  }
  return lines.join('\n')
}

interface Entry {
  readonly kind: 'fiber'
  readonly id: number
  readonly name: string
  readonly status: FiberStatus
  readonly waitsFor: string | undefined
  readonly children: Entry[]
}

/** Without recursion: trees of fibers can be as deep as there are fibers. */
function childrenOf(scopes: readonly BaseScope[]): Entry[] {
  const top: Entry[] = []
  const rest: { fiber: Fiber; into: Entry[] }[] = fibersOf(scopes).map((fiber) => ({ fiber, into: top }))
  for (const { fiber, into } of rest) {
    const { id, name, status, op } = fiber
    const waitsFor = status === 'waiting' || status === 'closing' ? op?.describe() : undefined
    const entry: Entry = { kind: 'fiber', id, name, status, waitsFor, children: [] }
    into.push(entry)
    for (const child of fibersOf(scopesIn(fiber))) rest.push({ fiber: child, into: entry.children })
  }
  return top
}

function scopesIn(fiber: Fiber): BaseScope[] {
  const scopes: BaseScope[] = []
  for (let scope = fiber.extra?.scope; scope !== undefined; scope = scope.outer) scopes.unshift(scope)
  return scopes
}

function fibersOf(scopes: readonly BaseScope[]): Fiber[] {
  return scopes.flatMap((scope) => [...(scope.children() as Iterable<Child>)].toReversed() as Fiber[])
}

// For who looks into this thread from outside (corespun/observe), which loads nothing here.
Object.defineProperty(globalThis, Symbol.for('corespun.fibers'), { value: dumpText, configurable: true })
