/**
 * `skein/http`: an HTTP/1.1 server with routes, for any web-standard app, on a native core or on node:http.
 *
 * docs/guide/http.md says how it is used, docs/design/http-app.md how it works and what is promised.
 */
export type { ErrorHandler, ErrorMessage } from './app.ts'
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
export {
  createApp,
  HttpServer,
  type InjectableApp,
  serve,
  type ServerStats,
  type StopOptions,
} from './serve.ts'
export type { AppSettings, ServeSettings } from './settings.ts'
