/**
 * Orders: each is started once, however often the button is pressed, and followed until it has ended, also
 * by the same tab after a reload. What was in one that has failed is for the basket again.
 */
import { $, ask, on } from './api.js'

const WORDS = { reserved: 'reserved', paid: 'paid', dispatched: 'on its way' }

/** The key of the next order: the same one while it is not known whether the shop has received it. */
let key = crypto.randomUUID()
let stream

/** @param onFailed Receives the lines of the order, and may return a promise. */
export async function order({ lines, cents }, card, onFailed) {
  const renew = () => (key = crypto.randomUUID())
  const asked = ask('POST', '/api/orders', { cents, card }, { 'idempotency-key': key })
  const { id } = await asked.catch((error) => {
    if (error.status === 409) renew()
    throw error
  })
  renew()
  sessionStorage.setItem('order', JSON.stringify({ id, lines }))
  follow(onFailed)
}

/** Shows the stages of the last order. The browser connects again when the stream is lost. */
export function follow(onFailed) {
  const { id, lines } = JSON.parse(sessionStorage.getItem('order')) ?? {}
  if (id === undefined) return
  const stages = []
  const show = (text) => ($('order').textContent = text)
  stream?.close()
  const own = (stream = new EventSource(`/api/orders/${id}/events`))
  show('Your order is received.')
  on(own, 'message', ({ data }) => {
    stages.push(WORDS[data])
    show(`Your order is ${stages.join(', ')}.`)
  })
  on(own, 'error', () => {
    if (own.readyState === EventSource.CLOSED) show('Your order cannot be followed now; load the page again.')
  })
  on(own, 'end', async () => {
    own.close()
    const { status, reason } = await ask('GET', `/api/orders/${id}`)
    if (status !== 'failed' || own !== stream) return
    sessionStorage.removeItem('order')
    show(`Your order has failed. ${reason}`)
    await onFailed(lines)
  })
}
