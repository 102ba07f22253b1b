/**
 * Stages whose source runs in a fiber of its own, or several.
 *
 * What is between the fibers is a passage, and the children end before the stage does.
 */
import { Exit, type Operation, exitOf, fork, ensuring } from '../fiber/index.ts'
import { News, type NewsSource, turn } from '../fiber/internal.ts'
import { beside } from './children.ts'
import { Passage, type WhenFull } from './passage.ts'
import {
  type Emit,
  type End,
  type Pending,
  type Run,
  STOP,
  type Wait,
  goesOn,
  refused,
  waited,
} from './run.ts'

export function buffered(run: Run, capacity: number, whenFull: WhenFull): Run {
  return (emit) =>
    beside('buffer()', (children) => {
      const passage = new Passage({ capacity, whenFull })
      children.produce(passage, run)
      return passage.each(emit)
    })
}

export function workedAtOnce(
  run: Run,
  work: (item: unknown) => unknown,
  { concurrency, ordered }: { readonly concurrency: number; readonly ordered: boolean },
): Run {
  return (emit) =>
    beside('mapConcurrent()', (children) => {
      const passage = new Passage({
        capacity: concurrency,
        ordered,
        work: (item) => children.call(work, item),
      })
      children.produce(passage, run)
      return passage.each(emit)
    })
}

export function merged(runs: readonly Run[]): Run {
  return (emit) =>
    beside('merge()', (children) => {
      const passage = new Passage({ capacity: runs.length })
      // Streams may end before the next one has begun.
      passage.open()
      for (const run of runs) children.produce(passage, run)
      passage.close()
      return passage.each(emit)
    })
}

/** The items of the streams that `runOf` makes of items, of `concurrency` streams at once. */
export function flattened(run: Run, runOf: (item: unknown) => Run, concurrency: number): Run {
  if (concurrency === 1) return (emit) => run((item) => runOf(item)(emit))
  return (emit) =>
    beside('flatMap()', (children) => {
      const passage = new Passage({ capacity: concurrency })
      const begin: Emit = (item) => {
        children.produce(passage, runOf(item))
        return undefined
      }
      function* later(slot: Pending, item: unknown): Operation<End, unknown> {
        return (yield* slot) === STOP ? STOP : begin(item)
      }
      children.produce(passage, run, (item) => {
        // The one that brings the items is a producer itself. It holds the next item: its end or its failure
        // does not wait for streams that may never end.
        const slot = passage.slot(concurrency)
        return slot === undefined ? begin(item) : later(slot, item)
      })
      return passage.each(emit)
    })
}

/** Both are read at once, so that the end or the failure of one does not wait for an item of the other. */
export function zipped(run: Run, other: Run): Run {
  return (emit) =>
    beside('zip()', function* (children) {
      const both = [run, other].map((each) => {
        const passage = new Passage({ capacity: 1 })
        children.produce(passage, each)
        return passage
      })
      const [ones, others] = both
      const pair = new News(new Pair(both))
      for (;;) {
        yield* pair
        const spent = both.find(({ isSpent }) => isSpent)
        if (spent !== undefined) {
          yield* spent.next()
          return undefined
        }
        if ((yield* waited(emit([ones.poll()?.value, others.poll()?.value]))) === STOP) return STOP
      }
    })
}

/** An item of each, or the end of one. */
class Pair implements NewsSource<undefined> {
  readonly #both: readonly Passage[]

  constructor(both: readonly Passage[]) {
    this.#both = both
  }

  get isReady(): boolean {
    return this.#both.some(({ isSpent }) => isSpent) || this.#both.every(({ isReady }) => isReady)
  }

  onNews(listener: (() => void) | undefined): void {
    for (const passage of this.#both) passage.onNews(listener && (() => this.isReady && listener()))
  }

  take(): undefined {
    return undefined
  }

  describe(): string {
    return 'the next items of both streams'
  }
}

/** The last item of each burst: one that no other follows within `ms`. */
export function debounced(run: Run, ms: number): Run {
  return (emit) =>
    beside('debounce()', function* (children) {
      const passage = new Passage({ capacity: 1, whenFull: 'slide' })
      children.produce(passage, run)
      for (let taken = yield* passage.next(); taken !== undefined;) {
        const newer = yield* passage.next(turn.scheduler.nowMs() + ms)
        if (newer === undefined && (yield* waited(emit(taken.value))) === STOP) return STOP
        taken = newer ?? (yield* passage.next())
      }
      return undefined
    })
}

/** Lists of at most `itemsMax` items, each emitted when it is full or its first item is `ms` old. */
export function groupedIn(run: Run, itemsMax: number, ms: number): Run {
  return (emit) =>
    beside('window()', function* (children) {
      const passage = new Passage({ capacity: 1 })
      children.produce(passage, run)
      for (;;) {
        const first = yield* passage.next()
        if (first === undefined) return undefined
        const items = [first.value]
        for (const untilMs = turn.scheduler.nowMs() + ms; items.length < itemsMax;) {
          const taken = yield* passage.next(untilMs)
          if (taken === undefined) break
          items.push(taken.value)
        }
        if ((yield* waited(emit(items))) === STOP) return STOP
      }
    })
}

/** Fails when an item takes longer than `timeoutMs`. */
export function inTime(run: Run, timeoutMs: number): Run {
  return (emit) =>
    beside('timeout()', function* (children) {
      const passage = new Passage({ capacity: 1 })
      children.produce(passage, run)
      for (;;) {
        const taken = yield* passage.next(turn.scheduler.nowMs() + timeoutMs)
        if (taken === undefined)
          return passage.isAtEnd ? undefined : yield* refused('STREAM_TIMEOUT', { timeoutMs })
        if ((yield* waited(emit(taken.value))) === STOP) return STOP
      }
    })
}

/** What comes through a passage, for one reader. */
function takenOnce(passage: Passage, stream: string): Run {
  let isTaken = false
  return function* (emit) {
    if (isTaken) return yield* refused('STREAM_TAKEN', { stream })
    isTaken = true
    return yield* ensuring(passage.each(emit), () => passage.leave())
  }
}

/** The items of the streams that `runOf` makes of the groups: the items of one key each. */
export function groupedBy(
  run: Run,
  keyOf: (item: unknown) => unknown,
  runOf: (group: Run, key: unknown) => Run,
  { groupsMax, capacity }: { readonly groupsMax: number; readonly capacity: number },
): Run {
  return (emit) =>
    beside('groupBy()', (children) => {
      const groups = new Map<unknown, Passage>()
      const out = new Passage({ capacity })
      const put: Emit = (item) => {
        const key = keyOf(item)
        const known = groups.get(key)
        // What the stream of a group needs no more is dropped.
        if (known !== undefined) return known.isLeft ? undefined : goesOn(known.put(item))
        if (groups.size >= groupsMax) return refused('STREAM_GROUPS_FULL', { groupsMax })
        const group = new Passage({ capacity })
        groups.set(key, group)
        group.open()
        const taken = takenOnce(group, 'a group of groupBy()')
        const made = runOf(taken, key)
        children.produce(out, (emitted) => ensuring(made(emitted), () => group.leave()))
        return goesOn(group.put(item))
      }
      children.produce(out, function* () {
        const end = yield* run(put)
        for (const group of groups.values()) group.close()
        return end
      })
      return out.each(emit)
    })
}

/**
 * Runs a stream in a child of the fiber that is there; each item goes to all readers that have not left, and
 * the slowest of them holds it back.
 */
export function broadcasted(run: Run, count: number, capacity: number): Run[] {
  const passages = Array.from({ length: count }, () => new Passage({ capacity }))
  for (const passage of passages) passage.open()
  function* all(waits: readonly Wait[]): Operation<End, unknown> {
    for (const wait of waits) yield* waited(wait)
    return undefined
  }
  const put: Emit = (item) => {
    const open = passages.filter((passage) => !passage.isLeft)
    if (open.length === 0) return STOP
    const waits = open.map((passage) => goesOn(passage.put(item))).filter((wait) => wait !== undefined)
    return waits.length === 0 ? undefined : all(waits)
  }
  fork(function* () {
    let exit: Exit<unknown, unknown> = Exit.interruption('the fiber of broadcast() has ended')
    try {
      exit = yield* exitOf(() => run(put))
    } finally {
      for (const passage of passages) {
        if (exit.kind !== 'success') passage.fail(exit)
        passage.close()
      }
    }
  })
  return passages.map((passage) => takenOnce(passage, 'a branch of broadcast()'))
}
