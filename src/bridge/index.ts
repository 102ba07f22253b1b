/**
 * This thread's end of the native core, shared by zones, stores and locks: its bridge, scratch memory, waits.
 *
 * Not exported from the package.
 */
export {
  CLOSED_HANDLE,
  Change,
  Counting,
  Counts,
  Acquire,
  Fact,
  Flush,
  Found,
  FoundDouble,
  Given,
  GivenDouble,
  Kind,
  Mode,
  Passed,
  Read,
  Stage,
  Wait,
  Written,
} from './layout.ts'
export { type Arrival, Bridge, thisBridge, valueOf, whenCounting } from './bridge.ts'
export { Scratch, thisScratch } from './scratch.ts'
export { Waits, thisWaits } from './waits.ts'
