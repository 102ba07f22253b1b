/**
 * Where spans come from: the tracer provider of the options, or the one that the SDK has registered.
 * It is looked up at each span, since an SDK may be started later.
 */
import { type Tracer, type TracerProvider, trace } from '@opentelemetry/api'
import type { Kind } from '../base/index.ts'

/** Options of {@link traceTasks} and {@link traceRequests}. */
export interface TelemetryOptions {
  /** Makes the spans. Default: the provider that the SDK of this thread has registered. */
  readonly tracerProvider?: TracerProvider
}

export const PROVIDER: Kind<TracerProvider | undefined> = {
  expected: 'a TracerProvider',
  accepts: (provider) => typeof (provider as TracerProvider | null)?.getTracer === 'function',
  default: undefined,
}

export function tracerOf(provider: TracerProvider | undefined): Tracer {
  return (provider ?? trace).getTracer('corespun')
}
