/**
 * A check of more schedules than a pipe holds, and a process that ends at once behind it.
 *
 * What it has not sent by then is lost.
 */
import { check } from 'corespun/test'

await check({ seeds: 25_000 }, ({ random, sleep }) => sleep(random() * 1000))
process.exit(0)
