/**
 * What every other module may rely on: errors, their reasons in one line, assertions, and the one engine of
 * bounded concurrency.
 *
 * Imports no other part of Corespun, and holds no state but the slots of those who count. The types of every
 * door depend on this file, so it references the library that they need: `Symbol.dispose` and its kin.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { onAbort, unwatch, watch } from './aborts.ts'
export { AssertionFailure, assert } from './assert.ts'
export { CHUNK_ITEMS_MAX, ChunkBudget, ChunkSize } from './flow/chunk-size.ts'
export { CorespunError, shown, type Sentences } from './errors.ts'
export { Flow, Part, type Run } from './flow/flow.ts'
export { Answers, AsyncIteratorPrototype, outcomesOf } from './flow/outcomes.ts'
export { hasMember, isObject, isPlainObject } from './members.ts'
export {
  type ArgumentFacts,
  type Kind,
  type Kinds,
  type OptionsOf,
  TIMER_MS_MAX,
  type Wrong,
  abortSignal,
  anything,
  argumentSentence,
  callback,
  checkSame,
  flag,
  integer,
  milliseconds,
  oneOf,
  nearestOf,
  unknownSentence,
  optionsOf,
  ownOptions,
  refuser,
  text,
  valueOfKind,
} from './options.ts'
export { jsonFault } from './json.ts'
export {
  type ConstantCount,
  type Counted,
  type Moment,
  type RequestCount,
  type ServerFigures,
  type StageCount,
  type StepSpans,
  connectedFleets,
  meters,
} from './meters.ts'
export { Turns, turn } from './turns.ts'
export { type Step, type Waitable, fibers, waitableOf } from './waitable.ts'
export { type Pause, busyMs, collectedMs, pausedMs, watchPauses } from './pauses.ts'
export { PEM, type PemSource, certificatesIn, pem, pemList, pemPath, pems, pemText } from './pem.ts'
export { loadReason, packageType } from './load-reason.ts'
export { durationText } from './duration.ts'
export { isAbort, isDenied, messageOf, oneLine, reasonOf, stackOf } from './reasons.ts'
export {
  type AnyIterable,
  type Items,
  ItemsReader,
  type Reader,
  isItems,
  readerOf,
  resultOf,
} from './flow/readers.ts'
export { type ItemReader, readerFor } from './flow/source.ts'
export {
  type SeedRange,
  type Seeded,
  effects,
  generator,
  randomId,
  randomText,
  uuidText,
  seedRange,
  seeds,
} from './seeds.ts'
export { hide, setStack, stackIn, withStackLimit } from './stacks.ts'
export { isThenable, promiseOf, whenSettled } from './thenable.ts'
export { otherRuntime } from './runtime.ts'
/** @internal */
export { cores, requireShortened, threads } from './runtime.ts'
