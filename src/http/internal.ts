/**
 * How an app is loaded from a module, the line of a server that listens, and `serve` for the root of the
 * package, without what it loads on demand.
 *
 * For the other folders of this package; not part of its API.
 */
export { HttpError, statusOf } from './errors.ts'
export type { Hub, MemberRooms } from './message/hub.ts'
export type { Grant, Wire, WireEvents } from './message/wire.ts'
export { wrong } from './message/limits.ts'
export { developmentTls, serve, serveVersion } from './serve.ts'
export type { VersionOrder } from './cluster/protocol.ts'
export { servingLine } from './serving-line.ts'
export { loadApp, type ModuleApp } from './cluster/app-module.ts'

/** What servers of a run of `corespun/test` are made of; loaded with the first run, file by file. */
export const served = async () => {
  const { HttpError } = await import('./errors.ts')
  const { appOf } = await import('./server.ts')
  const { checkRoom, payloadOf } = await import('./websocket/message.ts')
  const { MemberRooms } = await import('./message/hub.ts')
  return { HttpError, MemberRooms, appOf, checkRoom, payloadOf }
}
