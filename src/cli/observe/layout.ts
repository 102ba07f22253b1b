/**
 * The tables of a process as lines of a terminal: what fits, and what is left out.
 *
 * Pure: a view, what is chosen and a size in, lines out. A line is never wider than the terminal.
 */
import type { RowAction, View, ViewTable } from '../../observe/internal.ts'

/** What whoever watches has chosen. */
export interface Choice {
  /** The table that is shown alone; `undefined`: all of them. */
  readonly table: string | undefined
  /** Its row. */
  readonly row: number
  /** Asked before something is done. */
  readonly question: RowAction | undefined
  /** What was done last, or went wrong. */
  readonly note: string
  readonly mayDrain: boolean
}

const GAP = '  '
/** Rows begin behind the key of their table. */
const INDENT = 2
/** Widths to which columns of text are cut before others are left out. */
const FIRST_MIN = 16
const TEXT_MIN = 10
/** Numbers change: their columns do not move each time. */
const NUMBER_MIN = 6
/** Rows of each table where nothing bounds them. */
const PRINTED_MAX = 20
const DETAILS_MAX = 4
/** A part that is not shown otherwise: the widths of columns would move with it. */
const [BOLD, REVERSE, DIM, PLAIN] = ['\u001B[1m', '\u001B[7m', '\u001B[2m', '\u001B[0m']

/** The screen of a terminal: `rows` lines at most. */
export function screenOf(view: View, choice: Choice, columns: number, rows: number): string[] {
  // A terminal may wrap a full line.
  const width = Math.max(1, columns - 1)
  const top = headOf(view, width)
  const body = Math.max(0, rows - top.length - 1)
  const chosen = view.tables.find(({ id }) => id === choice.table)
  const lines = chosen === undefined ? allOf(view, width, body) : oneOf(view, chosen, choice, width, body)
  while (lines.length < body) lines.push('')
  return [...top, ...lines.slice(0, body), footOf(view, chosen, choice, width)].slice(0, rows)
}

/** All tables, for who prints them once. */
export function printed(view: View, columns: number): string {
  const lines = headOf(view, columns)
  for (const [index, table] of view.tables.entries())
    lines.push('', ...tableLines(table, table.rows.slice(0, PRINTED_MAX).keys(), columns, index, undefined))
  const text = [BOLD, PLAIN].reduce((all, mark) => all.replaceAll(mark, ''), lines.join('\n'))
  return `${text.replaceAll(/ +$/gm, '')}\n`
}

function headOf({ title, facts, problems }: View, width: number): string[] {
  // The versions are the last fact, and need no room of the figures.
  const name = `${BOLD}${cut(`${title}, ${facts.at(-1)}`, width)}${PLAIN}`
  return [name, ...[facts.slice(0, -1).join(', '), ...problems].map((line) => cut(line, width))]
}

function footOf(view: View, chosen: ViewTable | undefined, choice: Choice, width: number): string {
  const { question, note, row, mayDrain } = choice
  if (question !== undefined) return `${BOLD}${cut(`${question.question} y/n`, width)}${PLAIN}`
  const act = chosen?.rows[row]?.act
  const keys = [
    'q quit',
    `1-${Math.min(9, view.tables.length)}, tab table`,
    ...(chosen === undefined ? [] : ['0 all', '↑↓ row']),
    ...(act === undefined ? [] : [`enter ${act.action}`]),
    ...(mayDrain ? ['d drain'] : []),
  ]
  return `${DIM}${cut(note === '' ? keys.join('  ') : note, width)}${PLAIN}`
}

/** All tables, each with at least a row as long as there is room. */
function allOf({ tables }: View, width: number, body: number): string[] {
  const shown = tables.map(() => 0)
  let left = body
  for (const [index] of tables.entries()) {
    if (left < 2) break
    shown[index] = 1
    left -= 2
  }
  for (let grown = true; grown && left > 0;) {
    grown = false
    for (const [index, { rows }] of tables.entries()) {
      if (left === 0 || shown[index] === 0 || shown[index] >= rows.length) continue
      shown[index] += 1
      left -= 1
      grown = true
    }
  }
  const parts = tables.map((table, index) =>
    shown[index] === 0
      ? []
      : tableLines(table, table.rows.slice(0, shown[index]).keys(), width, index, undefined),
  )
  const isSpacious = left >= tables.length
  return parts.flatMap((lines) => (isSpacious ? ['', ...lines] : lines))
}

/** One table, the rows around the chosen one, and its details. */
function oneOf(view: View, table: ViewTable, { row }: Choice, width: number, body: number): string[] {
  const { rows } = table
  const details = (rows[row]?.details ?? []).filter((line) => line !== '').slice(-DETAILS_MAX)
  const room = Math.max(1, body - 1 - (details.length > 0 ? details.length + 1 : 0))
  const first = Math.max(0, Math.min(row - Math.floor(room / 2), rows.length - room))
  const keys = [...rows.keys()].slice(first, first + room)
  const lines = tableLines(table, keys, width, view.tables.indexOf(table), row)
  if (details.length === 0) return lines
  return [...lines, '', ...details.map((line) => cut(line, width))]
}

function tableLines(
  { columns, rows, leftOut }: ViewTable,
  shown: Iterable<number>,
  width: number,
  index: number,
  chosen: number | undefined,
): string[] {
  const keys = [...shown]
  const total = rows.length + leftOut
  const some = keys.length < total ? ` ${keys.length} of ${total}` : ''
  const heads = columns.map((column) => column.trim())
  heads[0] += some
  const isNumber = columns.map((column) => column.startsWith(' '))
  const all = [heads, ...keys.map((key) => rows[key].cells)]
  const widths = fitted(all, isNumber, width - INDENT)
  const key = index < 9 ? `${index + 1} ` : '  '
  const lineOf = (cells: readonly string[]): string =>
    widths.map((each, column) => padded(cells[column], each, isNumber[column])).join(GAP)
  return all.map((cells, at) => {
    const line = cut((at === 0 ? key : ' '.repeat(INDENT)) + lineOf(cells), width)
    if (at === 0) return `${BOLD}${line}${PLAIN}`
    return keys[at - 1] === chosen ? `${REVERSE}${line}${PLAIN}` : line
  })
}

/** The widths of the columns that fit: texts are cut first, then the last columns are left out. */
function fitted(all: readonly (readonly string[])[], isNumber: readonly boolean[], width: number): number[] {
  const widths = isNumber.map((number, column) =>
    Math.max(number ? NUMBER_MIN : 0, ...all.map((cells) => widthOf(cells[column]))),
  )
  const least = widths.map((each, column) =>
    isNumber[column] ? each : Math.min(each, column === 0 ? FIRST_MIN : TEXT_MIN),
  )
  const sum = (of: readonly number[]): number =>
    of.reduce((total, each) => total + each, GAP.length * (of.length - 1))
  while (least.length > 1 && sum(least) > width) least.pop()
  widths.length = least.length
  while (sum(widths) > width) {
    const spare = widths.map((each, column) => each - least[column])
    const most = Math.max(...spare)
    if (most <= 0) break
    widths[spare.indexOf(most)] -= 1
  }
  return widths
}

function padded(text: string, width: number, isNumber: boolean): string {
  const short = cut(text, width)
  const space = ' '.repeat(Math.max(0, width - widthOf(short)))
  return isNumber ? space + short : short + space
}

/** The beginning of a text that is at most `width` columns wide; an ellipsis where something is missing. */
function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let [short, used] = ['', 0]
  for (const { segment } of graphemes.segment(text)) {
    used += widthOf(segment)
    if (used > width - 1) break
    short += segment
  }
  return `${short}…`
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })
/** What terminals draw over two columns, and what never is. */
const WIDE =
  /[\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\p{Emoji_Presentation}\u3000-\u303F\uFF00-\uFF60]/u
const NARROW = /^[\u0020-\u10FF\u2010-\u2BFF\uFFFD]*$/

function widthOf(text: string): number {
  if (NARROW.test(text) && !/\p{M}/u.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += WIDE.test(segment) ? 2 : 1
  return width
}
