/**
 * The client of the table `service` against a server of its own: what its latencies count, and which it has.
 *
 * The client process itself is stopped for a while, as a busy machine does it: what was due meanwhile is
 * late.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { GREETING } from '../contenders/service/work.ts'
import type { ClientReport } from '../tables/service/client.ts'

const CLIENT = fileURLToPath(new URL('../tables/service/client.js', import.meta.url))

/** Ask for hello, 500 times a second; `onAnswer` hears how many there were so far. */
async function asked(seconds: number, onAnswer: (answers: number, client: ChildProcess) => void) {
  let client: ChildProcess | undefined
  let answers = 0
  const server = createServer((_, answer) => {
    answer.setHeader('content-length', GREETING.length)
    answer.end(GREETING)
    onAnswer((answers += 1), client!)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const plan = { port, route: 'hello', connections: 10, seconds, perSecond: 500 }
  client = spawn(process.execPath, [CLIENT, JSON.stringify(plan)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  client.stdout!.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  await once(client, 'close')
  server.close()
  return JSON.parse(text) as ClientReport
}

test('what was due while the client itself was stopped is late', async () => {
  const report = await asked(1, (answers, client) => {
    if (answers !== 300) return
    client.kill('SIGSTOP')
    setTimeout(() => client.kill('SIGCONT'), 300)
  })
  assert.deepEqual([report.answers, report.wrong], [500, 0])
  // 150 of the 350 that count were due in these 300 ms, evenly.
  assert.ok(report.us.p99 > 200_000, `p99 ${report.us.p99} µs`)
})

test('of few samples there is no p99.9', async () => {
  const { us } = await asked(0.5, () => {})
  assert.deepEqual(Object.keys(us), ['p50', 'p99', 'max'])
})
