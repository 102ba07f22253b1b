/**
 * Tasks and requests as spans of OpenTelemetry.
 *
 * The only entry point that needs `@opentelemetry/api`, an optional peer: nothing else imports it.
 * @module corespun/telemetry
 */
export { traceRequests } from './requests.ts'
export { traceTasks } from './tasks.ts'
export type { TelemetryOptions } from './tracer.ts'
