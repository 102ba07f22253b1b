/**
 * How tests wait: for the event itself, with a limit that fails with a sentence.
 *
 * The limit only ends a test that would hang: it is far above what a machine needs whose cores are all busy.
 * Deliberately absent: waiting for a span of time. `compute` keeps the thread from its event loop.
 */
import { setTimeout as pause } from 'node:timers/promises'

/** How long a test waits for anything, in milliseconds. */
export const WAIT_MS_MAX = 90_000
/** Time between two looks at a condition. */
const LOOK_MS = 2

/**
 * Wait until a condition holds.
 * @param condition Called every few milliseconds, with no call before the last has returned.
 * @param what Names what is awaited in the error; the condition's source without it.
 * @throws {Error} After `WAIT_MS_MAX`.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string = String(condition),
): Promise<void> {
  const start = performance.now()
  while (!(await condition())) {
    if (performance.now() - start > WAIT_MS_MAX) throw new Error(sentence(what))
    await pause(LOOK_MS)
  }
}

/**
 * A promise's value.
 * @param what Names what is awaited in the error.
 * @throws {Error} If the promise has not settled after `WAIT_MS_MAX`; what it rejects with.
 */
export async function settled<T>(promise: PromiseLike<T>, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(sentence(what))), WAIT_MS_MAX)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Wait until a cell of shared memory is not 0: another thread writes it. */
export function cellIsSet(cells: Int32Array, index: number, what = `cell ${index}`): Promise<void> {
  return until(() => Atomics.load(cells, index) !== 0, `a value other than 0 in ${what}`)
}

function sentence(what: string): string {
  return `${WAIT_MS_MAX / 1000} s have passed without what the test waits for: ${what}`
}

/** Compute for so long, in ms. It uses nothing around it, so that it runs in any thread. */
export function compute(ms: number): void {
  const began = performance.now()
  while (performance.now() - began < ms);
}
