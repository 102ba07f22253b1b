/**
 * `corespun/http`: a server for HTTP/1.1 and HTTP/2 with routes, for any web-standard app, on a native core;
 * an adapter for node:http.
 *
 * Guide: docs/guide/http.md. Design: docs/design/http-app.md.
 * @module corespun/http
 */
export type { ErrorEvent } from './app/app.ts'
export type { ErrorHandler } from './app/routes.ts'
export {
  accessLog,
  type AccessLogger,
  type AccessLogOptions,
  type AccessRecord,
} from './middleware/logs/access-log.ts'
export { getRequestId } from './app/carried.ts'
export { cors, type CorsOptions } from './middleware/cors.ts'
export {
  events,
  type EventsOptions,
  ndjson,
  chunks,
  type ServerEvent,
  type BodySource,
  type BodyOptions,
} from './app/events.ts'
export type { Problem, RequestFault, RequestPart } from './contract/faults.ts'
export { type JsonRead, jsonReader, type LargeBody } from './contract/large.ts'
export { openApi, type OpenApiOptions } from './contract/open-api.ts'
export { openApiPage, type OpenApiPageOptions } from './middleware/open-api-page.ts'
export type { Responded } from './contract/responded.ts'
export { route } from './contract/route.ts'
export type {
  Schema,
  SchemaConverter,
  SchemaInput,
  SchemaIssue,
  SchemaOutput,
  SchemaResult,
} from './contract/schema.ts'
export type {
  Contract,
  ResponseBodyOf,
  ResponseSchemas,
  Route,
  RouteInput,
  RouteReturned,
} from './contract/types.ts'
export { files, type FilesOptions } from './middleware/files.ts'
export { type Form, readForm } from './middleware/form.ts'
export {
  type FileInfo,
  type FormField,
  type FormFile,
  type FormLimits,
  type FormPart,
  formParts,
} from './middleware/form-parts.ts'
export { authenticate, type AuthenticateOptions } from './middleware/guards/authenticate.ts'
export { csrf, type CsrfOptions } from './middleware/guards/csrf.ts'
export { secureHeaders, type SecureHeaders } from './middleware/guards/secure-headers.ts'
export { bodyLimit } from './app/body-limit.ts'
export { compress, type CompressOptions } from './coding/compress.ts'
export type { Coding } from './coding/coding.ts'
export { decompress, type DecompressOptions } from './coding/decompress.ts'
export { withMiddleware, type Middleware, type Next, use } from './app/middleware.ts'
export { type RequestValue, requestValue } from './app/request-value.ts'
export { rateLimit, type RateLimitOptions } from './middleware/rate-limit.ts'
export { requestId, type RequestIdOptions } from './middleware/request-id.ts'
export {
  type JsonErrorsOptions,
  jsonErrors,
  StatusError,
  type StatusErrorOptions,
} from './app/status-error.ts'
export type { SessionCookie } from './middleware/sessions/cookie.ts'
export type { Session, SessionStore } from './middleware/sessions/session.ts'
export { getSession, sessions, type SessionsOptions } from './middleware/sessions/sessions.ts'
export { serverTiming } from './middleware/logs/server-timing.ts'
export { timeout } from './middleware/timeout.ts'
export { traceContext } from './middleware/trace-context.ts'
export { HttpError, type HttpCodes } from './errors.ts'
export type { Connection } from './fetch/connection.ts'
export { writeEarlyHints } from './fetch/early-hints.ts'
export { CorespunHeaders as Headers } from './fetch/headers.ts'
export type { InjectInput } from './app/inject.ts'
export type { NodeApp } from './listener/node-app.ts'
export { nodeHandler } from './listener/node-handler.ts'
export type { HttpLimits } from './message/limits.ts'
export type { HttpClosedEvent, HttpClosingEvent } from './message/closing.ts'
export type { HttpRefusal } from './message/refusals.ts'
export { CorespunResponse as Response } from './fetch/response.ts'
export { type Trailers, withTrailers } from './fetch/trailers.ts'
export type { Params } from './app/router.ts'
export { readiness, type ReadinessCheck } from './app/readiness.ts'
export type { ProxyOptions, TrustedProxies } from './message/proxies.ts'
export type {
  ResponseValue,
  Endpoint,
  FetchApp,
  Handler,
  HttpRequest,
  Json,
  MethodTable,
  Routes,
  WebSocketRoute,
} from './app/routes.ts'
export {
  type AllowedOrigins,
  ServerSocket,
  type UpgradeOptions,
  type WebSocketHandlers,
} from './websocket/socket.ts'
export type { JoinedRooms, SharedRooms } from './websocket/shared-rooms.ts'
export { publish, upgrade } from './websocket/upgrade.ts'
export { developmentTls, serve } from './serve.ts'
export { createApp, HttpServer, type InjectableApp, type ServerStats } from './server.ts'
export type { AppOptions, CloseOptions, ServeOptions } from './app/settings.ts'
export type { Certificate } from './message/core-interface.ts'
export type { PemSource, TlsCertificate, TlsOptions } from './message/tls-options.ts'

export type { ZoneServer, ZoneServerStats } from './cluster/cluster-server.ts'
export type { StallEvent } from './cluster/supervisor.ts'
export type { ZoneServeOptions } from './cluster/cluster-settings.ts'
