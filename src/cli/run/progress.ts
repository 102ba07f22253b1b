/**
 * One line on a terminal: how far, how fast, how long still.
 *
 * Redraws at a fixed interval from numbers that it reads, so it costs nothing per item. The rate is that of
 * the last seconds: the first ones (workers start, code is not yet optimized) predict little.
 */
import type { Writable } from 'node:stream'

export interface ProgressState {
  readonly doneCount: number
  readonly failedCount: number
  /** All items, when known. */
  readonly total: number | undefined
  /** How much of the input was read, from 0 to 1, when known. */
  readonly fraction: number | undefined
}

export type TerminalStream = Writable & { readonly columns?: number }

const REDRAW_MS = 100
/** Erases the line of the cursor, and returns to its start. */
const ERASE = '\r\u001B[2K'
const RATE_WINDOW_MS = 3000

interface Sample {
  readonly atMs: number
  readonly doneCount: number
}

/** The rate of the last seconds. */
export class Pace {
  readonly #samples: Sample[] = []

  note(nowMs: number, doneCount: number): void {
    this.#samples.push({ atMs: nowMs, doneCount })
    const oldestMs = nowMs - RATE_WINDOW_MS
    while (this.#samples.length > 2 && this.#samples[1].atMs <= oldestMs) this.#samples.shift()
  }

  /** Items per second; 0 if there are too few samples. */
  perSecond(): number {
    const first = this.#samples[0]
    const last = this.#samples.at(-1)
    if (first === undefined || last === undefined || last.atMs === first.atMs) return 0
    return ((last.doneCount - first.doneCount) * 1000) / (last.atMs - first.atMs)
  }
}

/**
 * The line for a state, at most `columns` wide.
 * @param perSecond The rate; 0 when unknown.
 */
export function progressLine(state: ProgressState, perSecond: number, columns: number): string {
  const fraction = fractionDone(state)
  const parts = [count(state.doneCount) + (state.total === undefined ? '' : `/${count(state.total)}`)]
  if (perSecond > 0) parts.push(`${rate(perSecond)}/s`)
  if (state.failedCount > 0) parts.push(`${count(state.failedCount)} failed`)
  const leftCount = itemsLeft(state, fraction)
  if (perSecond > 0 && leftCount !== undefined) parts.push(`${clock(leftCount / perSecond)} left`)
  const text = parts.join('  ')
  if (fraction === undefined) return text.slice(0, columns)
  const percent = `${Math.floor(fraction * 100)}%`.padStart(4)
  const barCells = Math.min(30, columns - text.length - percent.length - 4)
  const bar = barCells < 5 ? '' : `${'█'.repeat(Math.floor(fraction * barCells)).padEnd(barCells, '░')} `
  return `${bar}${percent}  ${text}`.slice(0, columns)
}

/** Seconds as `4s`, `3:07` or `2:03:09`. */
export function clock(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole}s`
  const pair = (value: number): string => String(value).padStart(2, '0')
  const minutes = Math.floor(whole / 60)
  if (minutes < 60) return `${minutes}:${pair(whole % 60)}`
  return `${Math.floor(minutes / 60)}:${pair(minutes % 60)}:${pair(whole % 60)}`
}

/** A progress line that is drawn until it is stopped. */
export class Progress {
  readonly #state: () => ProgressState
  readonly #stream: TerminalStream
  readonly #pace = new Pace()
  readonly #timer: NodeJS.Timeout
  /** What the terminal shows; '' when the line is hidden. */
  #shown = ''

  /** @param stream The terminal. @param state Asked before each redraw. */
  constructor(stream: TerminalStream, state: () => ProgressState) {
    this.#stream = stream
    this.#state = state
    this.#timer = setInterval(() => this.#draw(), REDRAW_MS)
    this.#timer.unref()
  }

  /** Take the line off the terminal for now: something else is about to be written there. */
  hide(): void {
    if (this.#shown !== '') this.#stream.write(ERASE)
    this.#shown = ''
  }

  /** Take the line off for good. */
  stop(): void {
    clearInterval(this.#timer)
    this.hide()
  }

  #draw(): void {
    const state = this.#state()
    this.#pace.note(performance.now(), state.doneCount)
    // One column free: a terminal may wrap a full line. Some terminals report 0 columns.
    const line = progressLine(state, this.#pace.perSecond(), (this.#stream.columns || 80) - 1)
    if (line !== this.#shown) this.#stream.write(ERASE + line)
    this.#shown = line
  }
}

function fractionDone(state: ProgressState): number | undefined {
  if (state.total === undefined) return state.fraction
  return state.total === 0 ? 1 : state.doneCount / state.total
}

function itemsLeft(state: ProgressState, fraction: number | undefined): number | undefined {
  if (state.total !== undefined) return state.total - state.doneCount
  // Too early: the first fraction may come from one large read.
  if (fraction === undefined || fraction < 0.02) return undefined
  return (state.doneCount / fraction) * (1 - fraction)
}

function count(value: number): string {
  return value.toLocaleString('en-US')
}

function rate(value: number): string {
  return value >= 10 ? count(Math.round(value)) : value.toFixed(1)
}
