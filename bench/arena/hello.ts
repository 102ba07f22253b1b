/**
 * The entry for fastify/benchmarks (github.com/fastify/benchmarks): one process, one route, port 3000.
 *
 * It is asked by `autocannon -c 100 -d 40 -p 10 localhost:3000`, as all of them are.
 */
import { serve } from 'corespun/http'

export const routes = { '/': (): object => ({ hello: 'world' }) }

if (process.argv[1] === new URL(import.meta.url).pathname)
  await serve({ routes, host: '127.0.0.1', port: 3000, quiet: true })
