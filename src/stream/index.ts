/**
 * `corespun/stream`: streams of items over fibers.
 *
 * docs/guide/streams.md has a tour.
 * @module corespun/stream
 */
import { refuseClass, register } from '../transport/internal.ts'
import { StreamError } from './errors.ts'
import { Stream } from './stream.ts'

export { StreamError, type StreamCodes } from './errors.ts'
export type { NodeWritable } from './into.ts'
export type { WhenFull } from './passage.ts'
export type { StreamRun } from './stream-run.ts'
export {
  type BroadcastOptions,
  type BufferOptions,
  type GroupByOptions,
  type MapConcurrentOptions,
  type RunIntoOptions,
  Stream,
  type StreamSource,
  type ThrottleOptions,
  type WindowOptions,
} from './stream.ts'

register(StreamError, { cid: 'corespun.StreamError' })
refuseClass(Stream, 'a stream belongs to its thread; pass what its loop yields, as in zone.stream()')
