/**
 * `corespun/fleet`: the same calls on other machines, over NATS, or in memory until there is a server.
 *
 * `connect(address)` returns a fleet; `host(fleet, options)` offers a module to it; `fleet.zone(name)` calls
 * one. Code is deployed to hosts and never sent.
 */
export { type Fleet, connect } from './connect.ts'
export { FleetError, type FleetCodes } from './errors.ts'
export { type FleetHost, type HostOptions, host } from './host/host.ts'
export { versionOf } from './host/version.ts'
export type {
  ConnectOptions,
  FarMapOptions,
  FarOptions,
  FarStreamOptions,
  FarZoneOptions,
} from './settings.ts'
export type { ExportArgs, ExportItem, ExportItems, FarZone } from './zone/far-zone.ts'
export type { FarStream } from './zone/far-stream.ts'
