/**
 * The service of the table `service`: a greeting, and one heavy stage that runs in a zone or in the handler.
 *
 * `corespun serve` runs it on all cores, as a user would.
 */
import { zone } from 'corespun/zone'
import { GREETING, heavy } from './work.js'

export default {
  routes: {
    '/hello': () => GREETING,
    '/zone/:seed': async ({ params }: Asked) => ({ sum: await zone.cpu.run(heavy, Number(params.seed)) }),
    '/inline/:seed': ({ params }: Asked) => ({ sum: heavy(Number(params.seed)) }),
  },
}

interface Asked {
  readonly params: Readonly<Record<string, string>>
}
