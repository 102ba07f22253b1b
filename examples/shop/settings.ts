/**
 * What the environment decides. A value that does not fit ends the start with its name, not a request later.
 *
 * SHOP_FLEET keeps the orders. `sqlite:` needs Node 22.13; an older Node tries the shop out with
 * `SHOP_FLEET=memory:shop` and `--workers 1`, where orders end with the process.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const environment = z
  .object({
    /** The folder of everything that is kept. */
    SHOP_DATA: z.string().min(1).default('shop-data'),
    /** The engine of the orders: `sqlite:`, `postgres:` or `nats:`. Default: a file in SHOP_DATA. */
    SHOP_FLEET: z.string().min(1).optional(),
    /** The URL of the payment provider. Default: a sandbox that takes no money. */
    SHOP_PAYMENTS: z.url().optional(),
    /** The password of the staff. Default: a new one at each start, which is printed. */
    SHOP_PASSWORD: z.string().min(8).optional(),
  })
  .parse(process.env)

export const makeFolder = (): unknown => mkdirSync(environment.SHOP_DATA, { recursive: true })
export const fileOf = (name: string): string => join(environment.SHOP_DATA, name)
export const fleetAddress = environment.SHOP_FLEET ?? `sqlite:${fileOf('orders.db')}`
export const paymentsUrl = environment.SHOP_PAYMENTS
export const staffPassword = environment.SHOP_PASSWORD
