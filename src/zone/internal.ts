/**
 * Kinds of zones, the first and the end of one worker, and the loader of TypeScript.
 *
 * For the other folders of this package; not part of its API.
 */
export { FAR, type FarHosts, type AnyFarZone, isFar } from './api/any-far-zone.ts'
export { type RemoteZone, isLimited, isThisThread, isZone, workerZoneOf } from './api/kinds.ts'
export type { ExportName, ExportValue } from './api/any-zone.ts'
export { bound } from './context/bound.ts'
export {
  checkedTrace,
  continueCpu,
  endCpu,
  maySample,
  sampleCpu,
  traceAbout,
  traceFailed,
  traceWith,
  waitsOf,
  withTimeLimit,
} from './context/context.ts'
export type { TaskTracing, TracedTask } from './ground/record.ts'
export { shorterMs } from './call/send.ts'
export { wrong } from './ground/settings.ts'
export { WorkerZone } from './api/worker-zone.ts'
export { containsStreams } from './call/streamed.ts'
export { moduleCalls } from './api/module-calls.ts'
export { endWorker } from './api/zones.ts'
/** @internal */
export { createGradually } from './api/zones.ts'
export { type CountingProcess, type ProcessFigures, receiveFigures } from './owner/process.ts'
/** @internal */
export { takeEarly } from './owner/early.ts'
export { observeProcesses } from './owner/process.ts'
export { type ProcessObserved, deathReason, exitReason } from './owner/thread.ts'
export { here, type Labelling, type Mark, type Served } from './ground/current.ts'
export { thisBridge, whenCounting } from '../bridge/index.ts'
export { portable } from './call/portable.ts'
export { type Sources, sourcesOf } from './worker/loader/imports.ts'
export { installTypeScript } from './worker/loader/index.ts'
export { isTypeScript, stripTypes } from './worker/loader/strip.ts'
