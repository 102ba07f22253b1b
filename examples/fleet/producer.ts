/**
 * A producer: submits invoices to the gateway by HTTP, sixteen at a time, and reads the result of each.
 *
 * Whatever fails is sent again, with the same number: the key makes that safe. A line of JSON is printed for
 * each invoice that is accepted, and one for each result. Without a gateway there is nothing to do.
 */
import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import { centsOf, type Invoice } from './work.ts'

const { CORESPUN_GATEWAY: gateway, CORESPUN_JOBS: count = '0' } = process.env
const AT_ONCE = 16
const RETRY_MS = 100
let next = 0

/** The first response with a status below 300. */
async function certainly(path: string, init: RequestInit = {}): Promise<Response> {
  for (;;) {
    try {
      const response = await fetch(`${gateway}${path}`, { ...init, signal: AbortSignal.timeout(60_000) })
      if (response.ok) return response
    } catch {
      // The gateway is away, or late.
    }
    await setTimeout(RETRY_MS)
  }
}

async function produce(): Promise<void> {
  while (next < Number(count)) {
    const id = next++
    await certainly(`/invoices/${id}`, { method: 'PUT' })
    console.log(JSON.stringify({ accepted: id }))
    // Every seventh is sent twice, as by a client that has not received its response.
    if (id % 7 === 0) await certainly(`/invoices/${id}`, { method: 'PUT' })
    const { cents, run } = (await (await certainly(`/invoices/${id}`)).json()) as Invoice
    assert.equal(cents, centsOf(id))
    console.log(JSON.stringify({ done: id, run }))
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, produce))
