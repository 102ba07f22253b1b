/**
 * Every door of the package in one file, so that a compiler reads all of its types.
 * Compiled with library checks on, never run.
 */
export type * as all from 'corespun'
export type * as arrow from 'corespun/arrow'
export type * as fiber from 'corespun/fiber'
export type * as http from 'corespun/http'
export type * as store from 'corespun/store'
export type * as sync from 'corespun/sync'
export type * as transport from 'corespun/transport'
export type * as zone from 'corespun/zone'
