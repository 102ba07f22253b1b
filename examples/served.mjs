/**
 * Serves an app with two workers by `corespun serve` while a check asks it, and ends it by SIGTERM.
 *
 * For the apps in the folders nest, next and nitro, which need packages of their own. Each sends the number
 * of its thread as header `x-worker`. Every request has a connection of its own, so both workers respond.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const REQUESTS_MAX = 500

/** @param folder Of the app. @param module Its file. @param check Called with `ask` and `askAll`. */
export async function served(folder, module, check) {
  const own = createRequire(join(folder, module)).resolve('corespun')
  const words = [join(dirname(own), 'cli', 'main.js'), 'serve', module, '--workers', '2', '--port', '0']
  const child = spawn(process.execPath, words, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  try {
    const url = await addressOf(child)
    const ask = (path, method) => responseOf(new URL(path, url), method)
    await check({ ask, askAll: (path) => responseOfAll(ask, path) })
  } finally {
    child.kill('SIGTERM')
  }
  assert.deepEqual(await ended, [0, null])
  console.log(`${module}: served by two workers, one cache, streamed, ended`)
}

function addressOf(child) {
  return new Promise((resolve, reject) => {
    let printed = ''
    child.stdout.on('data', (piece) => {
      printed += piece
      const [, url] = /corespun: serving (http:\S+)/.exec(printed) ?? []
      if (url !== undefined) resolve(url)
    })
    child.once('exit', (code) => reject(new Error(`ended with ${code} before it served: ${printed}`)))
  })
}

/** The response, with its body in the pieces that have arrived. */
async function responseOf(url, method = 'GET') {
  const [response] = await once(request(url, { method, agent: false }).end(), 'response')
  const pieces = []
  for await (const piece of response.setEncoding('utf8')) pieces.push(piece)
  const { statusCode: status, headers } = response
  assert.ok(status < 300, `${method} ${url}: ${pieces.join('')}`)
  return { headers, pieces, body: pieces.join('') }
}

/** The one body that both workers respond with. */
async function responseOfAll(ask, path) {
  const [workers, bodies] = [new Set(), new Set()]
  for (let count = 0; count < REQUESTS_MAX && (workers.size < 2 || count < 20); count += 1) {
    const { headers, body } = await ask(path)
    workers.add(headers['x-worker'])
    bodies.add(body)
  }
  assert.equal(workers.size, 2, `workers ${[...workers]} responded to ${path}`)
  assert.equal(bodies.size, 1, `${bodies.size} versions of ${path}`)
  return [...bodies][0]
}
