/**
 * The clock of table `transport`: slices of calls on the wall.
 *
 * CPU time would be deaf to neighbours, but many kernels count it in ticks of 4 ms, longer than a slice.
 */
import { OBJECTS } from './payloads.ts'

/** What was returned last: nothing that is timed may be optimized away because it is unused. */
const state: { last: unknown } = { last: undefined }

/** Nanoseconds per call of `run` over about `sliceMs`; it is given the numbers of the objects in turn. */
export function slice(run: (index: number) => unknown, sliceMs: number): number {
  const start = process.hrtime.bigint()
  let calls = 0
  let last: unknown
  let elapsedNs = 0
  do {
    for (let index = 0; index < OBJECTS; index += 1) last = run(index)
    calls += OBJECTS
    elapsedNs = Number(process.hrtime.bigint() - start)
  } while (elapsedNs < sliceMs * 1e6)
  // Here and not in the loop, where the collector would have to record each young object that an old one
  // holds.
  state.last = last
  return elapsedNs / calls
}

/**
 * A `slice` of its own for one function. The engine keeps type feedback with the text that a call is written
 * in, so in a loop that has run many functions each call costs some 15 ns more than it would cost anybody who
 * writes it.
 */
export function ownSlice(): typeof slice {
  return new Function('OBJECTS', 'state', `${slice.toString()}\nreturn slice`)(OBJECTS, state) as typeof slice
}
