/**
 * Who waits for a fiber's end: usually nobody or one, sometimes very many.
 *
 * One is kept as itself, more as a list. A waiter that is interrupted leaves the list when half of it has
 * left, so leaving costs the same however long the list is.
 */

/** Something that is notified of a fiber's end. */
export interface Wakeable {
  /** `target` has ended. Nothing happens when it does not wait for it any more. */
  wakeBy(target: object): void
  /** Whether it waits for `target` still. */
  waitsFor(target: object): boolean
}

class Crowd {
  list: Wakeable[]
  leftCount = 0

  constructor(list: Wakeable[]) {
    this.list = list
  }
}

export type Waiters = undefined | Wakeable | Crowd

export function withWaiter(waiters: Waiters, one: Wakeable): Waiters {
  if (waiters === undefined) return one
  if (!(waiters instanceof Crowd)) return new Crowd([waiters, one])
  waiters.list.push(one)
  return waiters
}

/** `waiters` after `one`, which does not wait for `target` any more, has left. */
export function withoutWaiter(waiters: Waiters, one: Wakeable, target: object): Waiters {
  if (waiters === one) return undefined
  if (!(waiters instanceof Crowd)) return waiters
  waiters.leftCount += 1
  if (waiters.leftCount * 2 < waiters.list.length) return waiters
  waiters.list = waiters.list.filter((other) => other.waitsFor(target))
  waiters.leftCount = 0
  return waiters.list.length === 0 ? undefined : waiters
}

/** Notifies all of them, in the order they came, that `target` has ended. */
export function wakeAll(waiters: Waiters, target: object): void {
  if (waiters === undefined) return
  if (!(waiters instanceof Crowd)) return waiters.wakeBy(target)
  for (const one of waiters.list) one.wakeBy(target)
}
