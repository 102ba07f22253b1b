/**
 * What a host publishes on `node:diagnostics_channel`: its own end, and jobs that have failed for good.
 *
 * Rare events only; a channel without subscribers costs one property read. docs/guide/events.md lists them.
 */
import { channel } from 'node:diagnostics_channel'
import { thrownBy } from './frames.ts'

/** The message of `corespun:job:dead`: a host of this process has made a dead letter of a job. */
export interface JobDeadEvent {
  /** The name of the hosts whose job it was. */
  readonly zone: string
  /** As it was submitted. */
  readonly key: string
  /** The export; empty for a job that cannot be read. */
  readonly name: string
  /** Attempts that have failed. */
  readonly failures: number
  /** Hosts that were lost while they ran it. */
  readonly hostsLost: number
  /** The last error. */
  readonly error: unknown
}

/** The message of `corespun:fleet:closing`: a host accepts nothing more. */
export interface HostClosingEvent {
  /** Its name. */
  readonly zone: string
  /** Its id in the fleet. */
  readonly host: string
  /** Calls that run. */
  readonly calls: number
  /** Jobs that run. */
  readonly jobs: number
  /** How long it waits for them, ms. */
  readonly timeoutMs: number
}

/** The message of `corespun:fleet:closed`: the host has left the fleet. */
export interface HostClosedEvent {
  /** Its name. */
  readonly zone: string
  /** Its id in the fleet. */
  readonly host: string
  /** How long that took, ms. */
  readonly ms: number
}

const dead = channel('corespun:job:dead')
const closing = channel('corespun:fleet:closing')
const closed = channel('corespun:fleet:closed')

export const publish = {
  jobDead(event: Omit<JobDeadEvent, 'error'>, errors: readonly Uint8Array[]): void {
    // An error is read for those who listen alone.
    if (dead.hasSubscribers) dead.publish({ ...event, error: thrownBy(errors.at(-1)) } satisfies JobDeadEvent)
  },
  hostClosing(event: HostClosingEvent): void {
    if (closing.hasSubscribers) closing.publish(event)
  },
  hostClosed(event: HostClosedEvent): void {
    if (closed.hasSubscribers) closed.publish(event)
  },
}
