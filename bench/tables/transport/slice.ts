/**
 * The clock of table `transport`: slices of calls on the wall.
 *
 * CPU time would be deaf to neighbours, but many kernels count it in ticks of 4 ms, longer than a slice.
 */
import { OBJECTS } from './payloads.ts'

/** Nanoseconds per call of `run` over about `sliceMs`; it is given the numbers of the objects in turn. */
export function slice(run: (index: number) => unknown, sliceMs: number): number {
  const start = process.hrtime.bigint()
  let calls = 0
  let elapsedNs = 0
  do {
    for (let index = 0; index < OBJECTS; index += 1) run(index)
    calls += OBJECTS
    elapsedNs = Number(process.hrtime.bigint() - start)
  } while (elapsedNs < sliceMs * 1e6)
  return elapsedNs / calls
}
