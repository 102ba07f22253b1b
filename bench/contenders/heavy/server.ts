/**
 * A server of table `heavy`: a light route, and one that calls a heavy library in the handler or in a zone.
 *
 * `inline` is node:http alone, as without Corespun. Prints its port when both routes have responded.
 * Usage: server.js <folder of the project> <calls.mjs> <library> <inline | thread | process>
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { serve } from 'corespun/http'
import { zone } from 'corespun/zone'
import { GREETING } from '../service/work.js'

interface Call {
  readonly file: string
  readonly name: string
  readonly usual: readonly unknown[]
}
interface Calls {
  readonly CALLS: Readonly<Record<string, Call>>
  readonly measured: (value: unknown) => Promise<number>
}

const [folder = '', calls = '', library = '', mode = ''] = process.argv.slice(2)
const { CALLS, measured } = (await import(calls)) as Calls
const { file, name, usual } = CALLS[library]
const module = pathToFileURL(join(folder, file)).href

async function inline(): Promise<number> {
  const heavy = ((await import(module)) as Record<string, (...args: readonly unknown[]) => unknown>)[name]
  const server = createServer((request, response) => {
    if (request.url === '/hello') return void response.end(GREETING)
    const value = Promise.resolve(heavy(...usual)).then(measured)
    void value.then((value) => response.end(String(value)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function inZone(isolation: 'thread' | 'process'): Promise<number> {
  const heavy = zone.create('heavy', { workers: 2, isolation, nice: 3 })
  const handler = async (): Promise<string> => {
    const { value } = await heavy.execute(module, name, usual)
    return String(await measured(value))
  }
  const server = await serve({ port: 0, routes: { '/hello': () => GREETING, '/heavy': handler } })
  return Number(new URL(server.url).port)
}

const port = mode === 'inline' ? await inline() : await inZone(mode as 'thread' | 'process')
const responses = ['hello', ...'heavy '.repeat(8).trim().split(' ')].map(async (path) =>
  (await fetch(`http://127.0.0.1:${port}/${path}`)).text(),
)
console.log(JSON.stringify({ port, expected: (await Promise.all(responses))[1] }))
