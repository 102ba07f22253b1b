/**
 * Orders: each is started once, however often the button is pressed, and followed until it has ended, also
 * by the same tab after a reload.
 */
import { $, ask, attempt, on } from './api.js'

const WORDS = { reserved: 'reserved', paid: 'paid', dispatched: 'on its way' }

/** The key of the next order: the same one while it is not known whether the shop has received it. */
let key = crypto.randomUUID()
let stream

export async function order(cents, card) {
  const { id } = await ask('POST', '/api/orders', { cents, card }, { 'idempotency-key': key })
  key = crypto.randomUUID()
  sessionStorage.setItem('order', id)
  follow()
}

/** Shows the stages of the last order. The browser connects again when the stream is lost. */
export function follow() {
  const id = sessionStorage.getItem('order')
  if (id === null) return
  const stages = []
  const show = (text) => ($('order').textContent = text)
  stream?.close()
  const own = (stream = new EventSource(`/api/orders/${id}/events`))
  show('Your order is received.')
  on(own, 'message', ({ data }) => {
    stages.push(WORDS[data])
    show(`Your order is ${stages.join(', ')}.`)
  })
  on(own, 'end', async () => {
    own.close()
    const { status, reason } = await ask('GET', `/api/orders/${id}`)
    if (status === 'failed' && own === stream) show(`Your order has failed. ${reason}`)
  })
}

void attempt(follow)
