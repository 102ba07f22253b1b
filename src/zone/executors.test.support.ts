/**
 * Functions that join, for executors.test.ts.
 *
 * A module, since what joins itself must be reachable by name in every worker.
 */
import { move } from '../transport/index.ts'
import { currentTask, join, zone } from './index.ts'

type Tree = number | readonly [Tree, Tree]

/** The sum of a tree's leaves, by joins. */
export function joinedSum(tree: Tree): number {
  if (typeof tree === 'number') return tree
  const [left, right] = join([joinedSum, tree[0]], [joinedSum, tree[1]])
  return left + right
}

/**
 * Count each cell from `from` to `to` once; the names of the workers that did. Who has the first cell waits
 * for the last one, which another worker has to take.
 */
export function marks(cells: Int32Array, from: number, to: number): string[] {
  if (to - from === 1) {
    Atomics.add(cells, from, 1)
    Atomics.notify(cells, from)
    if (from === 0) Atomics.wait(cells, cells.length - 1, 0, 60_000)
    return [currentTask()?.worker ?? '']
  }
  const middle = (from + to) >> 1
  const [left, right] = join([marks, cells, from, middle], [marks, cells, middle, to])
  return [...new Set([...left, ...right])]
}

export function perhaps(fails: string, waits: number): void {
  works(waits)
  if (fails !== '') throw new Error(`${fails} failed`)
}

export function works(waits: number): void {
  const until = performance.now() + waits
  while (performance.now() < until);
}

/** A join of which one side, or both, throw; with `waits` another worker has time to take the second. */
export function failing(where: 'first' | 'second' | 'both', waits: number): void {
  const side = (which: 'first' | 'second'): readonly [typeof perhaps, string, number] => [
    perhaps,
    where === 'both' || where === which ? which : '',
    waits,
  ]
  join(side('first'), side('second'))
}

export function taskIsThere(): boolean {
  return currentTask() !== undefined
}

export function ownTask(): [boolean, boolean] {
  return join([taskIsThere], [taskIsThere])
}

export async function later(): Promise<void> {
  await undefined
}

export function asynchronous(side: number): void {
  if (side === 0) join([later as () => unknown], [works, 0])
  else join([works, 0.2], [later as () => unknown])
}

function holds(gate: Int32Array): void {
  Atomics.wait(gate, 0, 0, 10_000)
}

export function dies(buffer: SharedArrayBuffer): void {
  const gate = new Int32Array(buffer)
  Atomics.store(gate, 0, 1)
  Atomics.notify(gate, 0)
  process.exit(1)
}

export function waitsFor(buffer: SharedArrayBuffer): void {
  holds(new Int32Array(buffer))
}

/** The second side waits for another worker to take it, and that dies. */
export function dyingHelper(buffer: SharedArrayBuffer): void {
  join([waitsFor, buffer], [dies, buffer])
}

export function spins(): never {
  for (;;);
}

/** Both sides run for ever, in two workers if there are two. */
export function joinsForEver(): void {
  join([spins], [spins])
}

export function bytesOf(buffer: ArrayBuffer): number {
  return buffer.byteLength
}

/** The second side is given memory; what it saw, and what is left here. */
export function movingSecond(bytes: number): readonly number[] {
  const buffer = new ArrayBuffer(bytes)
  return [...join([works, 0], [bytesOf, move(buffer)]).slice(1), buffer.byteLength] as number[]
}

/** Calls another zone and does not wait: the task sets the first cell, and 2 there when the second is set. */
export function forgets(id: string, gate: Int32Array): void {
  void zone.get(id).run(async (cells: Int32Array) => {
    Atomics.store(cells, 0, 1)
    while (Atomics.load(cells, 1) === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    Atomics.store(cells, 0, 2)
  }, gate)
}
