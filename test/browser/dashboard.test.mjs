/**
 * The dashboard in a real browser, wide and narrow: what it shows, whom it obeys, and names that attack it.
 * Without a browser the tests are skipped (chromium.mjs).
 */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { durable, runs, signal, step } from 'corespun/durable'
import { connect, host } from 'corespun/fleet'
import { serve, use } from 'corespun/http'
import { dashboard } from 'corespun/observe'
import { zone } from 'corespun/zone'
import { launched, skip } from './chromium.mjs'

const STEP_MS = 60_000
const ATTACK = '<img src=x onerror="document.title=`owned`"></td></script><b>'

let browser
let fleet
let hosting
let server
let cpu
let jobs
let work

/** Waits for a signal behind two steps. */
const order = durable('order', function* () {
  for (const name of ['charge', 'invoice'])
    yield* step(name, () => new Promise((resolve) => setTimeout(resolve, 20)))
  yield* signal('paid')
})

before(async () => {
  if (skip) return
  const attack = JSON.stringify(ATTACK)
  const module = new URL(
    `data:text/javascript,export const send = () => { throw new Error(${encodeURIComponent(attack)}) }`,
  )
  fleet = await connect('memory:')
  hosting = await host(fleet, { name: 'mail', module, version: 'v1', jobsMax: 2 })
  jobs = fleet.jobs('mail')
  work = await runs(fleet, { definitions: [order], idleMs: 3_600_000 })
  const run = await work.start('order', undefined, { key: '<b>17</b>' })
  while ((await run.state()).awaits.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
  cpu = zone.create(ATTACK, { workers: 1 })
  const names = { [ATTACK]: () => 1 }
  const routes = {
    '/dashboard': dashboard({ name: ATTACK, fleets: [fleet], runs: [work], control: true }),
    '/view': dashboard({ fleets: [fleet] }),
    '/error': () => {
      throw new Error('on purpose')
    },
    '/run': () => cpu.run(names[ATTACK]),
    '/waits/:ms': ({ params }) =>
      new Promise((resolve) => setTimeout(() => resolve('waited'), Number(params.ms))),
  }
  for (let n = 0; n < 300; n += 1) routes[`/many/${n}/:id`] = () => `${n}`
  server = await serve({ port: 0, routes, error: () => undefined })
  for (let n = 0; n < 300; n += 1) await (await fetch(`${server.url}/many/${n}/1`)).text()
  for (let n = 0; n < 100; n += 1) await (await fetch(`${server.url}/waits/0`)).text()
  await (await fetch(`${server.url}/waits/3000`)).text()
  browser = await launched()
})

after(async () => {
  await browser?.close()
  await server?.close()
  await work?.close()
  await hosting?.close()
  await fleet?.close()
  await cpu?.close()
})

/** A dead job of that key. */
async function failed(key) {
  await jobs.submit(key, 'send', [])
  await assert.rejects(jobs.result(key), { code: 'JOB_DEAD' })
}

const sizes = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
]

/** A test at each size, in a tab of its own; nothing on the page may have failed, or been refused. */
function visit(name, path, body) {
  for (const viewport of sizes)
    test(`${name}, ${viewport.width} px wide`, { skip, timeout: 300_000 }, async () => {
      const context = await browser.newContext({ viewport })
      const page = await context.newPage()
      page.setDefaultTimeout(STEP_MS)
      const failures = []
      page.on('pageerror', (error) => failures.push(String(error)))
      page.on('console', (message) => message.type() === 'error' && failures.push(message.text()))
      try {
        await page.goto(server.url + path)
        await body(page)
        assert.deepEqual(failures, [])
      } finally {
        await context.close()
      }
    })
}

visit('it shows routes with their rates, threads and jobs', '/view', async (page) => {
  await failed('shown')
  await fetch(`${server.url}/run`)
  for (const id of ['routes', 'threads', 'queues', 'dead', 'hosts', 'functions', 'zones', 'slow'])
    await page.waitForSelector(`#table-${id}:not([hidden])`)
  await page.waitForFunction(() =>
    /\d/.test(document.querySelector('#table-routes td:nth-child(2)').innerText),
  )
  assert.match(await page.innerText('#facts'), /up .*CPU .*memory/s)
  assert.match(await page.innerText('#table-slow'), /Slow tasks and requests[^]*GET \/waits\/:ms\s+main/)
  const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
  assert.equal(isWide, false)
  assert.equal(await page.locator('#table-routes tbody tr').count(), 15)
  await page.click('#table-routes > button')
  await page.waitForFunction(() => document.querySelectorAll('#table-routes tbody tr').length > 300)
  assert.equal(await page.locator('#tables button:visible', { hasText: 'retry' }).count(), 0)
})

visit('names are text', '/dashboard', async (page) => {
  await failed('<b>key</b>')
  await fetch(`${server.url}/run`)
  await page.waitForSelector('#table-dead:not([hidden])')
  await page.waitForFunction(() => document.querySelector('#table-zones').innerText.includes('<img src=x'))
  const dead = page.locator('#table-dead tr', { hasText: '<b>key</b>' })
  await dead.locator('summary').click()
  assert.match(await dead.innerText(), /<img src=x onerror/)
  assert.match(await page.title(), /^<img src=x/)
  assert.equal(await page.locator('img, b').count(), 0)
})

visit('the steps of a run are a time line', '/dashboard', async (page) => {
  const button = (table, text) => page.locator(`#table-${table} tr`, { hasText: text }).locator('button')
  await button('runs', 'order').click()
  await button('listed', '<b>17</b>').click()
  await page.waitForSelector('#table-steps:not([hidden]) .bar')
  const bars = await page.locator('#table-steps .bar').evaluateAll((all) =>
    all.map((bar) => {
      const [{ left, right }, cell] = [bar, bar.parentElement].map((each) => each.getBoundingClientRect())
      const isInside = left >= cell.left && right <= cell.right + 3 && right <= innerWidth
      return { isInside, left, width: right - left, row: bar.closest('tr').innerText.replace(/\s+/g, ' ') }
    }),
  )
  const names = ['order <b>17</b> running', 'charge#1 done', 'invoice#1 done', 'signal(paid)#1 waiting']
  assert.deepEqual(
    bars.map(({ row }, index) => row.slice(0, names[index].length)),
    names,
  )
  assert.ok(bars.every(({ isInside, width }) => isInside && width >= 3))
  const [whole, charge, invoice, paid] = bars.map(({ left }) => left)
  assert.ok(whole <= charge && charge <= invoice && invoice <= paid, String(bars.map(({ left }) => left)))
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false)
  assert.equal(await page.locator('#table-steps b').count(), 0)
  await button('steps', 'order').click()
  await page.waitForSelector('#table-steps', { state: 'hidden' })
  await page.waitForSelector('#table-listed:not([hidden])')
})

visit('a dead job is run anew once that is confirmed', '/dashboard', async (page) => {
  await failed('again')
  const row = page.locator('#table-dead tr', { hasText: 'again' })
  const questions = []
  let agrees = false
  page.on('dialog', (dialog) => {
    questions.push(dialog.message())
    return agrees ? dialog.accept() : dialog.dismiss()
  })
  await row.locator('button').click()
  assert.equal((await jobs.get('again')).status, 'dead')
  agrees = true
  await row.locator('button').click()
  await page.waitForFunction(() => document.querySelector('#state').innerText === 'Done: again')
  assert.deepEqual(questions, Array(2).fill('Run the job again of mail anew?'))
  await assert.rejects(jobs.result('again'), { code: 'JOB_DEAD' })
})

test('a page of another origin changes nothing', { skip, timeout: 300_000 }, async () => {
  await failed('guarded')
  const other = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<p>other'))
  await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve))
  const page = await browser.newPage()
  try {
    await page
      .goto(`http://localhost:${other.address().port}/`)
      .catch(() => page.goto(`http://127.0.0.1:${other.address().port}/`))
    const body = JSON.stringify({ action: 'retry', zone: 'mail', key: 'guarded' })
    const sent = (type) =>
      page.evaluate(
        ([url, body, type]) =>
          fetch(url, {
            method: 'POST',
            mode: type === 'text/plain' ? 'no-cors' : 'cors',
            headers: { 'content-type': type },
            body,
          })
            .then(() => 'sent')
            .catch(() => 'refused'),
        [`${server.url}/dashboard`, body, type],
      )
    assert.equal(await sent('text/plain'), 'sent')
    assert.equal(await sent('application/json'), 'refused')
    assert.equal((await jobs.get('guarded')).status, 'dead')
  } finally {
    await page.close()
    other.close()
  }
})

test(
  'the page shows that the server is away, and goes on when it is back',
  { skip, timeout: 300_000 },
  async () => {
    const port = Number(new URL(server.url).port)
    const own = await serve({ port: 0, routes: { '/': dashboard() } })
    const page = await browser.newPage()
    try {
      await page.goto(own.url)
      await page.waitForSelector('#table-threads:not([hidden])')
      await own.close()
      await page.waitForFunction(() => document.querySelector('#state').innerText.startsWith('No figures'))
      const again = await serve({ port: Number(new URL(own.url).port), routes: { '/': dashboard() } })
      await page.waitForFunction(() => document.querySelector('#state').innerText === '')
      await again.close()
      assert.notEqual(port, 0)
    } finally {
      await page.close()
    }
  },
)

test(
  'behind a login: credentials in the URL, a token in the query, and a login that has expired',
  { skip, timeout: 300_000 },
  async () => {
    let hasExpired = false
    const authenticated = (request, next) => {
      if (hasExpired)
        return request.method === 'POST'
          ? Response.json({ message: 'log in' }, { status: 401 })
          : new Response('<p>log in', { headers: { 'content-type': 'text/html' } })
      const basic = `Basic ${Buffer.from('ops:secret').toString('base64')}`
      const token = new URL(request.url).searchParams.get('token')
      if (request.headers.get('authorization') === basic || token === 'secret') return next()
      return new Response('who?', { status: 401, headers: { 'www-authenticate': 'Basic realm="ops"' } })
    }
    const routes = use({ '/ops': dashboard({ fleets: [fleet], control: true }) }, authenticated)
    const own = await serve({ port: 0, routes })
    const { port } = new URL(own.url)
    try {
      for (const url of [`http://ops:secret@localhost:${port}/ops`, `${own.url}/ops?token=secret`]) {
        const key = `behind ${url.slice(-6)}`
        await failed(key)
        hasExpired = false
        const page = await browser.newPage()
        page.on('dialog', (dialog) => dialog.accept())
        const state = (text) =>
          page.waitForFunction((text) => document.querySelector('#state').innerText.startsWith(text), text)
        await page.goto(url)
        const row = page.locator('#table-dead tr', { hasText: key })
        await row.locator('button').click()
        await state(`Done: ${key}`)
        await assert.rejects(jobs.result(key), { code: 'JOB_DEAD' })
        await row.locator('button').waitFor()
        hasExpired = true
        await state('No figures: the response is not JSON but text/html')
        await row.locator('button').click()
        await state('Not done: status 401')
        await page.close()
      }
    } finally {
      await own.close()
    }
  },
)
