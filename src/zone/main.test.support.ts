/**
 * A module with state, of which each thread has its own: that of the main thread is the program's.
 *
 * Not a test itself.
 */
export const state = { opened: 0 }

export function opened(): number {
  return state.opened
}

export function closing(count: number): number {
  state.opened -= count
  return state.opened
}
