/**
 * A durable run as an endpoint: 202 with where to look, its status, its progress as server-sent events.
 *
 * `node examples/durable/endpoint.ts` plays a client that sends its request twice, loses the stream after the
 * first event and reconnects with Last-Event-ID, as EventSource does.
 */
import assert from 'node:assert/strict'
import { durable, expose, runs, signal, step } from 'corespun/durable'
import { connect } from 'corespun/fleet'
import { createApp, events, openApi, route, StatusError } from 'corespun/http'
import { z } from 'zod'

const PAGES_MAX = 100

const report = durable('report', function* ({ pages }: { pages: number }) {
  const lines: string[] = []
  yield* expose(() => lines)
  for (let page = 1; page <= pages; page++) {
    lines.push(yield* step('page', async (n: number) => `page ${n} of ${pages}`, [page]))
    if (page === 1) yield* signal('go on') // only so that the client below can leave here
  }
  return lines.length
})

const fleet = await connect('memory:reports') // or sqlite:work.db
const work = await runs(fleet, { definitions: [report] })

const Key = z.object({ key: z.string().regex(/^[\w-]{1,64}$/) })
const Reached = z.object({
  'last-event-id': z
    .string()
    .regex(/^(\d{1,9}|end)$/)
    .optional(),
})
const Status = z.object({
  status: z.string(),
  steps: z.int(),
  result: z.int().optional(),
  error: z.string().optional(),
})
const Accepted = z.object({ key: z.string() })
const unknown = (error: { code?: string }): never => {
  throw error.code === 'RUN_UNKNOWN' ? new StatusError(404, 'there is no such report') : error
}

const api = {
  '/reports': {
    POST: route(
      {
        summary: 'Start a report; the same Idempotency-Key is the same report',
        headers: z.object({ 'idempotency-key': Key.shape.key }),
        body: z.object({ pages: z.int().min(1).max(PAGES_MAX) }),
        responses: { 202: Accepted },
      },
      async ({ headers, body, respond }) => {
        const { key } = await work.start('report', body, { key: headers['idempotency-key'] })
        return respond(202, { key }, { location: `/reports/${key}` })
      },
    ),
  },
  '/reports/:key': {
    GET: route({ params: Key, responses: { 200: Status } }, async ({ params }) => {
      const run = work.get('report', params.key)
      const { status, steps, error } = await run.state().catch(unknown)
      return {
        status,
        steps: steps.length,
        ...(status === 'done' ? { result: await run.result() } : {}),
        ...(status === 'failed' ? { error: String(error) } : {}),
      }
    }),
    DELETE: route({ params: Key, responses: { 202: Accepted } }, async ({ params, respond }) => {
      await work.get('report', params.key).cancel().catch(unknown)
      return respond(202, params, { location: `/reports/${params.key}` })
    }),
  },
  '/reports/:key/events': {
    GET: route({ params: Key, headers: Reached }, async ({ params, headers }) => {
      const last = headers['last-event-id']
      if (last === 'end') return new Response(null, { status: 204 }) // EventSource reconnects no more
      const run = work.get('report', params.key)
      await run.state().catch(unknown)
      return events(async function* (left) {
        let next = last === undefined ? 0 : Number(last) + 1
        for await (const lines of run.progress<string[]>({ signal: left }))
          for (; next < lines.length; next++) yield { id: String(next), data: lines[next] }
        yield { id: 'end', event: 'end', data: (await run.state()).status }
      })
    }),
  },
}
const document = openApi(api, { info: { title: 'Reports', version: '1.0.0' } })
const app = createApp({ routes: { ...api, '/openapi.json': document } })

const headers = { 'content-type': 'application/json', 'idempotency-key': 'order-17' }
const post = () => app.inject('/reports', { method: 'POST', headers, body: '{"pages":3}' })
const accepted = await post()
assert.equal(accepted.status, 202)
const location = accepted.headers.get('location')!
assert.equal((await post()).headers.get('location'), location)

const stream = (await app.inject(`${location}/events`)).body!.pipeThrough(new TextDecoderStream())
let seen = ''
for await (const text of stream) if ((seen += text).includes('id: 0')) break // the connection is lost
assert.match(seen, /id: 0\ndata: page 1 of 3/)
assert.equal(((await (await app.inject(location)).json()) as { result?: number }).result, undefined)

await work.get('report', 'order-17').signal('go on', undefined)
const again = await app.inject(`${location}/events`, { headers: { 'last-event-id': '0' } })
const rest = await again.text()
assert.equal(rest.includes('id: 0'), false)
assert.match(rest, /id: 1\ndata: page 2 of 3\n\nid: 2\ndata: page 3 of 3\n\nevent: end\nid: end\ndata: done/)
assert.equal((await app.inject(`${location}/events`, { headers: { 'last-event-id': 'end' } })).status, 204)
assert.deepEqual(await (await app.inject(location)).json(), { status: 'done', steps: 4, result: 3 })
assert.equal((await app.inject('/reports/none')).status, 404)
assert.equal((await app.inject('/reports/none/events')).status, 404)
console.log(`${location}: done; the client saw each line once`)

await work.close()
await fleet.close()
