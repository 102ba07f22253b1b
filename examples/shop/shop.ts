/**
 * What customers use, behind what all requests pass. app.ts serves it, with the pages of the staff; seeds.ts
 * plays it.
 */
import {
  bodyLimit,
  csrf,
  rateLimit,
  requestId,
  type Routes,
  secureHeaders,
  sessions,
  use,
} from 'corespun/http'
import { basket } from './basket.ts'
import { catalogue } from './catalogue.ts'
import { live } from './live.ts'
import { orders } from './orders.ts'
import { sessionStore } from './stores.ts'

const WEEK_MS = 7 * 86_400_000

export const api = { ...catalogue, ...basket, ...orders }

/** The stores are open. @param others Without a session. */
export const shop = (others: Routes) =>
  use(
    {
      ...use({ ...api, ...live }, bodyLimit(16 * 1024), sessions({ store: sessionStore, ttlMs: WEEK_MS })),
      ...others,
    },
    requestId(),
    secureHeaders(),
    csrf(),
    rateLimit({ requestsMax: 600 }),
  )
