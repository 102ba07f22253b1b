/**
 * The page of examples/service in a real browser: what a visitor does, and what the server does meanwhile.
 * Without a browser the tests are skipped (chromium.mjs).
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { inRoot } from '../../scripts/set-up/index.mjs'
import { launched, skip } from './chromium.mjs'

const STEP_MS = 60_000
/** Longer than a worker may take that is ended: its grace, its end, a look at it. */
const STILL_MS = 2000

let server
let browser

before(async () => {
  if (skip) return
  server = await served('0')
  browser = await launched()
})

after(async () => {
  await browser?.close()
  await stopped(server)
})

/** The service on a port, once it answers. */
async function served(port) {
  const words = [inRoot('lib/cli/main.js'), 'serve', 'examples/service/app.ts', '--port', port]
  const child = spawn(process.execPath, words, { cwd: inRoot(), stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  for await (const piece of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    text += piece
    if (text.includes('\n')) break
  }
  child.stdout.resume()
  return { child, url: /http:\/\/[\d.:]+/.exec(text)[0] }
}

async function stopped(one) {
  if (one === undefined || one.child.exitCode !== null) return
  const ended = new Promise((resolve) => one.child.once('close', resolve))
  one.child.kill('SIGINT')
  return ended
}

/** A test in a tab of its own; nothing on the page may have failed. */
function visit(name, body, settings = {}) {
  test(name, { skip, timeout: 120_000 }, async () => {
    const context = await browser.newContext(settings)
    const page = await context.newPage()
    page.setDefaultTimeout(STEP_MS)
    const failures = []
    page.on('pageerror', (error) => failures.push(String(error)))
    try {
      await page.goto(server.url)
      await body(page)
      assert.deepEqual(failures, [])
    } finally {
      await context.close()
    }
  })
}

const tangled = 'function f(a) { if (a) { for (const b of a) { if (b && a) return 1 } } return 2 }\n'

async function scored(page, text) {
  await page.fill('#text', text)
  await page.click('#send')
  await page.waitForSelector('#result:not([hidden])')
}

visit('a pasted text becomes a picture and a table', async (page) => {
  await scored(page, tangled)
  const label = await page.getAttribute('#picture svg', 'aria-label')
  assert.match(label, /^Maintainability [\d.]+ of 100, grade [A-D]$/)
  const table = await page.innerText('#table')
  assert.match(table, /Most tangled\s+f, line 1: 5 ways/)
  assert.equal(await page.evaluate(() => document.activeElement.id), 'result-title')
  await page.click('#send')
  await page.waitForFunction(() => /from the store/.test(document.querySelector('#table').innerText))
})

visit('a file is chosen, and one that is not JavaScript shows where', async (page) => {
  const path = inRoot('examples/service/page/page.js')
  await page.setInputFiles('#file', path)
  await page.click('#send')
  await page.waitForSelector('#picture svg')
  const broken = { name: 'broken.js', mimeType: 'text/javascript', buffer: Buffer.from('let a\nlet let') }
  await page.setInputFiles('#file', broken)
  await page.click('#send')
  await page.waitForFunction(() => /line 2, column 4/.test(document.querySelector('#table').innerText))
  assert.equal(await page.locator('#picture svg').count(), 0)
})

visit('a file that is dropped is taken', async (page) => {
  const transfer = await page.evaluateHandle((text) => {
    const data = new DataTransfer()
    data.items.add(new File([text], 'dropped.js', { type: 'text/javascript' }))
    return data
  }, tangled)
  await page.dispatchEvent('#drop', 'drop', { dataTransfer: transfer })
  await page.click('#send')
  await page.waitForSelector('#result:not([hidden])')
  await page.waitForFunction(() => /dropped\.js/.test(document.querySelector('#history').innerText))
})

visit('numbers, plan and history are live, and what others do is seen', async (page) => {
  await page.waitForFunction(() => document.querySelector('#state').textContent === 'live')
  await page.waitForSelector('#live dd')
  const before = await numbersOf(page)
  const body = JSON.stringify({ name: 'from-elsewhere.js', text: `${tangled}//${Date.now()}` })
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${server.url}/api/score`, { method: 'POST', body, headers })
  assert.equal(answer.status, 200)
  await page.waitForFunction(() => /from-elsewhere\.js/.test(document.querySelector('#history').innerText))
  await until(async () => {
    const now = await numbersOf(page)
    const { tasks, parsed, ms } = now
    const changed = now.requests > before.requests && now.scores === before.scores + 1
    return changed && tasks > before.tasks && parsed === before.parsed + 1 && ms > 0
  })
})

/** The text of the page now: of the tiles, and of the plan's step `parsed`. */
async function numbersOf(page) {
  const [tiles, plan] = [await page.innerText('#live'), await page.innerText('#plan')]
  const number = (pattern) => Number(pattern.exec(tiles)?.[1])
  const [, calls = 0, ms = 0] = /^ *parsed +(\d+) calls?, ([\d.]+) ms each$/m.exec(plan) ?? []
  return {
    requests: number(/(\d+) by \d+ servers?/),
    scores: number(/Store\s+(\d+)\s+scores/),
    tasks: number(/(\d+) tasks done/),
    parsed: Number(calls),
    ms: Number(ms),
  }
}

async function until(isReached, shown = () => '') {
  const lateMs = performance.now() + STEP_MS
  while (!(await isReached())) {
    assert.ok(performance.now() < lateMs, `not reached in ${STEP_MS} ms: ${isReached} ${shown()}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

visit('a file that is too large is refused, by the page and by the server', async (page) => {
  const large = { name: 'large.js', mimeType: 'text/javascript', buffer: Buffer.alloc(2_000_000, 0x20) }
  await page.setInputFiles('#file', large)
  await page.click('#send')
  await page.waitForFunction(() =>
    /too large.*BODY_TOO_LARGE/.test(document.querySelector('#message').innerText),
  )
  const status = await page.evaluate(async () => {
    const answer = await fetch('/api/score', { method: 'POST', body: ' '.repeat(2_000_000) })
    return [answer.status, (await answer.json()).error.code]
  })
  assert.deepEqual(status, [413, 'BODY_TOO_LARGE'])
})

visit('an empty file is refused by the page, and a text replaces it', async (page) => {
  await page.fill('#text', tangled)
  await page.setInputFiles('#file', {
    name: 'empty.js',
    mimeType: 'text/javascript',
    buffer: Buffer.alloc(0),
  })
  assert.match(await page.innerText('#message'), /empty\.js is empty/)
  await page.click('#send')
  assert.match(await page.innerText('#message'), /empty\.js is empty/)
  assert.equal(await page.isHidden('#result'), true)
  await scored(page, tangled)
  assert.equal(await page.innerText('#message'), '')
})

visit('a text that is too large is refused by the page', async (page) => {
  await page.evaluate(() => (document.querySelector('#text').value = ' '.repeat(1024 * 1024 + 1)))
  await page.click('#send')
  assert.match(await page.innerText('#message'), /too large.*BODY_TOO_LARGE/)
})

visit('a text of many lines may be as long as one of few', async (page) => {
  await page.evaluate(() => (document.querySelector('#text').value = `//${'a'.repeat(28)}\n`.repeat(33_500)))
  await page.click('#send')
  await page.waitForSelector('#result:not([hidden])')
  assert.match(await page.innerText('#table'), /33500 \(0\)/)
})

visit('a response that is not of the service is shown by its status', async (page) => {
  const answers = [
    [413, /It is too large: 1 MiB is the most/],
    [502, /status 502/],
    [200, /status 200/],
  ]
  await page.fill('#text', tangled)
  for (const [status, words] of answers) {
    await page.route('**/api/score', (route) => route.fulfill({ status, body: 'no JSON' }), { times: 1 })
    await page.click('#send')
    await page.waitForSelector('#cancel', { state: 'hidden' })
    assert.match(await page.innerText('#message'), words)
  }
  await page.waitForSelector('#result', { state: 'hidden' })
})

visit('a task that takes too long is cancelled, which is shown, and the next one runs', async (page) => {
  const text = `${readFileSync(inRoot('node_modules/acorn/dist/acorn.js'), 'utf8')}\n//${Date.now()}`
  const long = { name: 'long.js', mimeType: 'text/javascript', buffer: Buffer.from(text) }
  await page.setInputFiles('#file', long)
  await page.fill('#timeout', '1')
  await page.click('#send')
  await page.waitForFunction(() =>
    /cancelled.*504 TASK_TIMEOUT/.test(document.querySelector('#message').innerText),
  )
  await page.fill('#timeout', '5000')
  await scored(page, tangled)
  assert.equal(await page.innerText('#message'), '')
})

visit('a visitor cancels, the server ends the task, and the next one runs', async (page) => {
  // The page's time limit may come first where all cores are busy: that proves nothing and is tried again.
  let reason = 'late'
  for (let tries = 0; tries < 5 && reason === 'late'; tries += 1) reason = await cancelled(page)
  assert.equal(reason, 'disconnected')
  await scored(page, tangled)
})

/** Send what takes minutes, cancel it when it runs; why the server has ended it: 'disconnected' or 'late'. */
async function cancelled(page) {
  await scored(page, `${tangled}//${Date.now()}`)
  const before = await settledZone()
  const scoredBefore = await historyOf()
  // Every declaration is compared with all before it.
  const names = Array.from({ length: 120_000 }, (_, index) => `a${index}`)
  const buffer = Buffer.from(`let ${names}\n//${Date.now()}`)
  await page.setInputFiles('#file', { name: 'long.js', mimeType: 'text/javascript', buffer })
  const { cancelled: cancelledBefore } = await statsOf()
  const isLate = async () => (await page.innerText('#message')).includes('TASK_TIMEOUT')
  await page.click('#send')
  await until(async () => (await zoneOf()).running === 1 || (await isLate()))
  await page.evaluate(() => document.querySelector('#cancel').click())
  await page.waitForFunction(() =>
    /^Cancelled|TASK_TIMEOUT/.test(document.querySelector('#message').innerText),
  )
  // Ended by its signal, or with its worker if it was computing.
  const lost = ({ failed, died }) => failed + died
  let now = before
  await until(
    async () => {
      now = await zoneOf()
      return now.running === 0 && lost(now) === lost(before) + 1
    },
    () => `before ${JSON.stringify(before)}, now ${JSON.stringify(now)}`,
  )
  // Not by what is done: a worker that sees the plan for the first time asks for it, which is a task as well.
  assert.deepEqual(await historyOf(), scoredBefore)
  let reason
  await until(async () => {
    const { late, disconnected } = (await statsOf()).cancelled
    if (late > cancelledBefore.late) reason = 'late'
    else if (disconnected > cancelledBefore.disconnected) reason = 'disconnected'
    return reason !== undefined
  })
  return reason
}

/**
 * The zone's counts when they no longer change: an earlier task may have been cancelled, and its worker may
 * be ending.
 */
async function settledZone() {
  let before
  let sinceMs = 0
  await until(async () => {
    const now = await zoneOf()
    const counts = JSON.stringify([now.running, now.waiting, now.done, now.failed, now.died])
    if (counts !== before) sinceMs = performance.now()
    before = counts
    return now.running === 0 && performance.now() - sinceMs >= STILL_MS
  })
  return zoneOf()
}

async function historyOf() {
  return (await fetch(`${server.url}/api/history`)).json()
}

async function zoneOf() {
  return (await statsOf()).zone
}

async function statsOf() {
  return (await fetch(`${server.url}/api/stats`)).json()
}

visit(
  'an empty list is explained, an example can be filled in, nothing to score is a sentence',
  async (page) => {
    assert.match(await page.innerText('#nothing'), /appears here/)
    await page.click('#send')
    assert.match(await page.innerText('#message'), /paste a text first/)
    await page.click('#example')
    await page.click('#send')
    await page.waitForSelector('#picture svg')
    assert.equal(await page.isHidden('#nothing'), true)
    assert.equal(await page.innerText('#message'), '')
  },
)

visit('the server stops and starts under the page', async (page) => {
  await page.waitForFunction(() => document.querySelector('#state').textContent === 'live')
  await scored(page, tangled)
  await page.waitForSelector('#history tr')
  assert.equal(await stopped(server), 0)
  await page.waitForFunction(() => /away/.test(document.querySelector('#state').textContent))
  await page.fill('#text', tangled)
  await page.click('#send')
  await page.waitForFunction(() => /cannot be reached/.test(document.querySelector('#message').innerText))
  server = await served(new URL(server.url).port)
  await page.waitForFunction(() => document.querySelector('#state').textContent === 'live')
  // The new server has scored nothing, and what the old one did is not shown as if it had.
  await page.waitForSelector('#no-history:not([hidden])')
  assert.equal(await page.locator('#history tr').count(), 0)
  await scored(page, tangled)
  await page.waitForSelector('#history tr')
})

visit(
  'by keyboard alone, on a phone, in the dark',
  async (page) => {
    await page.focus('#text')
    await page.keyboard.type('let a = 1')
    for (let tabs = 0; tabs < 3; tabs += 1) await page.keyboard.press('Tab')
    assert.equal(await page.evaluate(() => document.activeElement.tagName), 'BUTTON')
    await page.keyboard.press('Enter')
    await page.waitForSelector('#result:not([hidden])')
    const { wide, dark } = await page.evaluate(() => ({
      wide: document.documentElement.scrollWidth > innerWidth,
      dark: getComputedStyle(document.documentElement).backgroundColor,
    }))
    assert.deepEqual([wide, dark], [false, 'rgb(13, 17, 23)'])
  },
  { viewport: { width: 360, height: 740 }, colorScheme: 'dark' },
)
