/**
 * The page's part in the browser: sends the form, draws the score, follows the live numbers.
 *
 * Without it the form still posts and receives JSON. All content is set as text, never as HTML.
 */
const $ = (id) => document.getElementById(id)
const BYTES_MAX = 1024 * 1024
const EXAMPLE = `// Which days does a shop open? Three branches too many.
export function isOpen(day, hour, holidays) {
  if (holidays.includes(day)) return false
  for (const closed of ['Sat', 'Sun']) {
    if (day === closed) {
      if (day === 'Sat' && hour >= 9 && hour < 13) return true
      return false
    }
  }
  return hour >= 9 && (day === 'Thu' ? hour < 20 : hour < 18)
}
`

function element(name, text, attributes = {}) {
  const isSvg = ['svg', 'path', 'text', 'title'].includes(name)
  const made = isSvg
    ? document.createElementNS('http://www.w3.org/2000/svg', name)
    : document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  if (text !== undefined) made.textContent = text
  return made
}

/** A half circle from 0 to 100, filled as far as the index goes. */
function gauge({ maintainability, grade }) {
  const label = `Maintainability ${maintainability} of 100, grade ${grade}`
  const svg = element('svg', undefined, {
    viewBox: '0 0 200 124',
    role: 'img',
    'aria-label': label,
    class: grade,
  })
  const arc = {
    d: 'M20 100 A80 80 0 0 1 180 100',
    fill: 'none',
    'stroke-width': 16,
    pathLength: 100,
  }
  const middle = { x: 100, 'text-anchor': 'middle' }
  svg.append(
    element('path', undefined, { ...arc, class: 'track' }),
    element('path', undefined, {
      ...arc,
      class: 'filled',
      'stroke-dasharray': `${maintainability} 100`,
    }),
    element('text', grade, { ...middle, y: 84, class: 'grade' }),
    element('text', `${maintainability} of 100`, {
      ...middle,
      y: 104,
      class: 'label',
    }),
    element('text', 'dreadful', { x: 4, y: 120, class: 'label' }),
    element('text', 'a pleasure', {
      x: 196,
      y: 120,
      'text-anchor': 'end',
      class: 'label',
    }),
  )
  return svg
}

function show({ score, cached, ms }) {
  const cost = `${ms} ms, ${cached ? 'from the store' : 'in the zone'}`
  $('picture').replaceChildren(...(score.parsed ? [gauge(score)] : []))
  const placed = ({ name, line }) => `${name}, line ${line}`
  const rows = score.parsed
    ? [
        ['Lines (of code)', `${score.lines} (${score.codeLines})`],
        ['Lines with comments', `${Math.round(score.commentRatio * 100)} %`],
        ['Functions', score.functions],
        ['Ways through a function, mean', score.cyclomaticMean],
        ['Deepest nesting', score.nestingMax],
        ['Most tangled', `${placed(score.mostTangled)}: ${counted(score.mostTangled.cyclomatic, 'way')}`],
        ['Longest', `${placed(score.longest)}: ${counted(score.longest.lines, 'line')}`],
        ['Took', cost],
      ]
    : [
        ['Cannot be read', score.problem],
        ['Where', `line ${score.line}, column ${score.column}`],
        ['Took', cost],
      ]
  $('table').replaceChildren(
    ...rows.map(([name, value]) => {
      const row = element('tr')
      row.append(element('th', name, { scope: 'row' }), element('td', String(value)))
      return row
    }),
  )
  $('nothing').hidden = true
  $('result').hidden = false
  $('result-title').focus({ preventScroll: true })
  $('result-title').scrollIntoView({ block: 'nearest' })
}

function percent(part, whole) {
  return whole === 0 ? '–' : `${Math.round((part * 100) / whole)} %`
}

function counted(count, what) {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

const explained = {
  TASK_TIMEOUT: 'It took longer than the time limit and was cancelled.',
  BODY_TOO_LARGE: 'It is too large: 1 MiB is the most.',
  FORM_TOO_LARGE: 'It is too large: 1 MiB is the most.',
  ZONE_FULL: 'Too much is waiting. Try again in a moment.',
  RATE_LIMITED: 'Too many requests. Wait a moment.',
}

function complain(code, status, message) {
  const text = explained[code] ?? message ?? 'The server cannot be reached.'
  $('message').textContent = code === undefined ? text : `${text} (${status} ${code})`
}

let busy

async function send(event) {
  event.preventDefault()
  const [button, form] = [$('send'), new FormData($('form'))]
  $('message').textContent = ''
  $('result').hidden = true // Or an old score would be read beside a new complaint.
  if (isRefused()) return
  if ($('file').files.length === 0 && $('text').value === '') {
    complain(undefined, 0, 'Choose a file or paste a text first.')
    return $('text').focus()
  }
  busy = new AbortController()
  const { signal } = busy
  button.disabled = true
  button.textContent = 'Scoring …'
  $('cancel').hidden = false
  try {
    const answer = await fetch('/api/score', { method: 'POST', body: form, signal })
    const body = parsed(await answer.text())
    if (answer.ok && body !== undefined) show(body)
    else complain(body?.error?.code, answer.status, body?.error?.message ?? refused(answer))
  } catch {
    complain(undefined, 0, signal.aborted ? 'Cancelled: its task was ended.' : undefined)
  } finally {
    button.disabled = false
    button.textContent = 'Score it'
    $('cancel').hidden = true
  }
}

/** The value of a JSON text; undefined if it is not JSON, such as a proxy's error page. */
function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The message for a response without a message of the service. */
function refused({ status }) {
  return status === 413
    ? explained.BODY_TOO_LARGE
    : `The server's answer makes no sense here: status ${status}.`
}

/** Whether the chosen file, or else the text, is refused; if so, shows the reason. */
function isRefused() {
  const file = $('file').files[0]
  const { size } = file ?? new Blob([$('text').value])
  if (size > BYTES_MAX) complain('BODY_TOO_LARGE', 413)
  else if (file?.size === 0) complain(undefined, 0, `${file.name} is empty. Choose another file.`)
  else return false
  return true
}

let before

function showStats({ zone, store, requests, cancelled, memoryMb, plan }) {
  const total = Object.values(requests).reduce((sum, count) => sum + count, 0)
  const atMs = performance.now()
  const passedMs = before === undefined ? 0 : atMs - before.atMs // 0 also where the browser's clock is coarse
  const rate = passedMs === 0 ? 0 : ((total - before.total) * 1000) / passedMs
  before = { total, atMs }
  const tiles = [
    ['Workers', `${zone.running} of ${zone.workers}`, `workers busy; ${zone.died} died`],
    [
      'Queue',
      zone.waiting,
      `wait; ${zone.ended} tasks done, ${cancelled.late + cancelled.disconnected} cancelled`,
    ],
    ['Store', store.entries, `scores, ${Math.ceil(store.bytes / 1024)} KiB, ${counted(store.hits, 'hit')}`],
    ['Not computed again', percent(store.hits, store.hits + store.misses), 'of look-ups were in the store'],
    [
      'Requests',
      `${Math.max(0, rate).toFixed(0)} /s`,
      `${total} by ${counted(Object.keys(requests).length, 'server')}`,
    ],
    ['Memory', `${memoryMb} MB`, 'the whole process'],
  ]
  $('live').replaceChildren(
    ...tiles.map(([name, figure, more]) => {
      const tile = element('div')
      tile.append(element('dt', name), element('dd', String(figure)), element('dd', more))
      return tile
    }),
  )
  if ($('plan').textContent !== plan) $('plan').textContent = plan
}

function showHistory(all) {
  const rows = all.map(({ at, name, grade, maintainability, ms, cached }) => {
    const row = element('tr', undefined, {
      title: new Date(at).toLocaleString(),
    })
    const cell = element('td')
    cell.append(element('span', grade, { class: `badge ${grade}` }))
    row.append(
      element('td', name),
      cell,
      element('td', maintainability ?? '–', { class: 'number' }),
      element('td', ms < 10 ? ms : Math.round(ms), { class: 'number' }),
      element('td', cached ? 'store' : 'zone'),
    )
    return row
  })
  $('history').replaceChildren(...rows)
  $('no-history').hidden = rows.length > 0
  document.querySelector('.scroll').hidden = rows.length === 0
}

function state(text) {
  $('state').textContent = text
  $('state').className = text
}

let source

/** A hidden tab has no stream: all tabs of a browser share six connections to a server of HTTP/1.1. */
function follow() {
  if (document.hidden || (source !== undefined && source.readyState !== EventSource.CLOSED)) return
  source = new EventSource('/api/events')
  source.addEventListener('open', () => state('live'))
  source.addEventListener('stats', (event) => showStats(JSON.parse(event.data)))
  source.addEventListener('history', (event) => showHistory(JSON.parse(event.data)))
  source.addEventListener('error', () => {
    state('the server is away, trying again')
    before = undefined
    // Browsers do not reconnect after some errors; this page does.
    if (source.readyState !== EventSource.CLOSED) return
    setTimeout(follow, 1000)
  })
}

function choose() {
  const file = $('file').files[0]
  $('message').textContent = ''
  const size = file === undefined ? '' : `${Math.ceil(file.size / 1024)} KiB`
  $('chosen').textContent =
    file === undefined ? 'JavaScript or TypeScript, up to 1 MiB' : `${file.name}, ${size}`
  $('text').classList.toggle('unused', file !== undefined)
  isRefused()
}

/** A text replaces a chosen file. */
function useText() {
  $('file').value = ''
  choose()
}

const drop = $('drop')
for (const name of ['dragover', 'dragleave', 'drop']) {
  drop.addEventListener(name, (event) => {
    event.preventDefault()
    drop.classList.toggle('over', name === 'dragover')
    if (name !== 'drop' || event.dataTransfer.files.length === 0) return
    $('file').files = event.dataTransfer.files
    choose()
  })
}
$('example').addEventListener('click', () => {
  $('text').value = EXAMPLE
  $('name').value = 'example.js'
  useText()
})
$('cancel').addEventListener('click', () => busy?.abort())
$('file').addEventListener('change', choose)
$('text').addEventListener('input', useText)
document.addEventListener('visibilitychange', () => {
  if (document.hidden) source?.close()
  else follow()
})
$('form').addEventListener('submit', (event) => void send(event)) // never rejected: it shows what fails
fetch('/api/code').then(async (response) => {
  if (response.ok) $('code').textContent = await response.text()
}, console.error)
follow()
