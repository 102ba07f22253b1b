/**
 * What a counted program leaves in its trace: names of files that do not exist, which it asks for.
 *
 * A thread is not counted between its own `off` and `on`; `op` begins the next operation.
 */
import { accessSync, readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { basename } from 'node:path'

export const MARK = '/corespun-counts/'
/** Whether a tracer reads the marks. */
export const IS_TRACED = process.env['CORESPUN_COUNTS'] === 'trace'
/** A thread may be seen asleep between two steps of its work. */
const LOOKS = 2
/** On a busy machine the others need the time that looking takes. */
const PAUSE_MS = 0.2
const NEVER = new Int32Array(new SharedArrayBuffer(4))

export function mark(name: 'off' | 'on' | 'op'): void {
  try {
    accessSync(MARK + name)
  } catch {
    // It is never there.
  }
}

/** Waits until that thread of this process sleeps, or all but the calling one do. */
export function untilAsleep(only?: number): void {
  const own = Number(basename(readlinkSync('/proc/thread-self')))
  const others = (): number[] => (only === undefined ? readdirSync('/proc/self/task').map(Number) : [only])
  for (let seen = 0; seen < LOOKS; Atomics.wait(NEVER, 0, 0, PAUSE_MS))
    seen = others().every((id) => id === own || sleeps(id)) ? seen + 1 : 0
}

function sleeps(id: number): boolean {
  try {
    return readFileSync(`/proc/self/task/${id}/stat`, 'latin1').split(') ')[1][0] === 'S'
  } catch {
    return true // It has ended.
  }
}

/** Runs one operation after the other, each when all other threads sleep, if it is traced. */
export async function eachOperation(
  { count, isCounted }: { readonly count: number; readonly isCounted: boolean },
  operation: (at: number) => Promise<void>,
): Promise<void> {
  for (let at = 0; at < count; at++) {
    next(isCounted)
    await operation(at)
  }
  next(isCounted)
}

function next(isCounted: boolean): void {
  if (!IS_TRACED) return
  mark('off')
  untilAsleep()
  mark('on')
  if (isCounted) mark('op')
}
