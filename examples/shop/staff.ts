/**
 * What only the staff may do: replace products by a file, look at figures and at what runs.
 * Browsers ask for the password; `csrf()` of app.ts refuses what pages of other sites send with it.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { authenticate, requestValue, route, use } from 'corespun/http'
import type { Fleet } from 'corespun/fleet'
import { metrics } from 'corespun/metrics'
import { dashboard } from 'corespun/observe'
import { zone } from 'corespun/zone'
import { z } from 'zod'
import { put } from './catalogue.ts'
import { announce } from './live.ts'
import { staffPassword } from './settings.ts'
import { products, secrets, stock, versions } from './stores.ts'

const FAULTS_MAX = 100
const Fault = z.object({ line: z.int(), fault: z.string() })
const Imported = z.object({ products: z.int(), faults: z.array(Fault), leftOut: z.int() })

/** The reader on another core: a file of any length keeps no request waiting. */
const reader = zone.cpu.module<typeof import('./product.ts')>(new URL('./product.ts', import.meta.url))

export const imports = {
  '/staff/products': {
    PUT: route(
      {
        summary: 'Add or replace products, by a file with one as JSON in each line',
        responses: { 200: Imported },
        openApi: {
          requestBody: { content: { 'application/x-ndjson': { schema: { type: 'string' } } } },
          security: [{ staff: [] }],
        },
      },
      async ({ request }) => {
        const imported = { products: 0, faults: [] as z.infer<typeof Fault>[], leftOut: 0 }
        try {
          for await (const line of await reader.readProducts(request.body ?? new Blob().stream())) {
            if ('product' in line) {
              put(line.product)
              imported.products++
            } else if (imported.faults.length < FAULTS_MAX) imported.faults.push(line)
            else imported.leftOut++
          }
        } finally {
          // Also what a file that was cut off has changed.
          versions.increment('products')
          announce(request, { products: imported.products })
        }
        await Promise.all([products.flush(), stock.flush()])
        return imported
      },
    ),
  },
}

const html = { 'content-type': 'text/html;charset=UTF-8' }
const page = readFileSync(new URL('./page/staff.html', import.meta.url))

const member = requestValue<string>('member of the staff')

export async function staff(fleet: Fleet) {
  const password = staffPassword ?? (await secrets.getOrCompute('password', inventPassword))
  const expected = digest(password)
  return use(
    {
      ...imports,
      '/staff': new Response(page, { headers: html }),
      '/staff/metrics': metrics(),
      '/staff/dashboard': dashboard({ name: 'shop', fleets: [fleet] }),
    },
    authenticate(member, {
      basic: (name, given) => (timingSafeEqual(digest(given), expected) ? name : undefined),
      realm: 'staff',
    }),
  )
}

/** Called by the first worker that asks; the others receive the same one. */
function inventPassword(): string {
  const invented = randomBytes(9).toString('base64url')
  console.log(`The password of the staff is ${invented} (set SHOP_PASSWORD to choose one).`)
  return invented
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
