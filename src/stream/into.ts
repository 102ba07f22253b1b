/**
 * Writing a stream into a destination: a WritableStream of the web, or a Writable of Node.
 *
 * The destination holds the stream back, is closed behind its last item, and is aborted when the stream fails
 * or is interrupted. When the destination fails, the stream is interrupted.
 */
import type { Writable } from 'node:stream'
import { type Operation, attempt, never, race, ensuring } from '../fiber/index.ts'
import { inline, thrownBy } from '../fiber/internal.ts'
import { type Run, refused } from './run.ts'

/** A `Writable` of `node:stream`, as its users see it: programs without the types of Node compile, too. */
export interface NodeWritable {
  /** False: it has enough until `drain`. */
  write(chunk: unknown): boolean
  /** Nothing follows. */
  end(): unknown
  /** Ends it at once. */
  destroy(error?: Error): unknown
}

/** What both kinds of destinations have. */
interface Destination {
  /** Rejects when it fails, and resolves when it is closed. */
  readonly closed: Promise<unknown>
  /** Returns a promise while it can take no more. */
  write(item: unknown): Promise<unknown> | undefined
  end(): Promise<unknown>
  abort(why: unknown): unknown
  release(): void
}

/** @param isKept Whether the destination is left open, however the stream ends. */
export function* written(
  run: Run,
  target: NodeWritable | WritableStream,
  isKept: boolean,
): Operation<void, unknown> {
  const to = target instanceof WritableStream ? webDestination(target) : nodeDestination(target as Writable)
  let isEnding = false
  let itemsCount = 0
  function* writing(): Operation<void, unknown> {
    yield* run((item) => {
      const full = to.write(item)
      itemsCount++
      return full === undefined ? undefined : attempt(full)
    })
    isEnding = true
    if (!isKept) yield* attempt(to.end())
  }
  function* closing(): Operation<void, unknown> {
    yield* attempt(to.closed)
    yield* isEnding ? never() : refused('STREAM_CLOSED', { itemsCount })
  }
  yield* ensuring(race([writing, closing]), function* (exit) {
    if (exit.kind !== 'success' && !isKept) yield* inline(to.abort(thrownBy(exit)))
    to.release()
  })
}

function webDestination(target: WritableStream): Destination {
  const writer = target.getWriter()
  const { closed } = writer
  closed.catch(nothing)
  return {
    closed,
    write: (item) => {
      writer.write(item).catch(nothing)
      return (writer.desiredSize ?? 0) > 0 ? undefined : writer.ready
    },
    end: () => writer.close(),
    // One that has failed by itself rejects with its own error, which the stream has failed with.
    abort: (why) => writer.abort(why).catch(nothing),
    release: () => writer.releaseLock(),
  }
}

function nodeDestination(target: Writable): Destination {
  let [closes, fails]: [() => void, (why: unknown) => void] = [nothing, nothing]
  let drained: () => void = nothing
  const drains = (): void => drained()
  const closed = new Promise<void>((resolve, reject) => ([closes, fails] = [resolve, reject]))
  closed.catch(nothing)
  // One listener for all waits: one that is interrupted leaves none behind.
  target.once('close', closes).on('error', fails).on('drain', drains)
  if (target.destroyed || target.writableEnded) closes()
  return {
    closed,
    write: (item) =>
      target.write(item) ? undefined : new Promise((resolve) => (drained = () => resolve(undefined))),
    end: () =>
      new Promise((resolve, reject) => {
        target.end((why?: Error | null) => (why ? reject(why) : resolve(undefined)))
      }),
    abort: (why) => void target.destroy(why instanceof Error ? why : new Error(String(why))),
    release: () => {
      target.off('drain', drains)
      // An error that comes behind an abort is not for others.
      if (!target.destroyed) target.off('close', closes).off('error', fails)
    },
  }
}

function nothing(): void {}
