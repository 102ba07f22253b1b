/**
 * What is kept of a run: its head, the records of its journal, and the signals that wait for it.
 *
 * The head is a value with a revision, so of all who write the end of a run exactly one does: that is why it
 * has one result. A record of the journal is written once, under the number that follows the one before:
 * of two who hold a run one alone can write it. Values of users are inside as they are kept (values.ts), and
 * are read when they are needed.
 *
 * A head and a record are JSON, which any tool reads in the rows of an engine. One that has a large frame is
 * a frame, which begins with another byte.
 */
import type { JobLimit, Rank } from '../fleet/internal.ts'
import { decode, encode } from '../transport/index.ts'
import { type Kept, NO_TEXT, bytesIn, isJson } from './values.ts'

/** How far a run is. */
export type RunStatus = 'running' | 'waiting' | 'diverged' | 'cancelling' | 'done' | 'failed' | 'cancelled'

/** Who has started a run: the run, and the signal by which it waits for its end. */
export interface Parent {
  readonly name: string
  readonly key: string
  readonly signal: string
}

export interface Head {
  /** The keys of its steps begin with it, behind the name of its definition. */
  readonly id: string
  /** What ids and random numbers follow from: the id of the run that it is a copy of. Absent: its own. */
  readonly seed?: string | undefined
  /** The name of its journal, of one that was run again. Absent: its id. */
  readonly journal?: string | undefined
  /** The journal before that, which is to be deleted. */
  readonly before?: string | undefined
  /** A journal that is being written: by `again()`, or, if it is its own, by the `fork()` that makes it. */
  readonly next?: string | undefined
  /** The headers of the trace in which it was started. */
  readonly trace?: object | undefined
  /** Absent: it was started from outside. */
  readonly parent?: Parent
  /**
   * The revision of the head that this one replaces, of one that is run again; 0 of the item of one that was
   * woken, which begins nothing.
   */
  readonly over?: number
  readonly status: RunStatus
  /** Which process has taken it last, or which call has ended it: of two that write the same, one has. */
  readonly by?: string
  /** Absent when it has ended, and there was no room for it beside its result. */
  readonly input: Kept | undefined
  readonly startedMs: number
  /** 0: it has not ended. */
  readonly endedMs: number
  /** Of one that waits outside of memory: until when, in ms since 1970, and for which signals. */
  readonly dueMs: number
  readonly awaits: readonly string[]
  /** How long it is kept when it has ended, in ms. Absent: until `forget()`. */
  readonly ttlMs?: number
  /** Of its items. Absent: 1. */
  readonly rank?: Rank
  /** How many of those with its `per` processes may have at once. */
  readonly limit?: JobLimit
  /** Of an item: the turn that was called, of one that has waited for its limit. */
  readonly turn?: number
  /** How many its journal has at least, of one that has ended and is kept for a time. */
  readonly records?: number
  /** That of the process which has begun its journal; absent: that had none. */
  readonly release?: string | undefined
  /** When it was cancelled, of one whose finalizers run or will, and by which call. */
  readonly cancelMs?: number
  readonly cancelBy?: string | undefined
  /** What it has returned, or the error with which it has failed or diverged. */
  readonly frame: Kept | undefined
}

/**
 * - `done`, `error`: how a step, a pause or a wait for a signal has ended.
 * - `failed`: an attempt of a step has failed, and another follows at `dueMs`.
 * - `begun`: a pause or a wait for a signal ends at `dueMs`.
 * - `left`: the fiber that waited for it was interrupted.
 * - `held`: a process has taken the run after another.
 * - `still`: the process that has it had not written for a while, and has it still.
 * - `cancel`: its fiber is interrupted here.
 */
export type EntryKind = 'done' | 'error' | 'failed' | 'begun' | 'left' | 'held' | 'still' | 'cancel'

/** An entry of the journal; a record has several that were written at once. */
export interface JournalEntry {
  readonly kind: EntryKind
  /** Where the code asked, what for, and which time there: see context.ts. */
  readonly key: string
  readonly atMs: number
  /** When the attempt of a step began whose end it is. */
  readonly begunMs?: number
  readonly frame?: Kept | undefined
  readonly dueMs?: number
  /** The id of the signal that was received, and its name, when that is not in the key. */
  readonly signal?: string
  readonly sent?: string
}

/** A signal that waits for its run. */
export interface Signal {
  readonly id: string
  readonly name: string
  readonly frame: Kept
}

const ENDS: ReadonlySet<unknown> = new Set(['done', 'failed', 'cancelled'])

/** Nothing but `again()` changes it any more. */
export const hasEnded = ({ status }: Pick<Head, 'status'>): boolean => ENDS.has(status)

/** How long another call is waited for that writes a journal; behind that it has died. */
export const NEXT_MS_MAX = 10_000

/** Whether `fork()` still writes it: it is `cancelled` if that dies. */
export const isBeingCopied = ({ id, next, startedMs }: Head, nowMs: number): boolean =>
  next === id && nowMs - startedMs < NEXT_MS_MAX

/** The name of the journal of a run. */
export const journalIn = ({ id, journal }: Pick<Head, 'id' | 'journal'>): string => journal ?? id

/** The input of a run that has ended, if there is room for it beside its end: so it can be run again. */
export const inputBeside = (
  { input }: Pick<Head, 'input'>,
  frame: Kept,
  messageBytesMax: number,
): Kept | undefined => {
  const bytes = bytesIn(frame) + (input === undefined ? 0 : bytesIn(input))
  return bytes <= messageBytesMax - RECORD_BYTES ? input : undefined
}

/** What of a message belongs to a head, a record or a box, and not to the frames inside. */
export const RECORD_BYTES = 16_384

export const headsName = (name: string): string => `runs_${name}`
export const journalName = (name: string): string => `run_steps_${name}`
export const exposedName = (name: string): string => `run_exposed_${name}`
export const holdersName = (name: string): string => `run_holders_${name}`
export const releasesName = (name: string): string => `run_releases_${name}`
export const limitsName = (name: string): string => `run_limits_${name}`
export const boxesName = (name: string): string => `run_signals_${name}`

/** Of all that is kept here: what has another is of another version of the package, and is not read. */
const FORMAT = 1

/** Frames of more bytes are not written as base64 in JSON. */
const FRAMES_BYTES_MAX = 4096

export function writeHead(head: Head): Uint8Array {
  const { input, frame, dueMs, ...fields } = head
  if (!mayBeJson([input, frame], head.trace)) return encode(['run', FORMAT, head])
  const more = { ...(dueMs < Infinity && { dueMs }), ...(input === undefined && { hasInput: false }) }
  const shown = inner({ ...fields, ...more })
  if (NO_TEXT.test(shown)) return encode(['run', FORMAT, head])
  const parts = [shown, ...partOf('input', input), ...partOf('value', frame)]
  return encoder.encode(`{"run":${FORMAT},${parts.join(',')}}`)
}

export function readHead(bytes: Uint8Array): Head {
  if (bytes[0] !== OPEN) return partsOf(bytes, 'run')[0] as Head
  const {
    run,
    input,
    value,
    inputFrame,
    valueFrame,
    hasInput = true,
    dueMs = Infinity,
    ...fields
  } = jsonOf(bytes)
  checkFormat(run)
  const kept = hasInput ? (keptIn(input, inputFrame) ?? '') : undefined
  return {
    ...(fields as unknown as Head),
    dueMs: dueMs as number,
    input: kept,
    frame: keptIn(value, valueFrame),
  }
}

export function writeRecord(writer: string, entries: readonly JournalEntry[]): Uint8Array {
  const shown = entries.map(({ frame: _, ...fields }) => inner(fields))
  if (!mayBeJson(entries.map(({ frame }) => frame)) || shown.some((text) => NO_TEXT.test(text)))
    return encode(['steps', FORMAT, writer, entries])
  const steps = entries.map(({ frame }, index) => `{${[shown[index], ...partOf('value', frame)].join(',')}}`)
  return encoder.encode(`{"format":${FORMAT},"writer":"${writer}","steps":[${steps.join(',')}]}`)
}

/** Who has written a record, and what is in it. @throws {Error} For bytes that are not one. */
export function readRecord(bytes: Uint8Array): {
  readonly writer: string
  readonly entries: readonly JournalEntry[]
} {
  if (bytes[0] === OPEN) {
    const { format, writer, steps } = jsonOf(bytes)
    checkFormat(format)
    if (!Array.isArray(steps)) throw new TypeError('it has no steps')
    const entries = steps.map(({ value, valueFrame, ...fields }: Fields): JournalEntry => {
      const frame = keptIn(value, valueFrame)
      return { ...(fields as unknown as JournalEntry), ...(frame !== undefined && { frame }) }
    })
    return { writer: writer as string, entries }
  }
  const [writer, entries] = partsOf(bytes, 'steps') as [string, readonly JournalEntry[]]
  if (!Array.isArray(entries)) throw new TypeError('it has no steps')
  return { writer, entries }
}

type Fields = Readonly<Record<string, unknown>>

/** The byte that JSON begins with, and no frame. */
const OPEN = 0x7b

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const jsonOf = (bytes: Uint8Array): Fields => JSON.parse(decoder.decode(bytes)) as Fields
const inner = (fields: object): string => JSON.stringify(fields).slice(1, -1)

function mayBeJson(kept: readonly (Kept | undefined)[], trace?: object): boolean {
  let bytes = 0
  for (const each of kept) if (typeof each === 'object') bytes += each.length
  return bytes <= FRAMES_BYTES_MAX && (trace === undefined || isJson(trace))
}

function partOf(name: string, kept: Kept | undefined): string[] {
  if (kept === undefined || kept === '') return []
  return typeof kept === 'string'
    ? [`"${name}":${kept}`]
    : [`"${name}Frame":"${Buffer.from(kept).toString('base64')}"`]
}

function keptIn(value: unknown, frame: unknown): Kept | undefined {
  if (typeof frame === 'string') return new Uint8Array(Buffer.from(frame, 'base64'))
  return value === undefined ? undefined : JSON.stringify(value)
}

export const writeBox = (signals: readonly Signal[]): Uint8Array => encode(['signals', FORMAT, signals])
export const readBox = (bytes: Uint8Array | undefined): readonly Signal[] =>
  bytes === undefined ? [] : (partsOf(bytes, 'signals')[0] as readonly Signal[])

function partsOf(bytes: Uint8Array, kind: string): unknown[] {
  const parts: unknown = decode(bytes)
  if (!Array.isArray(parts) || parts[0] !== kind) throw new TypeError(`it is not a frame of "${kind}"`)
  const [, format, ...rest] = parts as unknown[]
  checkFormat(format)
  return rest
}

function checkFormat(format: unknown): void {
  if (format !== FORMAT)
    throw new TypeError(`its format is ${String(format)}, and this version of corespun has ${FORMAT}`)
}
