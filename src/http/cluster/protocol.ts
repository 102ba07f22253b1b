/**
 * What the threads of a zone's server say to each other.
 *
 * Orders and words travel on a channel named after the server; the job comes with the broadcasts that make a
 * worker serve. All of it is data.
 */
import type { ServeOptions } from '../settings.ts'
import type { AppSource } from './app-module.ts'

/** Where a broadcast leaves invitations in a worker: the key of a global symbol. */
export const INVITATIONS = 'corespun.http.invitations'

/** What all workers of a server share. */
export interface Job {
  /** Names the server in this process, and its channel. */
  readonly id: string
  /** Where the app is found. */
  readonly source: AppSource
  /** What `serve` was given besides; what is missing the module may say. */
  readonly settings: Partial<ServeOptions>
  /** Whether there is more than one worker. */
  readonly shares: boolean
  /** What `serve` was given; undefined: the module may say. */
  readonly handlerMsMax: number | undefined
}

/** Where it listens. */
export interface Place {
  readonly url: string
  readonly port: number
  readonly core: 'native' | 'node'
  readonly handlerMsMax: number
}

/** What the server says to its workers. */
export type Order =
  { readonly kind: 'report' } | { readonly kind: 'stop'; readonly drainMs: number | undefined }
/** What a worker says when it has done so, or that it cannot serve. */
export interface Word {
  readonly kind: 'reported' | 'stopped' | 'failed'
  readonly worker: string
  /** Why the app's `close` failed, or why it cannot serve. */
  readonly failure?: string
}

/** What a worker needs to serve. */
export interface Invitation {
  readonly job: Job
  readonly memory: SharedArrayBuffer
  /** Its name. */
  readonly worker: string
}
