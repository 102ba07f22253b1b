/**
 * What middleware finds out about a request, for who counts requests (src/base/meters.ts).
 *
 * Nothing happens where nobody does.
 */
import { meters } from '../../base/index.ts'
import { exchangeOf } from '../fetch/request.ts'

/** Of a `traceparent` that was sampled: both ids. */
const SAMPLED = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-[\da-f][13579bdf]/

/** The request is part of that trace. */
export function countTrace(request: object, traceparent: string): void {
  if (meters.request === undefined) return
  const exchange = exchangeOf(request)
  const [, traceId, spanId] = SAMPLED.exec(traceparent) ?? []
  if (exchange?.count !== undefined && traceId !== undefined)
    exchange.count = exchange.count.traced(traceId, spanId)
}

/** The CPU time of the request is measured. */
export function countCpu(request: object, used: { readonly cpuMs: number }): void {
  if (meters.request === undefined) return
  const exchange = exchangeOf(request)
  if (exchange?.count !== undefined) exchange.count = exchange.count.measured(used)
}
