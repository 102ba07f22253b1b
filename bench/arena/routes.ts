/**
 * What the profiles of HttpArena (github.com/MDA2AV/HttpArena) request of an entry, on Corespun.
 *
 * Everything is computed for each request, as its rules demand; only files that were compressed before are
 * sent as such. Left out: profiles with a database, gRPC, HTTP/3 and gateways.
 */
import { readFileSync } from 'node:fs'
import { compress, files, use } from 'corespun/http'

/** A row of its dataset. */
export interface Item {
  readonly id: number
  readonly name: string
  readonly category: string
  readonly price: number
  readonly quantity: number
  readonly active: boolean
  readonly tags: readonly string[]
  readonly rating: { readonly score: number; readonly count: number }
}

interface Asked extends Request {
  readonly params: { readonly count: string }
}

/** @param folder Has `dataset.json` and the folder `static`. */
export function arenaRoutes(folder: string): object {
  const dataset = JSON.parse(readFileSync(`${folder}/dataset.json`, 'utf8')) as readonly Item[]
  const sum = (request: Request): string => String(sumOf(queryOf(request)))
  const json = (request: Asked): object => {
    const count = Math.min(Math.max(Number.parseInt(request.params.count) || 0, 0), dataset.length)
    const factor = Number.parseInt(queryOf(request).get('m') ?? '') || 1
    return { items: dataset.slice(0, count).map((item) => withTotal(item, factor)), count }
  }
  return {
    '/pipeline': () => 'ok',
    '/baseline2': sum,
    '/baseline11': {
      GET: sum,
      POST: async (request: Request) =>
        String(sumOf(queryOf(request)) + (Number.parseInt(await request.text()) || 0)),
    },
    ...use({ '/json/:count': json }, compress({ codings: ['br', 'gzip'] })),
    '/upload': { POST: async (request: Request) => String(await bytesOf(request)) },
    '/echo': { POST: async (request: Request) => new Uint8Array(await request.arrayBuffer()) },
    '/ws': {
      websocket: {
        origins: 'any',
        message: (socket: { send(message: string | Uint8Array): void }, message: string | Uint8Array) =>
          socket.send(message),
      },
    },
    '/static/*': files(`${folder}/static`, { precompressed: true }),
  }
}

/** Field by field, since Node 20 takes 20 times as long to spread an object. */
function withTotal(item: Item, factor: number): object {
  const { id, name, category, price, quantity, active, tags, rating } = item
  return { id, name, category, price, quantity, active, tags, rating, total: price * quantity * factor }
}

function queryOf({ url }: Request): URLSearchParams {
  return new URLSearchParams(url.slice(url.indexOf('?') + 1))
}

/** What is not a number counts nothing. */
function sumOf(query: URLSearchParams): number {
  let sum = 0
  for (const value of query.values()) sum += Number.parseInt(value) || 0
  return sum
}

/** A body of any length is counted as it comes. */
async function bytesOf({ body }: Request): Promise<number> {
  let bytes = 0
  if (body !== null)
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) bytes += chunk.byteLength
  return bytes
}
