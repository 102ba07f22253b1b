/**
 * Skein: TypeScript on every core.
 *
 * Everything that has a module of its own (`skein/zone`, `skein/transport`) is there too.
 */
export { Arrow, ArrowError, type ArrowCodes, Either } from './arrow/index.ts'
/**
 * What arrows begin with (`arrow.lift`, ...), under one name: `test`, `id` and `fail` are everybody's words.
 */
export * as arrow from './arrow/index.ts'
export * from './fiber/index.ts'
export { createApp, HttpError, HttpServer, serve } from './http/index.ts'
export type { HttpCodes, HttpLimits, HttpRequest, Routes, ServerStats, ServeSettings } from './http/index.ts'
export * from './store/index.ts'
export * from './sync/index.ts'
export {
  FunctionError,
  TransportError,
  isTransportable,
  marshall,
  move,
  register,
  transportable,
  unmarshall,
} from './transport/index.ts'
export type { TransportCodes } from './transport/index.ts'
export * from './zone/index.ts'
