/**
 * What a hop takes from a fiber: its span, and the values of references.
 *
 * The span is the trace of the call (`currentTrace()` there), so tasks, requests and programs that use
 * OpenTelemetry see it too. References travel by their keys: a worker passes on values whose references it
 * has not loaded, and a task reads them as soon as it does.
 */
import * as Context from 'effect/Context'
import type { Fiber } from 'effect/Fiber'
import * as References from 'effect/References'
import * as Tracer from 'effect/Tracer'
import { type TraceContext, currentTrace } from '../zone/index.ts'
import { checkedTrace } from '../zone/internal.ts'

/** Keys and their values, in turns; absent without any. */
export type Carried = readonly unknown[] | undefined

/** Most references that a thread carries: each call looks at all of them. */
const REFERENCES_MAX = 64

const keys = new Set<string>(
  [
    References.CurrentLogAnnotations,
    References.CurrentLogSpans,
    References.MinimumLogLevel,
    References.TracerEnabled,
    References.TracerSpanAnnotations,
  ].map(({ key }) => key),
)

/**
 * From now on calls of this thread take the values of these references with them, where an Effect has
 * provided one. Effect's own for logs and spans do so already. Values are copied like arguments.
 * @throws {RangeError} for more than 64 references in a thread.
 *
 * @example
 * ```ts
 * import { Context } from 'effect'
 * import { carryReference } from 'corespun/effect'
 *
 * export const User = Context.Reference<string>('app/User', { defaultValue: () => 'nobody' })
 * carryReference(User) // in the module of the reference, which both threads load
 * ```
 */
export function carryReference<Values extends readonly unknown[]>(
  ...references: { [At in keyof Values]: Context.Reference<Values[At]> }
): void {
  for (const { key } of references) carryKey(key)
}

function carryKey(key: string): void {
  if (!keys.has(key) && keys.size >= REFERENCES_MAX)
    throw new RangeError(
      `carryReference(): ${key} is one more than the ${REFERENCES_MAX} of a thread; merge some`,
    )
  keys.add(key)
}

export function carriedBy(fiber: Fiber<unknown, unknown>): Carried {
  const { mapUnsafe } = fiber.context
  let found: unknown[] | undefined
  for (const key of keys) if (mapUnsafe.has(key)) (found ??= []).push(key, mapUnsafe.get(key))
  return found
}

/** The trace of a call: the fiber's span, in the trace that the calling code is in. */
export function traceOf(fiber: Fiber<unknown, unknown>): TraceContext | undefined {
  let span = fiber.context.mapUnsafe.get(Tracer.ParentSpanKey) as Tracer.AnySpan | undefined
  while (span !== undefined && Context.get(span.annotations, Tracer.DisablePropagation))
    span = span._tag === 'Span' && span.parent._tag === 'Some' ? span.parent.value : undefined
  if (span === undefined) return undefined
  const baggage = currentTrace()?.baggage
  return {
    traceparent: `00-${span.traceId}-${span.spanId}-${span.sampled ? '01' : '00'}`,
    ...(baggage === undefined ? {} : { baggage }),
  }
}

/** The context of what runs on this side: the carried values, and the caller's span as the parent. */
export function contextOf(
  carried: Carried,
  trace: Partial<TraceContext> | undefined = currentTrace(),
  base: Context.Context<never> = Context.empty(),
): Context.Context<never> {
  const entries = new Map(base.mapUnsafe)
  entries.delete(Tracer.ParentSpanKey)
  const traceparent =
    trace && checkedTrace({ tracestate: undefined, baggage: undefined, ...trace })?.traceparent
  if (traceparent !== undefined) {
    const [, traceId, spanId, flags] = traceparent.split('-')
    const sampled = (Number.parseInt(flags, 16) & 1) === 1
    entries.set(Tracer.ParentSpanKey, Tracer.externalSpan({ traceId, spanId, sampled }))
  }
  for (let at = 0; carried !== undefined && at < carried.length; at += 2) {
    const key = carried[at] as string
    carryKey(key)
    entries.set(key, carried[at + 1])
  }
  return Context.makeUnsafe(entries)
}
