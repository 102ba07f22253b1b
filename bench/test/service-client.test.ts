/**
 * The client of the table `service` against servers of its own: what its latencies count, which it has, and
 * that it detects a wrong response and a missing one.
 *
 * The client process itself is stopped for a while, as a busy machine does it: what was due meanwhile is
 * late.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { GREETING } from '../contenders/service/work.ts'
import { ask, builtClient, type ClientReport } from '../tables/service/client.ts'

const client = builtClient((what, why) => assert.fail(`${what}: ${why}`))!

/** Ask a server that does `answer` for hello, `perSecond` times a second. */
async function asked(seconds: number, perSecond: number, answer: RequestListener): Promise<ClientReport> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  try {
    return await ask(client, { port, route: 'hello', connections: 10, seconds, perSecond })
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

const greet: RequestListener = (_, answer) => {
  answer.setHeader('content-length', GREETING.length)
  answer.end(GREETING)
}

/** The client process that runs now: the only child of this one. */
function clientPid(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8'))
}

test('what was due while the client itself was stopped is late', async () => {
  let answers = 0
  const report = await asked(1, 500, (request, answer) => {
    greet(request, answer)
    if ((answers += 1) !== 300) return
    const pid = clientPid()
    process.kill(pid, 'SIGSTOP')
    setTimeout(() => process.kill(pid, 'SIGCONT'), 300)
  })
  assert.equal(report.answers, 500)
  // 150 of the 350 that count were due in these 300 ms, evenly.
  assert.ok(report.us.p99 > 200_000, `p99 ${report.us.p99} µs`)
})

test('an answer that waits makes those behind it on its connection late', async () => {
  let answers = 0
  const report = await asked(1, 500, (request, answer) => {
    if ((answers += 1) === 300) setTimeout(() => greet(request, answer), 200)
    else greet(request, answer)
  })
  // One in ten of those due in these 200 ms waited for it: ten of 350.
  assert.equal(report.answers, 500)
  assert.ok(report.us.max > 190_000 && report.us.p50 < 100_000, JSON.stringify(report.us))
  assert.ok(report.us.p99 > 100_000, JSON.stringify(report.us))
})

test('of few samples there is no p99.9', async () => {
  const { us } = await asked(0.5, 500, greet)
  assert.deepEqual(Object.keys(us), ['p50', 'p99', 'max'])
})

test('unpaced, each connection asks again at once', async () => {
  const { answers, seconds, us } = await asked(0.5, 0, greet)
  assert.ok(answers > 100 && seconds < 2, `${answers} in ${seconds} s`)
  assert.ok(us.p50 > 0 && us.p50 <= us.p99 && us.p99 <= us.max)
})

const WRONG: readonly (readonly [string, RequestListener])[] = [
  ['another text', (_, answer) => void answer.end('jello')],
  ['more text', (_, answer) => void answer.end(`${GREETING}!`)],
  ['another status', (request, answer) => greet(request, Object.assign(answer, { statusCode: 500 }))],
  ['no length', (_, answer) => (answer.write(GREETING), void answer.end())],
  ['a closed connection', (_, answer) => void answer.destroy()],
]
for (const [what, answer] of WRONG) {
  test(`${what} is a wrong answer`, async () => {
    await assert.rejects(asked(0.5, 100, answer), { code: 'WRONG_ANSWER' })
  })
}
