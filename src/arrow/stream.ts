/**
 * One arrow over many inputs, some at once: bounded, in order or as they come.
 *
 * It pulls: an input is taken only when there is room for its run, and there is room only when the reader has
 * taken what came before. Whatever ends it (a failure, the reader, the signal) ends all of it: the runs are
 * interrupted, the source is closed, and only then the reader hears; but nobody waits for a source that is
 * still looking for its next input.
 */
import { checkSignal, wrong } from './errors.ts'
import { unwrapped } from './failure.ts'
import { runNode } from './machine.ts'
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

const CONCURRENCY_MAX = 2 ** 20

type Source = AsyncIterator<unknown> | Iterator<unknown>

/** See `Arrow.stream`. @throws {ArrowError} `ARROW_ARGUMENT`. */
export function streamed(
  node: Node,
  inputs: Iterable<unknown> | AsyncIterable<unknown>,
  options: StreamOptions,
): AsyncGenerator<unknown, void, undefined> {
  if (typeof options !== 'object' || options === null) throw wrong('stream: options', 'an object', options)
  const { concurrency = 1, ordered = true, signal } = options
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > CONCURRENCY_MAX)
    throw wrong('stream: concurrency', `an integer from 1 to ${CONCURRENCY_MAX}`, concurrency)
  if (typeof ordered !== 'boolean') throw wrong('stream: ordered', 'a boolean', ordered)
  checkSignal('stream', signal)
  const opened = openSource(inputs)
  return new Flow(node, opened, concurrency, ordered, signal).results()
}

function openSource(inputs: Iterable<unknown> | AsyncIterable<unknown>): Source {
  const given = inputs as (Partial<AsyncIterable<unknown>> & Partial<Iterable<unknown>>) | null | undefined
  const open = given?.[Symbol.asyncIterator] ?? given?.[Symbol.iterator]
  if (typeof open !== 'function') throw wrong('stream: inputs', 'something to iterate over', inputs)
  return (open as () => Source).call(inputs)
}

/** A run that has been started: its place in the order and, in the end, what came of it. */
interface Slot {
  settled: boolean
  value: unknown
  thrown: { readonly why: unknown } | undefined
}

class Flow {
  readonly #node: Node
  readonly #source: Source
  readonly #max: number
  readonly #ordered: boolean
  readonly #outer: AbortSignal | undefined
  readonly #controller = new AbortController()
  /** Started and not read yet, in the order of the inputs. */
  #slots: Slot[] = []
  #taking: Promise<void> | undefined
  #ended = false
  #failure: { readonly why: unknown } | undefined
  #wake: (() => void) | undefined

  constructor(node: Node, source: Source, max: number, ordered: boolean, outer: AbortSignal | undefined) {
    this.#node = node
    this.#source = source
    this.#max = max
    this.#ordered = ordered
    this.#outer = outer
  }

  async *results(): AsyncGenerator<unknown, void, undefined> {
    const aborted = (): void => {
      this.#stop(this.#outer?.reason)
      // At once: the reader may be busy for long with what it took before it asks for the next.
      this.#controller.abort(this.#outer?.reason)
    }
    this.#outer?.addEventListener('abort', aborted)
    if (this.#outer?.aborted === true) aborted()
    try {
      for (;;) {
        this.#fill()
        if (this.#failure !== undefined) throw this.#failure.why
        const slot = this.#next()
        if (slot !== undefined) yield slot.value
        else if (this.#ended && this.#slots.length === 0) return
        else await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      this.#outer?.removeEventListener('abort', aborted)
      await this.#close()
    }
  }

  /** A result that may be read now. */
  #next(): Slot | undefined {
    const at = this.#ordered ? 0 : this.#slots.findIndex((slot) => slot.settled)
    const slot = this.#slots[at]
    if (slot === undefined || !slot.settled) return undefined
    this.#slots.splice(at, 1)
    if (slot.thrown !== undefined) throw slot.thrown.why
    return slot
  }

  #stop(why: unknown): void {
    this.#failure ??= { why }
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
      this.#stop(why)
    })
  }

  async #take(): Promise<void> {
    while (this.#slots.length < this.#max && !this.#ended && this.#failure === undefined) {
      const item = await this.#source.next()
      if (item.done === true) this.#ended = true
      else this.#start(item.value)
    }
    this.#taking = undefined
    this.#tell()
  }

  #start(input: unknown): void {
    if (this.#failure !== undefined) return
    const slot: Slot = { settled: false, value: undefined, thrown: undefined }
    this.#slots.push(slot)
    const settle = (value: unknown, thrown: Slot['thrown']): void => {
      slot.settled = true
      slot.value = value
      slot.thrown = thrown
      this.#tell()
    }
    const failed = (thrown: unknown): void => settle(undefined, { why: unwrapped(thrown) })
    try {
      const value = runNode(this.#node, input, this.#controller.signal)
      if (value instanceof Promise) value.then((result) => settle(result, undefined), failed)
      else settle(value, undefined)
    } catch (thrown) {
      failed(thrown)
    }
  }

  async #close(): Promise<void> {
    this.#failure ??= { why: undefined }
    if (this.#slots.some((slot) => !slot.settled))
      this.#controller.abort(this.#failure.why ?? new DOMException('the stream has ended', 'AbortError'))
    if (this.#ended) return
    this.#ended = true
    // What the source says to being closed concerns nobody: the reader has what it wanted, or an error.
    const closed = (async () => this.#source.return?.())().catch(nothing)
    // A generator that is asked for an input closes when it has one, and that may be never.
    if (this.#taking === undefined) await closed
  }
}

function nothing(): void {}
