/**
 * A gateway: HTTP in front of durable jobs. `PUT /invoices/7` submits one, `GET /invoices/7` waits for its
 * result.
 *
 * With CORESPUN_NATS it uses those servers, and hosts elsewhere run the jobs (`npm run example:fleet` starts
 * all of it). Without, the same code is one process with a host in it, which sends itself requests and ends.
 */
import assert from 'node:assert/strict'
import { connect, FleetError, host } from 'corespun/fleet'
import { readiness, serve } from 'corespun/http'
import * as work from './work.ts'

const { CORESPUN_NATS: servers, CORESPUN_REPLICAS: replicas = '1', CORESPUN_NKEY: nkey } = process.env
const { HOST: address = '127.0.0.1', PORT: port = '0' } = process.env
const own = { replicas: Number(replicas), nkey, inbox: nkey && 'gateway' } // its user: keys.ts
const fleet = await connect(servers ?? 'memory:', own)
const jobs = fleet.jobs<typeof work>('invoices')

/** What is not confirmed yet, or refused by a full disk, may be asked for again, as 503 states. */
const STATUS_OF: Readonly<Record<string, number>> = {
  FLEET_TIMEOUT: 503,
  FLEET_ENGINE: 503,
  JOB_TIMEOUT: 503,
  JOB_UNKNOWN: 404,
}

const server = await serve({
  port: Number(port),
  host: address,
  routes: {
    '/ready': readiness(),
    '/invoices/:id': {
      PUT: async ({ params: { id } }) => {
        const isNew = await jobs.submit(`invoice-${id}`, 'invoice', [Number(id)], {
          retry: { attemptsMax: 10, hostsLostMax: 100 },
        })
        return new Response(null, { status: isNew ? 201 : 200 })
      },
      GET: async ({ params: { id } }) => jobs.result(`invoice-${id}`, { timeoutMs: 30_000 }),
    },
  },
  error: (cause) => {
    const status = cause instanceof FleetError ? STATUS_OF[cause.code] : undefined
    return status === undefined ? undefined : new Response(String(cause), { status })
  },
})

if (servers === undefined) {
  const module = new URL('./work.ts', import.meta.url)
  const hosting = await host(fleet, { name: 'invoices', module, jobsMax: 2 })
  assert.equal((await fetch(`${server.url}/invoices/7`, { method: 'PUT' })).status, 201)
  assert.equal((await fetch(`${server.url}/invoices/7`, { method: 'PUT' })).status, 200)
  const invoice = (await (await fetch(`${server.url}/invoices/7`)).json()) as work.Invoice
  assert.equal(invoice.cents, work.centsOf(7))
  assert.equal((await fetch(`${server.url}/invoices/8`)).status, 404)
  await hosting.close()
} else {
  console.log(server.url)
  await new Promise((resolve) => process.once('SIGTERM', resolve))
}
await server.close({ delayMs: servers === undefined ? 0 : 5000 }) // two probes of kubernetes.yaml
await fleet.close()
