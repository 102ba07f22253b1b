/**
 * examples/shop in a real browser, as customers and staff use it, and its API as a program asks it.
 *
 * Payments go to a provider of the test, which decides when it responds, so the server can be killed while
 * one is made. Orders are in SQLite: a Node without it starts a newer one. Over 3 s of CPU: Chromium, and
 * three starts of a server with its workers.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { folderOf, NODE } from '../../dist/fleet/engine/sqlite/node.test.support.js'
import { inRoot } from '../../scripts/set-up/index.mjs'
import { launched, skip as noBrowser } from './chromium.mjs'

const noSqlite = NODE === undefined && 'without SQLite; npm test -- nodes installs a Node that has it'
const skip = noSqlite || noBrowser
const PASSWORD = 'a long password'
const STEP_MS = 60_000
const folder = folderOf('shop')

/** The keys of payments that were cancelled. */
const cancelled = []
/** Payments by the card `held`: answered by `release`, and then at once. */
const held = []
let release
const released = new Promise((resolve) => (release = resolve))
const provider = createServer(async (request, response) => {
  const key = decodeURIComponent(request.url.split('/').at(-1))
  if (request.method === 'DELETE') {
    cancelled.push(key)
    return response.end()
  }
  const { card } = JSON.parse(Buffer.concat(await request.toArray()).toString())
  if (card === 'held') {
    held.push(key)
    await released
  }
  if (card === 'declined') return response.writeHead(402).end()
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ receipt: `receipt of ${key}` }))
})

let server
let browser
/** Two tabs of one browser, since each browser and each tab costs a second of CPU. */
let tabs
const failures = []

before(async () => {
  if (noSqlite) return
  provider.listen(0, '127.0.0.1')
  await once(provider, 'listening')
  server = await served('0')
  if (noBrowser) return
  browser = await launched()
  const context = await browser.newContext({ httpCredentials: { username: 'ada', password: PASSWORD } })
  context.setDefaultTimeout(STEP_MS)
  tabs = [await context.newPage(), await context.newPage()]
  for (const tab of tabs) tab.on('pageerror', (error) => failures.push(String(error)))
})

after(async () => {
  await browser?.close()
  release()
  provider.close()
  provider.closeAllConnections()
  if (server === undefined) return
  server.child.kill('SIGTERM')
  assert.deepEqual(await server.ended, [0, null])
})

/** The shop on a port, once it serves. */
async function served(port, { node = NODE, words = ['--workers', '2'], env = {} } = {}) {
  const command = [inRoot('lib/cli/main.js'), 'serve', 'examples/shop/app.ts', '--port', port, ...words]
  const { NODE_TEST_CONTEXT: _, ...rest } = process.env
  const address = provider.address()
  const own = {
    NODE_V8_COVERAGE: '', // another Node writes what this one cannot add up
    SHOP_DATA: folder,
    SHOP_PASSWORD: PASSWORD,
    ...(address !== null && { SHOP_PAYMENTS: `http://127.0.0.1:${address.port}` }),
  }
  const stdio = ['ignore', 'pipe', 'inherit']
  const child = spawn(node, command, { cwd: inRoot(), env: { ...rest, ...own, ...env }, stdio })
  const ended = once(child, 'close')
  let text = ''
  for await (const piece of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false }))
    if (/serving .*\n/.test((text += piece))) break
  child.stdout.resume()
  const url = /http:\/\/[\d.:]+/.exec(text)?.[0]
  assert.ok(url, `it does not serve: ${text}`)
  return { child, ended, url, text }
}

/** A test in the tab of a customer, and for some in another one; nothing on the pages may have failed. */
function visit(name, body) {
  test(name, { skip, timeout: 4 * STEP_MS }, async () => {
    await tabs[0].goto(server.url)
    await body(...tabs)
    assert.deepEqual(failures.splice(0), [])
  })
}

async function shown(page, selector, text) {
  await page.locator(selector, { hasText: text }).first().waitFor()
}

/** From the list into the basket. */
async function take(page, name) {
  await page.getByRole('button', { name, exact: true }).click()
  await page.click('#add')
  await shown(page, '#lines li', name)
}

async function order(page, card) {
  await page.fill('#checkout [name=card]', card)
  await page.click('#checkout button')
}

async function stockOf(sku) {
  return (await (await fetch(`${server.url}/api/products/${sku}`)).json()).stock
}

visit('a customer searches, fills a basket, which a reload keeps, and follows the order', async (page) => {
  const before = await stockOf('tea-sencha')
  await page.fill('#search', 'SENCHA')
  await page.waitForFunction(() => document.querySelectorAll('#products li').length === 1)
  await take(page, 'Sencha')
  await page.fill('#lines input', '3')
  await page.press('#lines input', 'Tab')
  await shown(page, '#total', '€ 37.50')
  await page.reload()
  await shown(page, '#total', '€ 37.50')
  await order(page, 'visa')
  await shown(page, '#order', 'Your order is reserved, paid, on its way.')
  assert.equal(await stockOf('tea-sencha'), before - 3)
  await page.waitForSelector('#checkout', { state: 'hidden' })
  await page.reload()
  await shown(page, '#order', 'Your order is reserved, paid, on its way.')
})

visit(
  'a declined card is stated and its payment cancelled; pieces and basket are as before',
  async (page) => {
    const before = await stockOf('cup-bowl')
    await take(page, 'Tea bowl')
    await order(page, 'declined')
    await shown(page, '#order', 'Your order has failed. The card was declined.')
    assert.equal(await stockOf('cup-bowl'), before)
    assert.equal(cancelled.length, 1)
    await shown(page, '#lines li', 'Tea bowl')
    await order(page, 'visa')
    await shown(page, '#order', 'Your order is reserved, paid, on its way.')
    assert.equal(await stockOf('cup-bowl'), before - 1)
  },
)

visit('more than there is in stock is refused, with how much there is', async (page) => {
  await take(page, 'Cast-iron teapot')
  await page.fill('#lines input', '4')
  await page.press('#lines input', 'Tab')
  await shown(page, '#total', '€ 236.00')
  await order(page, 'visa')
  await shown(page, '#order', 'There are only 3 of Cast-iron teapot left.')
  assert.equal(await stockOf('pot-cast-iron'), 3)
  await shown(page, '#total', '€ 236.00')
  await page.fill('#lines input', '0')
  await page.press('#lines input', 'Tab')
  await page.waitForSelector('#checkout', { state: 'hidden' })
})

visit('a question is seen by all who look at the product, also later', async (page, other) => {
  await other.goto(server.url)
  for (const one of [page, other]) {
    await one.getByRole('button', { name: 'Rooibos' }).click()
    await one.waitForSelector('#product[open]')
  }
  await page.fill('#ask input', '<b>Is it sweet?</b>')
  await page.click('#ask button')
  for (const one of [page, other]) await shown(one, '#questions li', /^guest \w{4}: <b>Is it sweet\?<\/b>$/)
  await other.reload()
  await other.getByRole('button', { name: 'Rooibos' }).click()
  await shown(other, '#questions li', /^guest \w{4}: <b>Is it sweet\?<\/b>$/)
})

visit('a file of the staff changes the pages of customers, and its faults are shown', async (page, staff) => {
  await shown(page, '#products li', 'Rooibos')
  await staff.goto(`${server.url}/staff`)
  const whisk = { sku: 'whisk', name: 'Bamboo whisk', text: 'For matcha.', cents: 1900, stock: 5 }
  const buffer = Buffer.from(`${JSON.stringify(whisk)}\n{"sku":"W"}\nnot JSON\n`)
  await staff.setInputFiles('[name=file]', { name: 'new.ndjson', mimeType: 'text/plain', buffer })
  await staff.click('#upload button')
  await shown(staff, '#faults li', 'Products stored: 1')
  await shown(staff, '#faults li', /Line 2: sku .*name/)
  await shown(staff, '#faults li', 'Line 3: not JSON')
  await shown(page, '#products li', 'Bamboo whisk')
  for (const [path, selector, text] of [
    ['/staff/dashboard', 'body', '/api/products'],
    ['/staff/metrics', 'pre', 'http_route="/api/products"'],
    ['/docs/', '.opblock-summary', '/api/basket/{sku}'],
  ]) {
    await staff.goto(server.url + path)
    await shown(staff, selector, text)
  }
  await staff.goto('about:blank')
})

visit('an order is completed, once, by the server that starts after a crash', async (page) => {
  const stock = await stockOf('tin-large')
  await take(page, 'Tea tin, large')
  await order(page, 'held')
  await shown(page, '#order', 'Your order is reserved.')
  await until(() => held.length > 0)
  const count = held.length
  const { port } = new URL(server.url)
  server.child.kill('SIGKILL')
  await server.ended
  server = await served(port)
  await until(() => held.length > count) // taken up when the lease of the dead process has ended
  release()
  await shown(page, '#order', 'Your order is reserved, paid, on its way.')
  assert.equal(await stockOf('tin-large'), stock - 1)
  assert.equal(new Set(held).size, 1, 'one payment has one key')
})

async function until(isReached) {
  const endMs = performance.now() + STEP_MS
  while (!isReached()) {
    assert.ok(performance.now() < endMs, `not reached in ${STEP_MS} ms: ${isReached}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Requests with the cookie of one customer. */
function customerOf(url) {
  let cookie = ''
  return async (method, path, body, headers = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: { cookie, ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie
    const text = await response.text()
    const isJson = /json/.test(response.headers.get('content-type'))
    return { status: response.status, body: isJson ? JSON.parse(text) : text }
  }
}

test('what does not fit is refused, and nobody sees the order of another', { skip: noSqlite }, async () => {
  const [ask, other] = [customerOf(server.url), customerOf(server.url)]
  const id = randomUUID()
  const start = (cents) => ask('POST', '/api/orders', { cents, card: 'visa' }, { 'idempotency-key': id })
  const statuses = []
  const check = async (expected, asked) => {
    const { status, body } = await asked
    statuses.push(status)
    assert.equal(status, expected, JSON.stringify(body))
    return body
  }
  await check(409, start(690)) // an empty basket
  await check(404, ask('PUT', '/api/basket/nothing', { count: 1 }))
  await check(422, ask('PUT', '/api/basket/tea-assam', { count: -1 }))
  await check(200, ask('PUT', '/api/basket/tea-assam', { count: 1 }))
  await check(409, start(1)) // not the price
  const body = await check(202, start(690))
  assert.deepEqual(await check(202, start(690)), body) // the same order, though the basket is empty now
  await check(200, ask('PUT', '/api/basket/tea-sencha', { count: 1 }))
  const { detail } = await check(409, start(1250)) // another basket
  assert.match(detail, /earlier order/)
  await check(200, ask('PUT', '/api/basket/tea-sencha', { count: 0 }))
  assert.deepEqual(await check(200, ask('GET', '/api/basket')), { lines: [], cents: 0 })
  assert.match(await check(200, ask('GET', `/api/orders/${id}/events`)), /data: dispatched\n\nevent: end/)
  assert.deepEqual(await check(200, ask('GET', `/api/orders/${id}`)), { status: 'done' })
  await check(204, ask('GET', `/api/orders/${id}/events`, undefined, { 'last-event-id': 'end' }))
  await check(404, other('GET', `/api/orders/${id}`))
  await check(404, other('GET', `/api/orders/${id}/events`))
  const product = JSON.stringify({ sku: 'a', name: 'A', text: '', cents: 1, stock: 1 })
  await check(401, ask('PUT', '/staff/products', product))
  const staff = { authorization: `Basic ${Buffer.from(`ada:${PASSWORD}`).toString('base64')}` }
  await check(403, ask('PUT', '/staff/products', product, { ...staff, 'sec-fetch-site': 'cross-site' }))
  const long = await check(200, ask('PUT', '/staff/products', 'x'.repeat(100_000), staff))
  assert.deepEqual(long.faults, [{ line: 1, fault: 'longer than 16384 characters' }])
  const between = [product, ' '.repeat(200_000), product, 'x'.repeat(200_000), product].join('\n')
  const { products, faults } = await check(200, ask('PUT', '/staff/products', between, staff))
  assert.deepEqual([products, faults], [3, [{ ...long.faults[0], line: 4 }]])
})

test('on any Node, a sandbox and orders in memory are for trying it out', async (t) => {
  const env = { SHOP_DATA: folderOf('sandbox'), SHOP_FLEET: 'memory:shop' }
  for (const name of ['SHOP_PAYMENTS', 'SHOP_PASSWORD']) env[name] = undefined
  const sandbox = await served('0', { node: process.execPath, words: ['--workers', '1'], env })
  t.after(async () => {
    sandbox.child.kill('SIGTERM')
    await sandbox.ended
  })
  assert.match(sandbox.text, /The password of the staff is [\w-]{12} \(/)
  const ask = customerOf(sandbox.url)
  for (const [card, expected] of [
    ['visa', { status: 'done' }],
    ['declined', { status: 'failed', reason: 'The card was declined.' }],
  ]) {
    await ask('PUT', '/api/basket/tea-assam', { count: 1 })
    const headers = { 'idempotency-key': randomUUID() }
    const { body } = await ask('POST', '/api/orders', { cents: 690, card }, headers)
    await ask('GET', `/api/orders/${body.id}/events`)
    assert.deepEqual((await ask('GET', `/api/orders/${body.id}`)).body, expected)
  }
})
