/**
 * The app of Next.js for `corespun serve`, in the project or in the folder that `output: 'standalone'` makes.
 *
 * Next.js starts without `server.js` of that folder, which changes the folder of the process and listens.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import { nodeHandler } from 'corespun/http'
import next from 'next'

const dir = import.meta.dirname
const { config } = JSON.parse(readFileSync(join(dir, '.next/required-server-files.json'), 'utf8'))
process.env.__NEXT_PRIVATE_STANDALONE_CONFIG = JSON.stringify(config)

const app = next({ dev: false, dir })
await app.prepare()
const handler = nodeHandler(app.getRequestHandler())

export async function fetch(request) {
  const response = await handler(request)
  response.headers.set('x-worker', String(threadId))
  return response
}

export const close = (drained) => drained.then(() => app.close())
