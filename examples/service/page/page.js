/**
 * The page's part in the browser: sends the form, draws the score, follows the live numbers.
 *
 * Without it the form still posts and gets JSON. Everything shown is set as text, never as HTML.
 */
const $ = (id) => document.getElementById(id)
const FILE_BYTES_MAX = 1024 * 1024

function element(name, text, attributes = {}) {
  const isSvg = ['svg', 'path', 'text', 'title'].includes(name)
  const made = isSvg
    ? document.createElementNS('http://www.w3.org/2000/svg', name)
    : document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  if (text !== undefined) made.textContent = text
  return made
}

function row(...cells) {
  const made = element('tr')
  for (const cell of cells) made.append(element('td', String(cell)))
  return made
}

/** A half circle from 0 to 100, filled as far as the index goes. */
function gauge({ maintainability, grade }) {
  const label = `Maintainability ${maintainability} of 100, grade ${grade}`
  const svg = element('svg', undefined, { viewBox: '0 0 200 115', role: 'img', 'aria-label': label })
  const arc = { d: 'M20 100 A80 80 0 0 1 180 100', fill: 'none', 'stroke-width': 18, pathLength: 100 }
  svg.append(element('path', undefined, { ...arc, class: 'track' }))
  const filled = { ...arc, class: grade, 'stroke-dasharray': `${maintainability} 100` }
  svg.append(element('path', undefined, filled))
  svg.append(
    element('text', `${grade} · ${maintainability}`, {
      x: 100,
      y: 92,
      'text-anchor': 'middle',
      class: 'label',
    }),
  )
  return svg
}

function show({ score, cached, ms }) {
  const cost = `${ms} ms${cached ? ', from the store' : ', in the zone'}`
  $('picture').replaceChildren(...(score.parsed ? [gauge(score)] : []))
  const placed = ({ name, line }) => `${name}, line ${line}`
  const rows = score.parsed
    ? [
        ['Lines (of code)', `${score.lines} (${score.codeLines})`],
        ['Lines with comments', `${Math.round(score.commentRatio * 100)} %`],
        ['Functions', score.functions],
        ['Ways through a function, mean', score.cyclomaticMean],
        ['Deepest nesting', score.nestingMax],
        ['Most tangled', `${placed(score.mostTangled)}: ${score.mostTangled.cyclomatic} ways`],
        ['Longest', `${placed(score.longest)}: ${score.longest.lines} lines`],
        ['Took', cost],
      ]
    : [
        ['Not JavaScript', score.problem],
        ['Where', `line ${score.line}, column ${score.column}`],
        ['Took', cost],
      ]
  $('table').replaceChildren(...rows.map((cells) => row(...cells)))
  $('result').hidden = false
  $('result-title').focus()
}

const explained = {
  TASK_TIMEOUT: 'It took longer than you allowed and was cancelled.',
  BODY_TOO_LARGE: 'The file is too large: 1 MiB is the most.',
  ZONE_FULL: 'Too much is waiting. Try again in a moment.',
  RATE_LIMITED: 'Too many requests. Wait a moment.',
}

async function send(event) {
  event.preventDefault()
  const button = event.target.querySelector('button')
  button.disabled = true
  $('message').textContent = ''
  try {
    const file = $('file').files[0]
    if (file !== undefined && file.size > FILE_BYTES_MAX) throw { code: 'BODY_TOO_LARGE' }
    const answer = await fetch('/api/score', { method: 'POST', body: new FormData(event.target) })
    const body = await answer.json()
    if (!answer.ok) throw { ...body.error, status: answer.status }
    show(body)
  } catch (error) {
    const said = explained[error.code] ?? error.message ?? 'The server cannot be reached.'
    const code = error.code === undefined ? '' : ` (${error.status ?? 413} ${error.code})`
    $('message').textContent = error instanceof TypeError ? 'The server cannot be reached.' : said + code
  } finally {
    button.disabled = false
  }
}

function showStats({ zone, store, requests, memoryMb, plan }) {
  const total = Object.values(requests).reduce((sum, count) => sum + count, 0)
  const lines = [
    ['Zone', `${zone.workers} workers, ${zone.running} tasks run, ${zone.waiting} wait`],
    ['Done', `${zone.ended} tasks; ${zone.died} died`],
    ['Store', `${store.entries} scores, ${Math.round(store.bytes / 1024)} KiB, ${store.hits} hits`],
    ['Requests', `${total} by ${Object.keys(requests).length} serving workers`],
    ['Memory', `${memoryMb} MB`],
  ]
  $('live').replaceChildren(...lines.flatMap(([name, text]) => [element('dt', name), element('dd', text)]))
  $('plan').textContent = plan
}

function showHistory(all) {
  const cells = ({ name, grade, maintainability, ms, cached }) =>
    row(name, grade, maintainability ?? '–', ms, cached ? 'yes' : 'no')
  $('history').replaceChildren(...all.map(cells))
}

function follow() {
  const source = new EventSource('/api/events')
  source.addEventListener('open', () => ($('state').textContent = 'live'))
  source.addEventListener('stats', (event) => showStats(JSON.parse(event.data)))
  source.addEventListener('history', (event) => showHistory(JSON.parse(event.data)))
  source.addEventListener('error', () => {
    $('state').textContent = 'the server is away, trying again'
    // A browser gives up on some errors; this page does not.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 1000)
  })
}

const drop = $('drop')
for (const name of ['dragover', 'dragleave', 'drop']) {
  drop.addEventListener(name, (event) => {
    event.preventDefault()
    drop.classList.toggle('over', name === 'dragover')
    if (name === 'drop' && event.dataTransfer.files.length > 0) $('file').files = event.dataTransfer.files
  })
}
$('text').addEventListener('input', () => ($('file').value = ''))
$('form').addEventListener('submit', send)
follow()
