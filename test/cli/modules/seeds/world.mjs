/**
 * A world with jobs, sessions and a response that lasts, from the package as it is installed.
 *
 * Its bundle takes functions of Node at its imports, where the sources look them up.
 */
import assert from 'node:assert/strict'
import { jsonErrors, requestId, use } from 'corespun/http'
import { check } from 'corespun/test'

const seen = []
const body = async ({ connect, fetch, host, serve, sleep }) => {
  await host(connect(), { name: 'mails', module: { send: async (to) => sleep(5).then(() => to) } })
  const jobs = connect().jobs('mails')
  await jobs.submit('a', 'send', ['ada'])
  assert.equal(await jobs.result('a'), 'ada')
  const pull = async (controller) => {
    await sleep(20)
    controller.close()
  }
  const start = (controller) => controller.enqueue(new Uint8Array(10))
  const lasting = () => new Response(new ReadableStream({ start, pull }))
  await serve({ routes: use({ '/': lasting }, requestId()), error: jsonErrors() })
  const response = await fetch('http://localhost:3000')
  assert.equal((await response.arrayBuffer()).byteLength, 10)
  seen.push(response.headers.get('x-request-id'))
}
for (let time = 0; time < 2; time++) await check({ seeds: 2, stall: 0 }, body)
assert.deepEqual(seen.slice(0, 3), seen.slice(3))
