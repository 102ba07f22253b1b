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
import {
  bodyLimit,
  csrf,
  files,
  openApi,
  openApiPage,
  rateLimit,
  readiness,
  requestId,
  secureHeaders,
  sessions,
  use,
} from 'corespun/http'
import { basket } from './basket.ts'
import { catalogue, fill } from './catalogue.ts'
import { live } from './live.ts'
import { closeOrders, orders } from './orders.ts'
import { imports, staff } from './staff.ts'
import { flushAll, sessionStore } from './stores.ts'

const WEEK_MS = 7 * 86_400_000

fill()

const api = { ...catalogue, ...basket, ...orders }
const page = files(new URL('./page/', import.meta.url))
const document = openApi(
  { ...api, ...imports },
  {
    info: { title: 'Shop', version: '1.0.0' },
    securitySchemes: { staff: { type: 'http', scheme: 'basic' } },
  },
)

export default {
  routes: use(
    {
      ...use({ ...api, ...live }, bodyLimit(16 * 1024), sessions({ store: sessionStore, ttlMs: WEEK_MS })),
      ...staff,
      '/': page,
      '/page/*': page,
      '/openapi.json': document,
      '/docs/*': openApiPage({ title: 'Shop' }),
      '/health/live': 'live',
      '/health/ready': readiness(),
    },
    requestId(),
    secureHeaders(),
    csrf(),
    rateLimit({ requestsMax: 600 }),
  ),
  /** For files of products; all else has the limit above. */
  limits: { bodyBytesMax: 256 * 1024 * 1024 },
  close: async (drained: Promise<void>) => {
    await closeOrders(drained)
    await flushAll()
  },
}
