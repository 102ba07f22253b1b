/**
 * A measurement for each published benchmark that `npm run report` has the tables of: figures of this
 * machine, of now, and below each the published figure.
 *
 * Each takes a second or less, so they show orders of magnitude; the tables of `npm run bench` are the
 * careful ones. Nothing here is stored, and a program with a wrong result is not measured.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { availableParallelism } from 'node:os'
import { pathToFileURL } from 'node:url'
import { inRoot } from '../set-up/index.mjs'

const MEASURE_MS = 700
const CONNECTIONS = 50

/** The width of the column that names what was measured. */
const WHAT_CHARS = 42

const load = (path) => import(pathToFileURL(inRoot('lib', path)).href)

/**
 * Measure, and print each figure as soon as it is available.
 * @param {string} url Where the service answers.
 * @param {(line: string) => void} print
 */
export async function prove(url, print) {
  const proofs = [arrows, fibers, () => requests(url), threads]
  for (const proof of proofs) {
    // A figure that cannot be had must not stop the service.
    const line = await proof().catch((error) => `(not measured: ${error.message})`)
    print(`  ${line}`)
  }
}

async function arrows() {
  const { lift } = await load('arrow/index.js')
  const [addOne, double] = [lift((n) => n + 1), lift((n) => n * 2)]
  assert.equal(addOne.andThen(double).run(20), 42)
  // Each input hangs on the result before it, and the last is compared: no call can be left out.
  let [sum, expected] = [0, 0]
  const { rate, calls } = perSecond(10_000, () => (sum = (sum + addOne.andThen(double).run(sum & 1023)) | 0))
  for (let call = 0; call < calls; call += 1) expected = (expected + ((expected & 1023) + 1) * 2) | 0
  assert.ok(sum === expected, 'arrows composed and run: a wrong sum')
  const theirs = published('1-arrow', 'arrow/api', 'endThen').ops
  return linesOf(
    'two functions, composed and run',
    `${millions(rate)} million/s`,
    `published for ZIO Arrow (Scala): ${millions(theirs)} million/s, composed and not run`,
  )
}

async function fibers() {
  const { zone } = await load('zone/index.js')
  const workers = zone.create('proof')
  const task = (n) => {
    let sum = 0
    for (let upTo = 0; upTo <= n; upTo += 1) {
      let product = 1
      for (let factor = 2; factor <= upTo; factor += 1) product *= factor
      sum += product
    }
    return sum
  }
  const expected = task(20)
  const sixteen = async () => {
    const sums = await Promise.all(Array.from({ length: 16 }, () => workers.run(task, 20)))
    assert.ok(sums.every((sum) => sum === expected))
  }
  const rate = await perSecondLater(sixteen)
  await workers.close()
  const theirs = published('2-fiber', 'fiber/setup-2/parallel', 'default-20').ops
  return linesOf(
    '16 factorial tasks at once, on all cores',
    `${counted(rate)} times/s`,
    `published for fibers of ZIO (Scala): ${counted(theirs)} times/s, one sum dealt to 16`,
  )
}

/** Requests of keep-alive connections, one in flight on each, from this one thread. */
async function requests(url) {
  const { hostname, port } = new URL(url)
  const request = `GET /hello HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`
  const host = hostname.replace(/^\[|\]$/g, '') // of IPv6
  let [answers, wrong] = [0, 0]
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => connected(host, Number(port))))
  const startMs = performance.now()
  for (const socket of sockets) {
    socket.setEncoding('latin1').on('data', (answer) => {
      // It is short and comes whole.
      if (answer.startsWith('HTTP/1.1 200 ') && answer.endsWith('\r\n\r\nhello')) answers += 1
      else wrong += 1
      socket.write(request)
    })
    socket.write(request)
  }
  await new Promise((resolve) => setTimeout(resolve, MEASURE_MS))
  const rate = (answers * 1000) / (performance.now() - startMs)
  for (const socket of sockets) socket.destroy()
  assert.equal(wrong, 0, `GET /hello: ${wrong} wrong answers`)
  assert.ok(answers > 0, 'GET /hello: no answers')
  const theirs = published('3-http', 'http/hello', 'zio-http-jdk11').rps
  return linesOf(
    `GET /hello, ${CONNECTIONS} connections`,
    `${counted(rate)} requests/s (this client is the limit)`,
    `published for zio-http (a server in Scala): ${counted(theirs)} requests/s, 100 connections`,
  )
}

async function threads() {
  const { zone } = await load('zone/index.js')
  const { store } = await load('store/index.js')
  const worker = zone.create('proof trip', { workers: 1 })
  const tripsUs = []
  const empty = () => {}
  await worker.run(empty) // starts its thread, which is not what is measured
  const endMs = performance.now() + MEASURE_MS
  while (performance.now() < endMs) {
    const startMs = performance.now()
    await worker.run(empty)
    tripsUs.push((performance.now() - startMs) * 1000)
  }
  await worker.close()
  const p50 = tripsUs.sort((a, b) => a - b)[tripsUs.length >> 1]
  const values = store.create('proof')
  const value = { id: 7, name: 'a value of a hundred bytes', tags: ['one', 'two'], at: 1.5 }
  const { rate } = perSecond(1000, () => {
    values.set('key', value)
    return values.get('key')
  })
  assert.deepEqual(values.get('key'), value)
  values.close()
  // Calls one after the other find their worker awake, where it has a core of its own.
  const cores = availableParallelism()
  const condition = cores === 1 ? 'one core' : `${cores} cores, spinning`
  const stored = `store set and get ${(1e6 / rate).toFixed(1)} µs`
  const theirsUs = (published('4-napajs', 'napa/overhead', '10000').ms * 1000) / 10_000
  return linesOf(
    'empty function in another thread, p50',
    `${p50.toFixed(1)} µs (${condition}); ${stored}`,
    `published for napajs (threads for Node): ${theirsUs.toFixed(1)} µs, mean of 10,000 calls`,
  )
}

/** What was measured, with its figure; below it the published figure. */
function linesOf(what, figure, theirs) {
  return `${what.padEnd(WHAT_CHARS)}${figure}\n${' '.repeat(2 + WHAT_CHARS)}${theirs}`
}

/** The figures of one row that another project has published, from other machines (bench/seeds). */
function published(seed, table, row) {
  const { tables } = JSON.parse(readFileSync(inRoot('bench', 'seeds', `${seed}.json`), 'utf8'))
  return tables.find(({ id }) => id === table).rows.find(({ key }) => key === row).cells
}

function connected(host, port) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => resolve(socket))
    socket.setNoDelay(true).once('error', reject)
  })
}

/**
 * Calls of `work` in a second (`rate`), in batches of `batch`; and how many there were, of warming up too.
 */
function perSecond(batch, work) {
  for (let warm = 0; warm < batch; warm += 1) work()
  let calls = 0
  const startMs = performance.now()
  while (performance.now() - startMs < MEASURE_MS) {
    for (let index = 0; index < batch; index += 1) work()
    calls += batch
  }
  return { rate: (calls * 1000) / (performance.now() - startMs), calls: calls + batch }
}

async function perSecondLater(work) {
  for (let warm = 0; warm < 50; warm += 1) await work()
  let calls = 0
  const startMs = performance.now()
  while (performance.now() - startMs < MEASURE_MS) {
    await work()
    calls += 1
  }
  return (calls * 1000) / (performance.now() - startMs)
}

const counted = (number) => Math.round(number).toLocaleString('en-US')
const millions = (number) => (number / 1e6).toFixed(0)
