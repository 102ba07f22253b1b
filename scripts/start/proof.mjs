/**
 * One line of proof for each project that Skein measures itself with: figures of this machine, of now.
 *
 * Each takes a second or less, so they say what order things have; the tables of `npm run bench` are the
 * careful ones. Nothing here is stored, and what gives a wrong answer is not measured.
 */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { pathToFileURL } from 'node:url'
import { inRoot } from '../set-up/index.mjs'

const MEASURE_MS = 700
const CONNECTIONS = 50

const load = (path) => import(pathToFileURL(inRoot('dist', path)).href)

/**
 * Measure, and give each line as soon as it is known.
 * @param {string} url Where the service answers.
 * @param {(line: string) => void} say
 */
export async function prove(url, say) {
  const proofs = [arrows, fibers, () => requests(url), threads]
  for (const proof of proofs) {
    // A figure that cannot be had must not stop the service.
    const line = await proof().catch((error) => `(not measured: ${error.message})`)
    say(`  ${line}`)
  }
}

async function arrows() {
  const { lift } = await load('arrow/index.js')
  const [addOne, double] = [lift((n) => n + 1), lift((n) => n * 2)]
  assert.equal(addOne.andThen(double).run(20), 42)
  let sum = 0
  const rate = perSecond(10_000, () => (sum = (sum + addOne.andThen(double).run(sum & 1023)) | 0))
  return `zio-arrow     arrows composed and run           ${millions(rate)} million/s`
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
  return `futures       16 factorial tasks at once        ${counted(rate)} times/s, on all cores`
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
  const each = `${counted(rate)} requests/s (this client is the limit)`
  return `zio-http      GET /hello, ${CONNECTIONS} connections        ${each}`
}

async function threads() {
  const { zone } = await load('zone/index.js')
  const { store } = await load('store/index.js')
  const worker = zone.create('proof trip', { workers: 1 })
  const tripsUs = []
  const empty = () => {}
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
  const rate = perSecond(1000, () => {
    values.set('key', value)
    return values.get('key')
  })
  assert.deepEqual(values.get('key'), value)
  values.close()
  const stored = `store set and get ${(1e6 / rate).toFixed(1)} µs`
  return `napajs        call in another thread, p50       ${p50.toFixed(1)} µs; ${stored}`
}

function connected(host, port) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => resolve(socket))
    socket.setNoDelay(true).once('error', reject)
  })
}

/** Calls of `work` in a second, in batches of `batch`. */
function perSecond(batch, work) {
  for (let warm = 0; warm < batch; warm += 1) work()
  let calls = 0
  const startMs = performance.now()
  while (performance.now() - startMs < MEASURE_MS) {
    for (let index = 0; index < batch; index += 1) work()
    calls += batch
  }
  return (calls * 1000) / (performance.now() - startMs)
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
