/**
 * A scope of fibers: a list of children and of finalizers.
 *
 * Every fiber that waits is in exactly one scope's list, and a scope ends only after its list is empty. What
 * a scope does with a child that fails is its own; this file keeps the books. Scopes and fibers are built on
 * it.
 */
import { meters } from '../../base/index.ts'
import type { Exit, Failed } from './exit.ts'

export interface Child {
  /** Towards the younger and the older child; the scope's own. */
  younger: Child | undefined
  older: Child | undefined
  /** How it ended, when it has. */
  readonly exit: Exit<unknown, unknown> | undefined
  /** Whether its exit was received, or is waited for. */
  readonly isObserved: boolean
  /** How a message calls it. */
  readonly title: string
  /** Of one that was interrupted while that was masked, as in finalizers: what was raised last before. */
  readonly failedBefore: Failed | undefined
  /** Unwind it, and let `why` be its exit. */
  interruptWith(why: Failed): void
}

/** A function that runs when a scope closes, with its exit. It may return a generator or a promise. */
export type Finalizer = (exit: Exit<unknown, unknown>) => unknown
/** What the option `scope` of `fork` accepts beside a fiber: a `Scope`. */
export interface AnyScope {
  /** Its name; `''` by default. */
  readonly name: string
  /** Its name as messages write it. */
  readonly title: string
  /** Whether it has not begun to close. */
  readonly isOpen: boolean
  /** Its children and finalizers. @internal */
  readonly members: BaseScope
}

export class BaseScope {
  /** The scope that takes over again when this one is left; used by scopes inside one fiber. */
  readonly outer: BaseScope | undefined
  /** What went wrong while it closed. */
  readonly errors: Failed[] = []
  /** Whether its children are being interrupted and its finalizers run. */
  isClosing = false
  /** Whether it waits for children that it has interrupted: none may come. Finalizers may have children. */
  isEmptying = false
  /** A child came since they were interrupted: the listener of an abort may fork. */
  hasNewcomers = false
  #youngest: Child | undefined
  #finalizers: Finalizer[] | undefined
  #emptied: Set<() => void> | undefined

  constructor(outer?: BaseScope) {
    this.outer = outer
  }

  /** Whether nothing is left to interrupt or to release. */
  get isIdle(): boolean {
    return this.#youngest === undefined && (this.#finalizers === undefined || this.#finalizers.length === 0)
  }

  /** The scope of what the code of its fiber forks and acquires while this one is the innermost. */
  get forks(): BaseScope {
    return this
  }

  /** May it be given children and finalizers? @throws {FiberError} `FIBER_SCOPE_CLOSED` in some kinds. */
  checkOpen(): void {}

  get hasChildren(): boolean {
    return this.#youngest !== undefined
  }

  /** Its children, the youngest first. */
  *children(): Generator<Child> {
    for (let child = this.#youngest; child !== undefined; child = child.older) yield child
  }

  add(child: Child): void {
    const older = this.#youngest
    child.older = older
    this.hasNewcomers = true
    if (older !== undefined) older.younger = child
    this.#youngest = child
    meters.fibers += 1
  }

  remove(child: Child): void {
    meters.fibers -= 1
    const { younger, older } = child
    if (younger === undefined) this.#youngest = older
    else younger.older = older
    if (older !== undefined) older.younger = younger
    child.younger = undefined
    child.older = undefined
    if (this.#youngest === undefined && this.#emptied !== undefined) {
      const emptied = this.#emptied
      this.#emptied = undefined
      for (const one of emptied) one()
    }
  }

  /** A child has ended; `failed` unless with a value. It has left the list. */
  childEnded(_child: Child, _failed: Failed | undefined): void {}

  /** Interrupt all children, the youngest first. They leave the list as they end. */
  interruptChildren(why: Failed): void {
    this.hasNewcomers = false
    // Interrupting one may run code that ends others, so the list is taken first; the ended do not mind.
    for (const child of [...this.children()]) child.interruptWith(why)
  }

  /** Call `emptied` once, when the last child has left; at once without children. */
  whenEmpty(emptied: () => void): void {
    if (this.#youngest === undefined) emptied()
    else (this.#emptied ??= new Set()).add(emptied)
  }

  /** Do not call it. */
  forgetEmpty(emptied: () => void): void {
    this.#emptied?.delete(emptied)
  }

  /** Add what is to be called when it closes, before all that were added earlier. */
  addFinalizer(finalizer: Finalizer): void {
    ;(this.#finalizers ??= []).push(finalizer)
  }

  /** Do not call it; it is the last added of those that are the same. */
  forgetFinalizer(finalizer: Finalizer): void {
    const index = this.#finalizers?.lastIndexOf(finalizer) ?? -1
    if (index >= 0) this.#finalizers?.splice(index, 1)
  }

  /** Take the finalizer out whose turn it is: the last added. */
  takeFinalizer(): Finalizer | undefined {
    return this.#finalizers?.pop()
  }
}
