/**
 * The process of one contender: does jobs by order of the bench, one at a time.
 *
 * Started with the contender's name as its argument; ends when the channel closes.
 */
import { serveOrders } from '../harness/orders.ts'
import { Jobs } from './jobs.ts'
import { contenderOf } from './pools.ts'

const jobs = new Jobs(contenderOf(process.argv[2]))
serveOrders(({ job, order }: { readonly job: keyof Jobs; readonly order: unknown }) =>
  jobs[job](order as never),
)
