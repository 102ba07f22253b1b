/**
 * What a host replies to whoever asks who there is, and that question.
 *
 * It is read as it comes from another machine, and what is not whole is left out.
 */
import type { Messages } from './engine/engine.ts'
import { PRESENCE, isCount, readParts, written } from './wire.ts'

/** One host of a fleet. */
export interface FleetHostInfo {
  /** Unique. */
  readonly id: string
  /** What it hosts. */
  readonly zone: string
  /** The version of its module. */
  readonly version: string
  /** The name of its machine. */
  readonly machine: string
  /** The number of its process. */
  readonly pid: number
  /** How long it has been a host, in ms. */
  readonly upMs: number
  /** Calls that run. */
  readonly inFlight: number
  /** Most calls that it accepts. */
  readonly inFlightMax: number
  /** Durable jobs that run. */
  readonly jobsRunning: number
  /** 0: it takes none. */
  readonly jobsMax: number
  /** It finishes what runs, and takes nothing more. */
  readonly isLeaving: boolean
}

/** Most hosts that are listed. */
const HOSTS_MAX = 10_000
const TEXTS = ['id', 'zone', 'version', 'machine'] as const
const NUMBERS = ['pid', 'upMs', 'inFlight', 'inFlightMax', 'jobsRunning', 'jobsMax'] as const

export const presence = (info: FleetHostInfo): Uint8Array => written('host', info)

/** `undefined`: it is not whole. */
export function readPresence(bytes: Uint8Array): FleetHostInfo | undefined {
  const [kind, given] = readParts(bytes) ?? []
  const info = Object(given) as FleetHostInfo
  const isText = (text: unknown): boolean => typeof text === 'string' && /^[^\p{C}]{1,255}$/u.test(text)
  const isWhole =
    kind === 'host' &&
    TEXTS.every((name) => isText(info[name])) &&
    NUMBERS.every((name) => isCount(info[name])) &&
    typeof info.isLeaving === 'boolean'
  return isWhole ? info : undefined
}

/** Those that reply in time, sorted; `undefined` when nothing replies, not even that nobody is there. */
export function hostsOf(messages: Messages, waitMs: number): Promise<FleetHostInfo[] | undefined> {
  return new Promise((resolve) => {
    const found = new Map<string, FleetHostInfo>()
    const done = (isNobody: boolean): void => {
      stop()
      end()
      if (found.size === 0 && !isNobody) return resolve(undefined)
      const keyOf = ({ zone, machine, id }: FleetHostInfo): string => `${zone} ${machine} ${id}`
      resolve([...found.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)))
    }
    const end = messages.ask(PRESENCE, written('who'), (reply) => {
      if (reply === undefined) return done(true)
      const info = readPresence(reply)
      if (info !== undefined && found.size < HOSTS_MAX) found.set(info.id, info)
    })
    const stop = messages.clock.after(waitMs, () => done(false))
  })
}
