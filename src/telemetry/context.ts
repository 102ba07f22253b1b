/**
 * Contexts of OpenTelemetry as the headers that travel between threads, and back.
 *
 * Always W3C Trace Context and W3C Baggage, whatever propagators the program has registered: those are for
 * other systems, and both ends of a call are this package.
 */
import {
  type BaggageEntry,
  type Context,
  ROOT_CONTEXT,
  type SpanContext,
  TraceFlags,
  baggageEntryMetadataFromString,
  context,
  createTraceState,
  isSpanContextValid,
  propagation,
  trace,
} from '@opentelemetry/api'
import type { TraceContext } from '../zone/index.ts'

let lastContext: Context | undefined
let lastHeaders: TraceContext | undefined

/** The headers of the calling code's context; `undefined` if it has neither a span nor baggage. */
export function activeHeaders(): TraceContext | undefined {
  const active = context.active()
  // Contexts never change: one that makes several calls is written once.
  if (active === lastContext) return lastHeaders
  lastHeaders = headersOf(active)
  lastContext = active
  return lastHeaders
}

function headersOf(active: Context): TraceContext | undefined {
  const span = trace.getSpanContext(active)
  const entries = propagation.getBaggage(active)?.getAllEntries() ?? []
  const isInTrace = span !== undefined && isSpanContextValid(span)
  if (!isInTrace && entries.length === 0) return undefined
  const tracestate = isInTrace ? span.traceState?.serialize() : undefined
  return {
    ...(isInTrace ? { traceparent: traceparentOf(span) } : {}),
    ...(tracestate === undefined || tracestate === '' ? {} : { tracestate }),
    ...(entries.length === 0 ? {} : { baggage: entries.map(written).join(',') }),
  }
}

export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

function written([key, { value, metadata }]: [string, BaggageEntry]): string {
  const behind = metadata?.toString() ?? ''
  return `${key}=${encodeURIComponent(value)}${behind === '' ? '' : `;${behind}`}`
}

/** The context of those headers, which were checked when they were received. */
export function contextOf(headers: TraceContext | undefined): Context {
  if (headers === undefined) return ROOT_CONTEXT
  const { traceparent, tracestate, baggage } = headers
  let found = ROOT_CONTEXT
  if (traceparent !== undefined) {
    const [, traceId, spanId, flags] = traceparent.split('-')
    const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED
    const traceState = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }
    found = trace.setSpanContext(found, { traceId, spanId, traceFlags, isRemote: true, ...traceState })
  }
  if (baggage === undefined) return found
  return propagation.setBaggage(found, propagation.createBaggage(entriesOf(baggage)))
}

/** The pairs of a baggage header; those that are malformed are left out. */
function entriesOf(baggage: string): Record<string, BaggageEntry> {
  const entries: [string, BaggageEntry][] = []
  for (const part of baggage.split(',')) {
    const [pair, ...behind] = part.split(';')
    const at = pair.indexOf('=')
    const key = pair.slice(0, Math.max(at, 0)).trim()
    if (key === '') continue
    const metadata = behind.join(';').trim()
    entries.push([
      key,
      {
        value: decoded(pair.slice(at + 1).trim()),
        ...(metadata === '' ? {} : { metadata: baggageEntryMetadataFromString(metadata) }),
      },
    ])
  }
  return Object.fromEntries(entries)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // a percent sign that begins no escape
  }
}
