/**
 * `skein/http`: an HTTP/1.1 server with routes, for any web-standard app, on a native core; an adapter for
 * node:http.
 *
 * docs/guide/http.md says how it is used, docs/design/http-app.md how it works and what is promised.
 */
export type { ErrorMessage } from './app.ts'
export type { ErrorHandler } from './routes.ts'
export {
  accessLog,
  type AccessLogger,
  type AccessLogOptions,
  type AccessRecord,
} from './comfort/access-log.ts'
export { requestIdOf } from './carried.ts'
export { cors, type CorsOptions } from './comfort/cors.ts'
export {
  events,
  type EventsOptions,
  ndjson,
  pieces,
  type ServerEvent,
  type Source,
  type StreamOptions,
} from './events.ts'
export { files, type FilesHandler, type FilesOptions } from './comfort/files.ts'
export { type Form, type FormLimits, formOf } from './comfort/form.ts'
export { bodyLimit } from './comfort/limited-body.ts'
export { around, type Middleware, type Next, use } from './comfort/middleware.ts'
export { rateLimit, type RateLimitOptions } from './comfort/rate-limit.ts'
export { requestId, type RequestIdOptions } from './comfort/request-id.ts'
export {
  type ErrorAnswerOptions,
  errorAnswers,
  StatusError,
  type StatusCodes,
  type StatusErrorOptions,
} from './status-error.ts'
export { timeout } from './comfort/time-limit.ts'
export { HttpError, type HttpCodes } from './errors.ts'
export { SkeinHeaders as Headers } from './headers.ts'
export type { Injected } from './inject.ts'
export type { HttpLimits } from './limits.ts'
export { SkeinResponse as Response } from './response.ts'
export type { Params } from './router.ts'
export type {
  Answer,
  ArrowLike,
  Endpoint,
  FetchApp,
  Handler,
  HttpRequest,
  Json,
  MethodTable,
  Routes,
  RouteValue,
} from './routes.ts'
export { serve } from './serve.ts'
export { createApp, HttpServer, type InjectableApp, type ServerStats, type StopOptions } from './server.ts'
export type { AppSettings, ServeSettings } from './settings.ts'
export { type AppSource, loadApp, type ModuleApp } from './zone/app-module.ts'
export type { ZoneServer, ZoneServerStats } from './zone/server.ts'
export type { StallMessage } from './zone/supervisor.ts'
export type { ZoneServeSettings } from './zone/settings.ts'
