/**
 * One arrow over many inputs, some at once: bounded, in order or as they come.
 *
 * It pulls: an input is taken only when there is room for its run, and there is room only when the reader has
 * taken what came before. Whatever ends it (a failure, the reader, the signal) ends all of it, as soon as it
 * is known: the runs are interrupted and have ended, the source is closed, and only then the reader hears;
 * but nobody waits for a source that is still looking for its next input.
 */
import { abortSignal, flag, integer, optionsOf, shown } from '../../base/index.ts'
import { type Fiber, type Ready, runningFiber, stepAside } from '../../fiber/index.ts'
import { wrong } from '../errors.ts'
import { unwrapped } from './failure.ts'
import { runNode, valueOf } from '../run/machine.ts'
import type { Node } from './node.ts'

/** How inputs are run. */
export interface StreamOptions {
  /** Most runs at once, 1 to 2^20. Default 1. */
  readonly concurrency?: number
  /** Results in the order of the inputs. Default true; false: as they come. */
  readonly ordered?: boolean
  /** Interrupts all of it. */
  readonly signal?: AbortSignal
}

const STREAM = { concurrency: integer(1, 2 ** 20, 1), ordered: flag(true), signal: abortSignal }

type Source = AsyncIterator<unknown> | Iterator<unknown>

/** See `Arrow.stream`. @throws {ArrowError} `ARROW_ARGUMENT`. */
export function streamed(
  node: Node,
  inputs: Iterable<unknown> | AsyncIterable<unknown>,
  options?: StreamOptions,
): AsyncGenerator<unknown, void, undefined> {
  const { concurrency, ordered, signal } = optionsOf(options, STREAM, wrong, 'stream()')
  return new Flow(node, openerOf(inputs), concurrency, ordered, signal).results()
}

function openerOf(inputs: Iterable<unknown> | AsyncIterable<unknown>): () => Source {
  const given = inputs as (Partial<AsyncIterable<unknown>> & Partial<Iterable<unknown>>) | null | undefined
  const open = given?.[Symbol.asyncIterator] ?? given?.[Symbol.iterator]
  if (typeof open !== 'function') throw wrong('stream(): inputs', 'something to iterate over', inputs)
  return () => (open as () => Source).call(inputs)
}

/** A run that has been started: its place in the order and, in the end, what came of it. */
interface Slot {
  settled: boolean
  value: unknown
  failed: boolean
  /** Its end, if it waits. */
  end: Promise<void> | undefined
}

class Flow implements Ready {
  readonly #node: Node
  readonly #open: () => Source
  readonly #fiber: Fiber | undefined = runningFiber()
  readonly #max: number
  readonly #ordered: boolean
  readonly #outer: AbortSignal | undefined
  readonly #controller = new AbortController()
  /** Started and not read yet, in the order of the inputs. */
  #slots: Slot[] = []
  /** Opened when the reader first asks: who never asks has nothing to close. */
  #source: Source | undefined
  #taking: Promise<void> | undefined
  #ended = false
  /** Why it ends; what is there already may be read before, unless it was cut. */
  #failure: { readonly why: unknown; readonly isCut: boolean } | undefined
  #wake: (() => void) | undefined
  #goOn: (() => void) | undefined

  constructor(node: Node, open: () => Source, max: number, ordered: boolean, outer: AbortSignal | undefined) {
    this.#node = node
    this.#open = open
    this.#max = max
    this.#ordered = ordered
    this.#outer = outer
  }

  async *results(): AsyncGenerator<unknown, void, undefined> {
    const aborted = (): void => this.#stop(this.#outer?.reason, true)
    this.#outer?.addEventListener('abort', aborted)
    if (this.#outer?.aborted === true) aborted()
    try {
      for (;;) {
        this.#fill()
        if (this.#failure?.isCut === true) throw this.#failure.why
        const slot = this.#next()
        if (slot !== undefined) yield slot.value
        else if (this.#failure !== undefined) throw this.#failure.why
        else if (this.#ended && this.#slots.length === 0) return
        else await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      this.#outer?.removeEventListener('abort', aborted)
      await this.#close()
    }
  }

  /** It has had to step aside. */
  resume(): void {
    this.#goOn?.()
  }

  /** A result that may be read now. */
  #next(): Slot | undefined {
    const at = this.#ordered ? 0 : this.#slots.findIndex((slot) => slot.settled && !slot.failed)
    const slot = this.#slots[at]
    if (slot === undefined || !slot.settled || slot.failed) return undefined
    this.#slots.splice(at, 1)
    return slot
  }

  /**
   * End all of it. At once: the reader may be busy for long with what it took before it asks for the next.
   */
  #stop(why: unknown, isCut: boolean): void {
    if (this.#failure !== undefined) return
    this.#failure = { why, isCut }
    this.#controller.abort(why)
    this.#tell()
  }

  #tell(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  #fill(): void {
    if (this.#taking !== undefined || this.#ended || this.#failure !== undefined) return
    if (this.#slots.length >= this.#max) return
    this.#taking = this.#take().catch((why: unknown) => {
      this.#ended = true
      this.#stop(why, false)
    })
  }

  async #take(): Promise<void> {
    const source = (this.#source ??= this.#open())
    while (this.#slots.length < this.#max && !this.#ended && this.#failure === undefined) {
      const item: unknown = await source.next()
      if (!isResult(item)) throw new TypeError(`the iterator of the inputs gave ${shown(item)}, no object`)
      if (item.done === true) this.#ended = true
      else this.#start(item.value)
      // Inputs and runs that are there at once leave timers, I/O and aborts their turn.
      if (stepAside(this)) await new Promise<void>((resolve) => (this.#goOn = resolve))
    }
    this.#taking = undefined
    this.#tell()
  }

  #start(input: unknown): void {
    if (this.#failure !== undefined) return
    const slot: Slot = { settled: false, value: undefined, failed: false, end: undefined }
    const { signal } = this.#controller
    this.#slots.push(slot)
    const ended = (value: unknown): void => {
      slot.settled = true
      slot.value = valueOf(value)
      this.#tell()
    }
    const failed = (thrown: unknown): void => {
      slot.settled = slot.failed = true
      this.#stop(unwrapped(thrown, signal), false)
    }
    try {
      const value = runNode(this.#node, input, signal, this.#fiber)
      if (value instanceof Promise) slot.end = value.then(ended, failed)
      else ended(value)
    } catch (thrown) {
      failed(thrown)
    }
  }

  async #close(): Promise<void> {
    if (this.#slots.some((slot) => !slot.settled))
      this.#stop(new DOMException('the stream has ended', 'AbortError'), true)
    this.#failure ??= { why: undefined, isCut: true }
    // Asynchronous functions are left behind, fibers have run their finalizers.
    await Promise.all(this.#slots.map((slot) => slot.end))
    const source = this.#source
    if (this.#ended || source === undefined) return
    this.#ended = true
    // What the source says to being closed concerns nobody: the reader has what it wanted, or an error.
    const closed = (async () => source.return?.())().catch(nothing)
    // A generator that is asked for an input closes when it has one, and that may be never.
    if (this.#taking === undefined) await closed
  }
}

function isResult(item: unknown): item is IteratorResult<unknown> {
  return (typeof item === 'object' && item !== null) || typeof item === 'function'
}

function nothing(): void {}
