/**
 * The page of customers: search, basket, product with questions. Orders are in order.js, the connection for
 * questions and news in live.js.
 */
import { $, ask, attempt, element, on, price } from './api.js'
import { connect } from './live.js'
import { follow, order } from './order.js'

let basket = { lines: [], cents: 0 }
let turn = Promise.resolve()
/** The product that is shown. */
let shown

const send = connect({
  onOpen: () => shown !== undefined && send({ enter: shown }),
  onMessage,
  onLoss: () => ($('send').disabled = true),
})

on($('search'), 'input', list)
on($('add'), 'click', () => put(shown, 1 + (basket.lines.find(({ sku }) => sku === shown)?.count ?? 0)))
on($('ask'), 'submit', ({ target }) => {
  send({ ask: target.text.value })
  target.reset()
})
on($('checkout'), 'submit', async ({ target }) => {
  try {
    await order(basket, target.card.value, putBack)
  } finally {
    await refresh()
  }
})
await attempt(() => Promise.all([list(), refresh()]))
follow(putBack)

async function list() {
  const search = $('search').value
  const found = await ask('GET', `/api/products?${new URLSearchParams({ search })}`)
  if (search !== $('search').value) return // a later search is on its way
  const rows = found.map(({ sku, name, cents }) => {
    const [row, button] = [element('li'), element('button', name)]
    on(button, 'click', () => look(sku))
    row.append(button, element('span', price(cents)))
    return row
  })
  $('products').replaceChildren(...rows)
}

async function look(sku) {
  const { name, text, cents, stock } = await ask('GET', `/api/products/${sku}`)
  shown = sku
  $('name').textContent = name
  $('text').textContent = text
  $('facts').textContent = `${price(cents)}, ${stock} in stock`
  $('questions').replaceChildren()
  $('send').disabled = true
  send({ enter: sku })
  if (!$('product').open) $('product').showModal()
}

async function put(sku, count) {
  await change('PUT', `/api/basket/${sku}`, { count })
  $('product').close()
}

async function putBack(lines) {
  for (const { sku, count } of lines) await put(sku, count)
}

function refresh() {
  return change('GET', '/api/basket')
}

/** One request of the basket after the other, so that what is shown last is the newest. */
function change(...request) {
  const done = turn.then(() => ask(...request)).then(show)
  turn = done.catch(() => {})
  return done
}

function show(next) {
  basket = next
  const rows = basket.lines.map(({ sku, name, cents, count }) => {
    const properties = { type: 'number', min: 0, max: 99, value: count, ariaLabel: `Pieces of ${name}` }
    const [row, input] = [element('li', name), element('input', '', properties)]
    on(input, 'change', () => put(sku, input.valueAsNumber || 0))
    row.append(input, element('span', price(cents * count)))
    return row
  })
  $('lines').replaceChildren(...rows)
  $('total').textContent = price(basket.cents)
  $('checkout').hidden = rows.length === 0
}

/** The history of a product that was entered, a question, a refusal, or news of all products. */
function onMessage({ questions, question, refused, products }) {
  if (questions !== undefined) {
    $('questions').replaceChildren(...questions.map(rowOf))
    $('send').disabled = false
  }
  if (question !== undefined) $('questions').append(rowOf(question))
  if (refused !== undefined) $('questions').append(element('li', refused))
  if (products !== undefined) void attempt(() => Promise.all([list(), refresh()]))
}

function rowOf({ name, text, at }) {
  return element('li', `${name}: ${text}`, { title: new Date(at).toLocaleString() })
}
