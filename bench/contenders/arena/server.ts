/**
 * One server of table arena, in a process of its own: `server.js <name> <port>`. Bun runs that of Elysia.
 *
 * Corespun's routes are those of the entry (arena/routes.ts); the others have the two that are measured.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { DIST_FOLDER } from '../../harness/paths.ts'
import { DATASET, itemsOf } from './dataset.ts'

const host = '127.0.0.1'
const [name, port] = [process.argv[2], Number(process.argv[3])]
const FOLDER = `${DIST_FOLDER}/arena-data`

const SERVERS: Readonly<Record<string, () => unknown>> = {
  'corespun in the arena': corespun,
  'fastify in the arena': fastify,
  'elysia in the arena': elysia,
}

await SERVERS[name]()

async function corespun(): Promise<void> {
  mkdirSync(`${FOLDER}/static`, { recursive: true })
  writeFileSync(`${FOLDER}/dataset.json`, JSON.stringify(DATASET))
  const [{ serve }, { arenaRoutes }] = await Promise.all([
    import('corespun/http'),
    import('../../arena/routes.js'),
  ])
  const routes = { '/': () => 'ready', ...arenaRoutes(FOLDER) }
  await serve({ quiet: true, core: 'native', host, port, routes })
}

type Query = Readonly<Record<string, string>>

function sumOf(query: Query): string {
  let sum = 0
  for (const value of Object.values(query)) sum += Number.parseInt(value) || 0
  return String(sum)
}

function json(count: string, query: Query): object {
  return itemsOf(Number.parseInt(count) || 0, Number.parseInt(query['m'] ?? '') || 1)
}

async function fastify(): Promise<void> {
  const app = (await import('fastify')).fastify()
  app.get('/', () => 'ready')
  app.get('/pipeline', () => 'ok')
  app.get('/baseline11', ({ query }) => sumOf(query as Query))
  app.get('/json/:count', ({ params, query }) => json(params['count'], query as Query))
  await app.listen({ port, host })
}

async function elysia(): Promise<void> {
  const { Elysia } = await import('elysia')
  new Elysia()
    .get('/', () => 'ready')
    .get('/pipeline', () => 'ok')
    .get('/baseline11', ({ query }) => sumOf(query as unknown as Query))
    .get('/json/:count', ({ params, query }) => json(params['count'], query as unknown as Query))
    .listen({ port, hostname: host })
}
