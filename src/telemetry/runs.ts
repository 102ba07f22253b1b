/**
 * Steps of durable runs as spans of OpenTelemetry, all in the trace in which their run was started.
 *
 * That trace is kept with the run, so a run that several processes have had is one trace.
 */
import { SpanKind, context, trace } from '@opentelemetry/api'
import { type StepSpans, meters, optionsOf } from '../base/index.ts'
import { checkedTrace, wrong } from '../zone/internal.ts'
import { activeHeaders, contextOf } from './context.ts'
import { failed } from './tasks.ts'
import { PROVIDER, type TelemetryOptions, tracerOf } from './tracer.ts'

/**
 * From now on each attempt of a step that this process runs is a span, below the one that was active where
 * its run was started. Returns a function that ends this; a second call replaces the first one.
 *
 * A span has the names of the definition and of the step. Where no span is active when a run is started, each
 * of its steps is a trace of its own; the attribute `corespun.run` is that of all of them.
 * @param options.tracerProvider Default: the global one.
 * @throws {ZoneError} `ZONE_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { traceRuns } from 'corespun/telemetry'
 *
 * // Where runs are started, and where they are run.
 * const stop = traceRuns()
 * assert.equal(typeof stop, 'function')
 * stop()
 * ```
 */
export function traceRuns(options?: TelemetryOptions): () => void {
  const { tracerProvider } = optionsOf(options, { tracerProvider: PROVIDER }, wrong, 'traceRuns()')
  const spans: StepSpans = {
    current: activeHeaders,
    begin: ({ run, key, step, attempt }, kept) => {
      const parent = contextOf(kept && checkedTrace(kept))
      const attributes = { 'corespun.run': `${run}/${key}`, 'corespun.attempt': attempt }
      const span = tracerOf(tracerProvider).startSpan(
        `${run} ${step}`,
        { kind: SpanKind.INTERNAL, attributes },
        parent,
      )
      return {
        within: (body) => context.with(trace.setSpan(parent, span), body),
        end: (failure) => (failure === undefined ? span.end() : failed(span, failure.error)),
      }
    },
  }
  meters.steps = spans
  return () => {
    if (meters.steps === spans) meters.steps = undefined
  }
}
