/**
 * A terminal that a command has for itself: it is drawn without flicker, and is afterwards as it was before.
 *
 * Nothing here decides what is drawn; keys are named and handed on.
 */
import type { CommandContext } from '../run/run.ts'

/** What the command uses of a terminal's output stream besides writing to it. */
interface Terminal {
  readonly columns?: number
  readonly rows?: number
  readonly writableNeedDrain?: boolean
  on(event: 'resize', listener: () => void): unknown
  off(event: 'resize', listener: () => void): unknown
}

interface Keyboard {
  setRawMode?(raw: boolean): unknown
}

const KEYS: Readonly<Record<string, string>> = {
  '\u0003': 'quit',
  q: 'quit',
  '\t': 'next',
  '\u001B[Z': 'previous',
  '\u001B[C': 'next',
  '\u001B[D': 'previous',
  '\u001B[A': 'up',
  '\u001B[B': 'down',
  k: 'up',
  j: 'down',
  '\u001B[5~': 'page up',
  '\u001B[6~': 'page down',
  '\r': 'enter',
  '\n': 'enter',
}
// oxlint-disable-next-line no-control-regex -- keys are such sequences
const KEY = /\u001B\[[\d;]*[A-Za-z~]|[^]/gu

/** The second screen without a cursor; and back. */
const OPEN = '\u001B[?1049h\u001B[?25l'
const CLOSE = '\u001B[?25h\u001B[?1049l'
/** Terminals that can, show what is between these at once. */
const [BEGIN, END] = ['\u001B[?2026h\u001B[H', '\u001B[J\u001B[?2026l']
const CLEAR_LINE = '\u001B[K'

export class Screen {
  readonly #out: CommandContext['stdout'] & Terminal
  readonly #in: CommandContext['stdin'] & Keyboard
  readonly #resized: () => void
  readonly #typed: (keys: string) => void
  #shown = ''

  /** @param pressed Receives each key by its name, others as they are. @param resized Draws anew. */
  constructor({ stdout, stdin }: CommandContext, pressed: (key: string) => void, resized: () => void) {
    this.#out = stdout
    this.#in = stdin
    this.#typed = (text) => {
      for (const [key] of text.matchAll(KEY)) pressed(KEYS[key] ?? key)
    }
    this.#resized = () => {
      this.#shown = ''
      resized()
    }
  }

  /** Columns and rows; some terminals report 0. */
  get size(): readonly [columns: number, rows: number] {
    return [this.#out.columns || 80, this.#out.rows || 24]
  }

  open(): void {
    this.#out.write(OPEN)
    this.#out.on('resize', this.#resized)
    process.on('exit', this.#restore)
    if (this.#in.isTTY !== true) return
    this.#in.setRawMode?.(true)
    this.#in.setEncoding('utf8').on('data', this.#typed).resume()
  }

  close(): void {
    process.off('exit', this.#restore)
    this.#out.off('resize', this.#resized)
    this.#in.off('data', this.#typed).pause()
    this.#restore()
  }

  readonly #restore = (): void => {
    if (this.#in.isTTY === true) this.#in.setRawMode?.(false)
    this.#out.write(CLOSE)
  }

  /** Show these lines. While the terminal takes nothing, frames are left out. */
  draw(lines: readonly string[]): void {
    const text = lines.map((line) => line + CLEAR_LINE).join('\r\n')
    if (text === this.#shown || this.#out.writableNeedDrain === true) return
    this.#shown = text
    this.#out.write(BEGIN + text + END)
  }
}
