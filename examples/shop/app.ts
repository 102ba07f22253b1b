/**
 * A shop on every core: search, basket, checkout, questions; staff with an upload, figures and a dashboard.
 *
 *   npx corespun serve examples/shop/app.ts --port 8080
 *
 * Then open http://127.0.0.1:8080, /docs/ for its API, and /staff with the password that is printed. What it
 * keeps is in the folder shop-data; settings.ts has what the environment changes.
 *
 * Each worker of `corespun serve` runs this module. What they share is in stores.ts, orders are durable runs
 * (checkout.ts), and uploads are read in a zone (product.ts), so that a worker that serves is never busy for
 * long.
 */
import { connect } from 'corespun/fleet'
import { files, openApi, openApiPage, readiness } from 'corespun/http'
import { fill } from './catalogue.ts'
import { closeOrders, openOrders } from './orders.ts'
import { fleetAddress, makeFolder } from './settings.ts'
import { api, shop } from './shop.ts'
import { imports, staff } from './staff.ts'
import { flushAll, openStores } from './stores.ts'

makeFolder()
openStores()
fill()
const fleet = await connect(fleetAddress)
await openOrders(fleet)

const page = files(new URL('./page/', import.meta.url))
const document = openApi(
  { ...api, ...imports },
  {
    info: { title: 'Shop', version: '1.0.0' },
    securitySchemes: { staff: { type: 'http', scheme: 'basic' } },
  },
)

export default {
  routes: shop({
    ...(await staff(fleet)),
    '/': page,
    '/page/*': page,
    '/openapi.json': document,
    '/docs/*': openApiPage({ title: 'Shop' }),
    '/health/live': 'live',
    '/health/ready': readiness(),
  }),
  /** For files of products; all else has the limit of shop.ts. */
  limits: { bodyBytesMax: 256 * 1024 * 1024 },
  close: async (drained: Promise<void>) => {
    await closeOrders(drained)
    await fleet.close()
    await flushAll()
  },
}
