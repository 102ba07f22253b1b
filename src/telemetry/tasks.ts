/**
 * Tasks of zones as spans of OpenTelemetry, each under the span that its caller was in.
 *
 * Each thread has its own SDK, so each thread that runs tasks asks for its spans itself. A call takes the
 * active span with it, by the record behind its arguments.
 */
import {
  type Context,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type TracerProvider,
  context,
  trace,
} from '@opentelemetry/api'
import { threadId } from 'node:worker_threads'
import { meters, optionsOf, promiseOf, whenSettled } from '../base/index.ts'
import { currentTask } from '../zone/index.ts'
import { type TaskTracing, type TracedTask, traceWith, wrong } from '../zone/internal.ts'
import { activeHeaders, contextOf } from './context.ts'
import { PROVIDER, type TelemetryOptions, tracerOf } from './tracer.ts'

/**
 * From now on the tasks that this thread runs are spans, and calls take the active span of this thread with
 * them. Returns a function that ends this; a second call replaces the first one.
 *
 * A span has the name of the task's function, and ends when the function returns or its promise settles. An
 * error is recorded, and is the span's status.
 * @param options.tracerProvider Default: the global one.
 * @throws {ZoneError} `ZONE_ARGUMENT` for invalid options.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict'
 * import { traceTasks } from 'corespun/telemetry'
 *
 * // In each thread, after its SDK was started: for workers a module that is the `setup` of their zone.
 * const stop = traceTasks()
 * assert.equal(typeof stop, 'function')
 * stop()
 * ```
 */
export function traceTasks(options?: TelemetryOptions): () => void {
  const { tracerProvider } = optionsOf(options, { tracerProvider: PROVIDER }, wrong, 'traceTasks()')
  return traceWith(tracingOf(tracerProvider))
}

function tracingOf(provider: TracerProvider | undefined): TaskTracing {
  /** Spans of tasks whose results are read after they have ended, such as generators. */
  const contexts = new WeakMap<TracedTask, Context>()
  /** Of those that are counted. */
  const names = new WeakMap<Span, string>()
  return {
    current: activeHeaders,
    run: (task, name, headers, body) => {
      const parent = contextOf(headers)
      const span = tracerOf(provider).startSpan(
        nameOf(task.zone, name),
        { kind: SpanKind.INTERNAL, attributes: attributesOf(task, name) },
        parent,
      )
      const inside = trace.setSpan(parent, span)
      contexts.set(task, inside)
      if (meters.task === undefined) return ended(span, () => context.with(inside, body))
      names.set(span, name)
      const begunMs = performance.now()
      const counted = (): void => {
        const { traceId, spanId, traceFlags } = span.spanContext()
        const ms = performance.now() - begunMs
        if ((traceFlags & TraceFlags.SAMPLED) !== 0)
          meters.task?.(task.zone, names.get(span) ?? '', ms, traceId, spanId)
      }
      return ended(span, () => context.with(inside, body), counted)
    },
    about: (name, cause) => {
      const span = trace.getActiveSpan()
      span?.updateName(nameOf(currentTask()?.zone, name)).setAttribute('code.function.name', name)
      if (span !== undefined && names.has(span)) names.set(span, name)
      const causing = cause === undefined ? undefined : trace.getSpanContext(contextOf(cause))
      if (causing !== undefined) span?.addLink({ context: causing })
    },
    failed: (error) => {
      const span = trace.getActiveSpan()
      if (span !== undefined) markFailed(span, error)
    },
    within: (task, body) => context.with(contexts.get(task) ?? context.active(), body),
  }
}

function nameOf(zone: string | undefined, name: string): string {
  return name === '' ? `task of ${zone}` : name
}

function attributesOf({ zone, worker }: TracedTask, name: string): Record<string, string | number> {
  const named = name === '' ? {} : { 'code.function.name': name }
  return { 'corespun.zone': zone, 'thread.id': threadId, 'thread.name': worker, ...named }
}

/** Run `body`, and end the span with it. */
function ended<R>(span: Span, body: () => R, counted?: () => void): R {
  const end = (): void => {
    counted?.()
    span.end()
  }
  const fail = (error: unknown): void => {
    counted?.()
    failed(span, error)
  }
  let result: R
  try {
    result = body()
  } catch (error) {
    fail(error)
    throw error
  }
  const promise = promiseOf(result)
  if (promise === undefined) end()
  else whenSettled(promise, end, fail)
  return result
}

/** End a span with an error. */
export function failed(span: Span, error: unknown): void {
  markFailed(span, error)
  span.end()
}

function markFailed(span: Span, error: unknown): void {
  if (error instanceof Error) {
    const { code } = error as { readonly code?: unknown }
    span.setAttribute('error.type', typeof code === 'string' ? code : error.name)
    span.recordException(error)
    span.setStatus({ code: SpanStatusCode.ERROR, message: error.message })
  } else {
    span.setAttribute('error.type', '_OTHER')
    span.setStatus({ code: SpanStatusCode.ERROR })
  }
}
