/**
 * The messages between the threads of a zone's server.
 *
 * Commands and replies are sent on a channel named after the server; the job is part of the broadcasts that
 * make a worker serve. All of them are plain data.
 */
import type { ServeOptions } from '../app/settings.ts'
import type { AppSource } from './app-module.ts'

/** The key of the global symbol under which a broadcast stores invitations in a worker. */
export const INVITATIONS = 'corespun.http.invitations'

/** The first of such versions, or one that begins while the one before it serves. */
export type VersionOrder = 'first' | 'next'

/** The settings that all workers of a server share. */
export interface Job {
  /** Names the server in this process, and its channel. */
  readonly id: string
  readonly source: AppSource
  /** Options of `serve`; the module may contain others. */
  readonly settings: Partial<ServeOptions>
  /** Whether there are several workers. */
  readonly shares: boolean
  /** Whether it is a version of a program whose versions share their port; undefined: it is not. */
  readonly order: VersionOrder | undefined
  /** Option of `serve`; undefined: that of the module, or the default. */
  readonly handlerMsMax: number | undefined
}

/** How the first worker listens. */
export interface Listening {
  readonly url: string
  readonly port: number
  /** The port for the other workers; undefined: the socket was inherited. */
  readonly sharedPort: number | undefined
  readonly core: 'native' | 'node'
  readonly handlerMsMax: number
  /** Option of `serve`. */
  readonly quiet: boolean
}

export type Command =
  | { readonly kind: 'report' | 'announce' | 'follow' }
  | { readonly kind: 'stop'; readonly timeoutMs: number | undefined }
/** A reply to a command, or the report that a worker serves or cannot. */
export interface WorkerMessage {
  readonly kind: 'reported' | 'stopped' | 'serving' | 'failed'
  readonly worker: string
  /** Why the app's `close` failed, or why it cannot serve. */
  readonly failure?: string
}

export interface Invitation {
  readonly job: Job
  readonly memory: SharedArrayBuffer
  /** Its name. */
  readonly worker: string
}
