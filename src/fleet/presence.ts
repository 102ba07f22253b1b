/**
 * What a host replies to whoever asks who there is.
 *
 * It is read as it comes from another machine, and what is not whole is left out.
 */
import { isCount, readParts, written } from './wire.ts'

/** One host of a fleet. */
export interface FleetHostInfo {
  /** Unique. */
  readonly id: string
  /** What it hosts. */
  readonly zone: string
  /** Of its module. */
  readonly version: string
  /** The name of its machine. */
  readonly machine: string
  /** Of its process. */
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
