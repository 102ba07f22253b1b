/**
 * The page of the dashboard: a document with its style, and a script that draws the tables of view.ts.
 *
 * The script is the source of functions, those of view.ts and those here, which therefore use nothing but
 * each other, their arguments and the language. Whatever comes from the process becomes text, never markup;
 * the policy allows this script and this style by their hashes, and requests to this server alone.
 */
/* c8 ignore start: a browser runs it, in test/browser */
import type { Snapshot } from '../figures/snapshot.ts'
import { type RowAction, VIEW_FUNCTIONS, type ViewRow, type ViewTable, viewOf } from '../figures/view.ts'
import { STYLE } from './style.ts'

/** What the script uses of a browser. */
interface Element {
  textContent: string | null
  className: string
  hidden: boolean
  type: string
  id: string
  readonly style: { marginLeft: string; width: string }
  readonly children: ArrayLike<Element>
  append(...children: Element[]): void
  remove(): void
  setAttribute(name: string, value: string): void
  addEventListener(event: string, listener: () => void): void
  scrollIntoView(): void
}

interface Window {
  readonly document: {
    title: string
    readonly hidden: boolean
    createElement(name: string): Element
    getElementById(id: string): Element | null
    addEventListener(event: string, listener: () => void): void
  }
  readonly location: { readonly origin: string; readonly pathname: string; readonly search: string }
  confirm(question: string): boolean
}

/** What the page shows, and remembers. */
interface Shown {
  readonly window: Window
  /** Passed, since in a bundle it may have another name here. */
  readonly viewOf: typeof viewOf
  before: Snapshot | undefined
  now: Snapshot | undefined
  /** What became of a button, and until when that is shown. */
  note: string
  noteUntilMs: number
  /** The definition whose runs are shown, or the run whose steps are. */
  open: Readonly<Record<string, string>>
  /** Tables that are shown whole. */
  readonly whole: Set<string>
}

/** Ask for a snapshot each second, as long as somebody looks. */
function begin(window: Window, draws: Shown['viewOf']): void {
  const { document } = window
  const figures = { before: undefined, now: undefined, open: {}, whole: new Set<string>() }
  const shown: Shown = { window, viewOf: draws, ...figures, note: '', noteUntilMs: 0 }
  let timer: ReturnType<typeof setTimeout> | undefined
  let isAsking = false
  const look = async (): Promise<void> => {
    if (isAsking) return
    isAsking = true
    clearTimeout(timer)
    try {
      await renew(shown)
    } catch (error) {
      stateOf(window, `No figures: ${textOfError(error)}. What is shown is from before.`)
    }
    isAsking = false
    if (!document.hidden) timer = setTimeout(() => void look(), 1000)
  }
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void look()
  })
  void look()
}

async function renew(shown: Shown): Promise<void> {
  const { name, key } = shown.open
  const parts = ['snapshot']
  if (name !== undefined) parts.push(`runs=${encodeURIComponent(name)}`)
  if (key !== undefined) parts.push(`run=${encodeURIComponent(key)}`)
  const url = urlOf(shown.window, parts.join('&'))
  const response = await fetch(url, { cache: 'no-store', signal: AbortSignal.timeout(10_000) })
  if (!response.ok) throw new Error(`status ${response.status}`)
  const now = (await jsonOf(response)) as Snapshot
  shown.before = shown.now
  shown.now = now
  stateOf(shown.window, Date.now() < shown.noteUntilMs ? shown.note : '')
  draw(shown)
}

/**
 * The URL of the page, with its query, which may have a token, and with more parameters. Credentials of
 * the page's own URL are not in it: fetch refuses those, and browsers send them anyway.
 */
function urlOf({ location: { origin, pathname, search } }: Window, parameter?: string): string {
  const more = parameter === undefined ? '' : (search === '' ? '?' : '&') + parameter
  return origin + pathname + search + more
}

/** What the dashboard has responded; what is before it, such as a login, responds with something else. */
function jsonOf(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? ''
  if (type.startsWith('application/json')) return response.json()
  throw new Error(`the response is not JSON but ${type} (status ${response.status}); log in again?`)
}

function stateOf({ document }: Window, text: string): void {
  const state = document.getElementById('state')!
  if (state.textContent !== text) state.textContent = text
}

function textOfError(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function draw(shown: Shown): void {
  if (shown.now === undefined) return
  const { document } = shown.window
  const { title, facts, problems, tables } = shown.viewOf(shown.now, shown.before)
  const main = document.getElementById('tables')!
  document.title = title
  put(document.getElementById('title')!, title)
  fill(shown, document.getElementById('facts')!, facts)
  fill(shown, document.getElementById('problems')!, problems)
  for (const section of Array.from(main.children))
    section.hidden = !tables.some(({ id }) => `table-${id}` === section.id)
  for (const table of tables) drawTable(shown, main, table)
}

function put(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/** A list of texts. */
function fill({ window }: Shown, list: Element, texts: readonly string[]): void {
  while (list.children.length > texts.length) list.children[list.children.length - 1].remove()
  while (list.children.length < texts.length) list.append(window.document.createElement('li'))
  for (const [index, text] of texts.entries()) put(list.children[index], text)
}

function drawTable(shown: Shown, main: Element, table: ViewTable): void {
  const { document } = shown.window
  const { id, columns, rows, leftOut } = table
  const section = document.getElementById(`table-${id}`) ?? madeTable(shown, main, table)
  const [head, scroll, more] = Array.from(section.children)
  const [thead, tbody] = Array.from(scroll.children[0].children)
  const total = rows.length + leftOut
  put(head.children[0], titleOf(id))
  put(head.children[1], total > 1 ? String(total) : '')
  const isWhole = shown.whole.has(id)
  const visible = isWhole ? rows : rows.slice(0, 15)
  const hasActs = rows.some(({ act }) => act !== undefined)
  thead.children[0].children[columns.length].hidden = !hasActs
  while (tbody.children.length > visible.length) tbody.children[tbody.children.length - 1].remove()
  while (tbody.children.length < visible.length) tbody.append(madeRow(shown, table, tbody.children.length))
  for (const [index, row] of visible.entries()) drawRow(shown, tbody.children[index], row, hasActs)
  more.hidden = rows.length <= 15
  put(more, isWhole ? 'Show 15' : `Show ${rows.length === total ? 'all' : 'the first'} ${rows.length}`)
}

function titleOf(id: string): string {
  const titles: Readonly<Record<string, string>> = {
    running: 'What runs',
    zones: 'Zones',
    tenants: 'Tenants that wait',
    functions: 'Functions',
    routes: 'Routes',
    slow: 'Slow tasks and requests',
    queues: 'Queues of jobs',
    runs: 'Durable runs',
    listed: 'Runs',
    steps: 'A run and its steps',
    ended: 'Jobs and runs that have ended',
    dead: 'Dead jobs',
    hosts: 'Hosts',
    stages: 'Stages of arrows',
    stores: 'Stores',
    locks: 'Locks',
    threads: 'Threads',
    refusals: 'Refused',
    ends: 'Workers that have ended',
  }
  return titles[id] ?? id
}

/** An empty table: its head, a part that scrolls, a button for more rows. */
function madeTable(shown: Shown, main: Element, { id, columns }: ViewTable): Element {
  const { document } = shown.window
  const made = (name: string, ...children: Element[]): Element => {
    const element = document.createElement(name)
    element.append(...children)
    return element
  }
  const section = made('section')
  section.id = `table-${id}`
  const heads = [...columns, ' '].map((column) => {
    const cell = made('th')
    cell.textContent = column.trim()
    cell.className = column.startsWith(' ') ? 'number' : ''
    cell.setAttribute('scope', 'col')
    return cell
  })
  const title = made('h2')
  title.id = `title-${id}`
  const scroll = made('div', made('table', made('thead', made('tr', ...heads)), made('tbody')))
  scroll.className = 'scroll'
  // What scrolls must be reached by keys.
  scroll.setAttribute('tabindex', '0')
  scroll.setAttribute('role', 'region')
  scroll.setAttribute('aria-labelledby', title.id)
  const more = made('button')
  more.type = 'button'
  more.addEventListener('click', () => {
    if (!shown.whole.delete(id)) shown.whole.add(id)
    draw(shown)
  })
  const head = made('header', title, made('span'))
  section.append(head, scroll, more)
  main.append(section)
  return section
}

/** An empty row; the details of the first cell open. */
function madeRow(shown: Shown, { id, columns }: ViewTable, index: number): Element {
  const { document } = shown.window
  const row = document.createElement('tr')
  for (const [column, name] of [...columns, ''].entries()) {
    const cell = document.createElement('td')
    cell.className = name.startsWith(' ') ? 'number' : 'text'
    if (column === 0) {
      const details = document.createElement('details')
      const list = document.createElement('ul')
      const name = document.createElement('span')
      details.append(document.createElement('summary'), list)
      cell.append(details, name)
    }
    if (column === columns.length) {
      const button = document.createElement('button')
      button.type = 'button'
      button.addEventListener('click', () => {
        const { tables } = shown.viewOf(shown.now!, shown.before)
        const act = tables.find((table) => table.id === id)?.rows[index]?.act
        if (act !== undefined) void perform(shown, act)
      })
      cell.append(button)
    }
    row.append(cell)
  }
  return row
}

function drawRow(shown: Shown, element: Element, row: ViewRow, hasActs: boolean): void {
  const [first, ...cells] = Array.from(element.children)
  const [details, plain] = Array.from(first.children)
  const lines = (row.details ?? []).filter((line) => line !== '')
  details.hidden = lines.length === 0
  plain.hidden = lines.length > 0
  put(lines.length > 0 ? details.children[0] : plain, row.cells[0])
  fill(shown, details.children[1], lines)
  for (const [index, text] of row.cells.slice(1).entries()) put(cells[index], text)
  if (row.span !== undefined) drawBar(shown, cells[row.cells.length - 2], row.span, row.cells[1])
  const last = cells[cells.length - 1]
  last.hidden = !hasActs
  last.children[0].hidden = row.act === undefined
  put(last.children[0], row.act?.action ?? '')
}

/** A bar that begins and ends at these shares of its cell. */
function drawBar({ window }: Shown, cell: Element, [from, to]: readonly number[], state: string): void {
  if (cell.children.length === 0) cell.append(window.document.createElement('div'))
  const bar = cell.children[0]
  bar.className = `bar ${state}`
  bar.style.marginLeft = `${(from * 100).toFixed(2)}%`
  bar.style.width = `${((to - from) * 100).toFixed(2)}%`
}

/** Do what a button is for, once somebody has agreed. */
async function perform(shown: Shown, { action, params, question }: RowAction): Promise<void> {
  const { window } = shown
  if (question === '') {
    shown.open = params
    await renew(shown).catch(() => {}) // the next look reports it
    const id = params['key'] === undefined ? 'table-listed' : 'table-steps'
    window.document.getElementById(id)?.scrollIntoView()
    return
  }
  // Written as a sentence.
  if (!window.confirm(question[0].toUpperCase() + question.slice(1))) return
  try {
    const response = await fetch(urlOf(window), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ action, ...params }),
    })
    const { done, error } = (await jsonOf(response)) as { done?: boolean; error?: string }
    // Middleware may refuse it with JSON of its own.
    if (!response.ok) shown.note = `Not done: ${error ?? `status ${response.status}`}`
    else shown.note = done === true ? `Done: ${params['key']}` : `There is no dead job ${params['key']}.`
  } catch (error) {
    shown.note = `No answer: ${textOfError(error)}`
  }
  shown.noteUntilMs = Date.now() + 5000
  stateOf(window, shown.note)
  await renew(shown).catch(() => {}) // the next look reports it
}

const PAGE_FUNCTIONS: readonly ((...args: never[]) => unknown)[] = [
  begin,
  renew,
  urlOf,
  jsonOf,
  stateOf,
  textOfError,
  draw,
  put,
  fill,
  drawTable,
  titleOf,
  madeTable,
  madeRow,
  drawRow,
  drawBar,
  perform,
]

/** A document, and what a browser may load for it. */
export interface Page {
  readonly html: string
  readonly policy: string
}

let page: Promise<Page> | undefined

export function pageOf(): Promise<Page> {
  return (page ??= made())
}

async function made(): Promise<Page> {
  const { createHash } = await import('node:crypto')
  const sources = [...VIEW_FUNCTIONS, ...PAGE_FUNCTIONS].map(String).join('\n')
  // A bundler of the program may have marked names.
  const call = `${begin.name}(window, ${viewOf.name})`
  const script = `(() => {\nconst __name = (named) => named\n${sources}\n${call}\n})()`
  const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Corespun</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<header>
<h1 id="title">Corespun</h1>
<ul id="facts"></ul>
<ul id="problems"></ul>
<p id="state" role="status"></p>
</header>
<main id="tables"></main>
<noscript>This page needs its script.</noscript>
<script>${script}</script>
</body>
</html>
`
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(STYLE)}`,
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
  return { html, policy }
}
