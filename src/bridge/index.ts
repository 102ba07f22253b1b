/**
 * This thread's end of the native core: its port, its scratch memory, its waits.
 *
 * What zones, stores and locks have in common. Not exported from the package.
 */
export {
  CLOSED_HANDLE,
  Change,
  Counting,
  Counts,
  Enter,
  Fact,
  Found,
  FoundDouble,
  Given,
  GivenDouble,
  Kind,
  Mode,
  Passed,
  Read,
  Wait,
  Written,
} from './layout.ts'
export { type Arrival, type MailHandler, Port, thisPort, valueOf } from './port.ts'
export { Stage, thisStage } from './scratch.ts'
export { type Told, Waits, thisWaits } from './waits.ts'
