/**
 * The order of table contract: 1 KiB of JSON in ASCII, and what every server responds to it.
 *
 * The keys are in the order in which fastify writes them: that of its schema, and optional ones last.
 */

/** The order, as a client sends it. */
export const ORDER = {
  reference: 'PO-2026-004711',
  currency: 'EUR',
  total: 183.45,
  express: false,
  customer: { id: 48213, name: 'Ada Lovelace', email: 'ada.lovelace@example.org', phone: '+44 20 7946 0958' },
  address: { street: "12 St James's Square", city: 'London', zip: 'SW1Y 4JH', country: 'GB' },
  lines: [
    { sku: 'BK-0001-A', title: 'Sketch of the Analytical Engine', quantity: 1, price: 39.9 },
    { sku: 'BK-0214-C', title: 'On the Economy of Machinery and Manufactures', quantity: 2, price: 24.5 },
    { sku: 'ST-1180-B', title: 'Punched cards, a thousand, plain', quantity: 3, price: 12.75 },
    { sku: 'ST-1181-B', title: 'Brass gear wheel with forty teeth', quantity: 4, price: 14.05 },
  ],
  tags: ['gift', 'invoice'],
  note:
    'Please ring twice and leave the parcel with the porter if nobody is in. The invoice goes to the ' +
    'Society, with a copy to the address above; the wheels must not be packed with the books. Deliver ' +
    'before noon on weekdays, since the porter leaves at one, and not at all on the first Monday of the ' +
    'month, which is a holiday here.',
}

/** An order with a fault, which only the route without a schema accepts. */
export const WRONG = { ...ORDER, customer: { ...ORDER.customer, email: 'nobody' } }

/** Where it is sent. */
export const PATTERN = '/shops/:shop/orders'
export const PATH = '/shops/17/orders?source=web&limit=20'

/** What a route makes of its input. */
export interface Placed<Order> {
  readonly shop: string
  readonly source: string
  readonly limit: number
  readonly order: Order
}

export function placed<Order>(shop: string, source: string, limit: number, order: Order): Placed<Order> {
  return { shop, source, limit, order }
}
