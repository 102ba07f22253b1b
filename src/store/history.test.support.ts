/**
 * Histories of operations by several threads on one key, and whether one order explains them.
 *
 * The search is exponential at worst: keep histories short.
 */

/** One operation between two ticks of a clock that all threads share. `undefined`: no value. */
export interface Seen {
  readonly from: number
  readonly to: number
  readonly what: 'get' | 'set' | 'swap' | 'add' | 'delete' | 'has' | 'clear'
  /** What was found, or expected. */
  readonly old?: number | undefined
  /** What was written, or the sum. */
  readonly value?: number | undefined
  /** Whether a swap or delete did anything. */
  readonly done?: boolean
}

/** A command for a thread; `key` is one of few, by its number. */
export interface Command {
  readonly what: 'view' | 'update' | Seen['what']
  readonly key: number
  readonly value: number
}

/** Wing and Gong's search with memory of what failed. At most 31 operations. */
export function isLinearizable(seen: readonly Seen[]): boolean {
  const failed = new Set<string>()
  const search = (done: number, now: number | undefined): boolean => {
    if (done === 2 ** seen.length - 1) return true
    const state = `${done} ${now}`
    if (failed.has(state)) return false
    const open = seen.map((_, index) => index).filter((index) => ((done >>> index) & 1) === 0)
    const firstEnd = Math.min(...open.map((index) => seen[index].to))
    for (const index of open) {
      const operation = seen[index]
      if (operation.from > firstEnd) continue
      const next = after(operation, now)
      if (next !== IMPOSSIBLE && search(done | (1 << index), next)) return true
    }
    failed.add(state)
    return false
  }
  return search(0, undefined)
}

const IMPOSSIBLE = Symbol('impossible')

function after(seen: Seen, now: number | undefined): number | undefined | typeof IMPOSSIBLE {
  switch (seen.what) {
    case 'get':
      return seen.old === now ? now : IMPOSSIBLE
    case 'set':
      return seen.value
    case 'swap':
      if (seen.done === true) return seen.old === now ? seen.value : IMPOSSIBLE
      return seen.old === now ? IMPOSSIBLE : now
    case 'add':
      return (now ?? 0) + 1 === seen.value ? seen.value : IMPOSSIBLE
    case 'has':
      return (now !== undefined) === seen.done ? now : IMPOSSIBLE
    case 'clear':
      return undefined
    case 'delete':
      return (now !== undefined) === seen.done ? undefined : IMPOSSIBLE
  }
}
