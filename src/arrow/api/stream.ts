/**
 * One arrow over many inputs, some at once: bounded, in order or as they end.
 *
 * It pulls: it reads an input only when a run may begin, and a run may begin only when the reader has taken
 * earlier results. Whatever ends the stream (a failure, the reader, the signal) interrupts the runs and
 * closes the source before the reader's promise settles; a source that is still producing its next input is
 * not waited for.
 */
import {
  type AnyIterable,
  Flow,
  abortSignal,
  flag,
  integer,
  optionsOf,
  outcomesOf,
  readerOf,
} from '../../base/index.ts'
import { bound } from '../../zone/internal.ts'
import { wrong } from '../errors.ts'
import type { ArrowNode } from '../build/node.ts'
import { oneByOne } from './one-by-one.ts'
import { Runs } from './runs.ts'

/** Options of `Arrow.stream`. */
export interface StreamOptions {
  /** Most runs at once, 1 to 2^20. Default 1. */
  readonly concurrency?: number
  /** Results in the order of the inputs. Default true; false: in the order in which runs end. */
  readonly ordered?: boolean
  /**
   * Yield an outcome for each input, `{ index, status, value }` or `{ index, status, reason }`, instead of
   * ending with the first failure. Default false.
   */
  readonly settle?: boolean
  /** Ends the stream with its reason and interrupts all runs. */
  readonly signal?: AbortSignal
}

const STREAM = {
  concurrency: integer(1, 2 ** 20, 1),
  ordered: flag(true),
  settle: flag(false),
  signal: abortSignal,
}

export function streamed(
  node: ArrowNode,
  inputs: AnyIterable<unknown>,
  options?: StreamOptions,
): AsyncGenerator<unknown, void, undefined> {
  const { concurrency, ordered, settle, signal } = optionsOf(options, STREAM, wrong, 'stream()')
  const given = inputs as (Partial<AsyncIterable<unknown>> & Partial<Iterable<unknown>>) | null | undefined
  const asynchronous = given?.[Symbol.asyncIterator]
  const open = asynchronous ?? given?.[Symbol.iterator]
  if (typeof open !== 'function') throw wrong('stream(): inputs', 'an iterable or async iterable', inputs)
  const runs = new Runs(node, settle)
  if (concurrency === 1 && signal === undefined) return bound(oneByOne(inputs, open === asynchronous, runs))
  return bound(windowed(inputs, runs, { max: concurrency, ordered, signal }))
}

interface Window {
  readonly max: number
  readonly ordered: boolean
  readonly signal: AbortSignal | undefined
}

function windowed(
  inputs: AnyIterable<unknown>,
  runs: Runs,
  { max, ordered, signal }: Window,
): AsyncGenerator<unknown, void, undefined> {
  const flow: Flow<ArrayLike<unknown>, unknown> = new Flow<ArrayLike<unknown>, unknown>({
    run: (items) => runs.run(items[0]),
    settled: (run) => {
      if (!run.hasFailed) {
        run.value = runs.outcome(run.value, run.first)
        return
      }
      const reason = runs.reason(run.value)
      // A run that the end of the stream has interrupted has no outcome.
      if (runs.isSettling && !runs.hasEnded) run.succeed(runs.rejected(reason, run.first))
      else flow.fail(reason, false)
    },
    failed: (why) => runs.end(why),
    ordered,
    runsMax: max,
    refillsLate: false,
    mayRead: () => !runs.isAside,
  })
  runs.resumed = () => flow.changed()
  const reader = readerOf(inputs, flow)
  const close = async (): Promise<void> => {
    if (!flow.isIdle) flow.fail(new DOMException('the stream has ended', 'AbortError'), true)
    // Runs of asynchronous functions are abandoned; those of fibers have run their finalizers.
    await flow.idle()
    try {
      await reader.close()
    } catch {
      // The reader has its results, or an error that matters more.
    }
  }
  return outcomesOf(flow, { read: () => reader.read(), close }, signal)
}
