/**
 * Every door of the package in one file, so that a compiler reads all of its types.
 * Compiled with library checks on, never run.
 */
export type * as all from 'skein'
export type * as arrow from 'skein/arrow'
export type * as fiber from 'skein/fiber'
export type * as http from 'skein/http'
export type * as store from 'skein/store'
export type * as sync from 'skein/sync'
export type * as transport from 'skein/transport'
export type * as zone from 'skein/zone'
