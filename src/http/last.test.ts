/**
 * The end of a process that serves in one thread, by an error that nobody catches or by `process.exit()`:
 * what a handler has returned before is delivered.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import { settled } from '../base/wait.test.support.ts'

const REJECTION = 'void Promise.reject(new Error("on purpose"))'
const returning = (statement: string): string => `() => { ${statement}; return 'last words' }`
const EXIT = '() => process.exit(4)'
const ENDS: [by: string, core: string, handler: string, code: number][] = [
  ['a rejection that nobody handles', 'native', returning(REJECTION), 1],
  ['a rejection that nobody handles', 'node', returning(REJECTION), 1],
  ['process.exit()', 'native', returning(`process.nextTick(${EXIT})`), 4],
]
const whole = `nodeHandler((req, res) => res.end('last words', ${EXIT}))`
const streamed = `nodeHandler((req, res) => {
  res.on('finish', ${EXIT}).write('last ')
  setImmediate(() => res.end('words'))
})`
const wrapped = `use({ '/': ${whole} }, async (_, next) => {
  const response = await next()
  await null
  return response
})['/']`
// The core on node:http passes bodies on by streams, over several turns.
ENDS.push(
  ['process.exit() in the callback of end()', 'native', whole, 4],
  ['process.exit() when a stream has finished', 'native', streamed, 4],
  ['process.exit() in the callback of end() within middleware', 'native', wrapped, 4],
)

for (const [by, core, handler, code] of ENDS)
  test(`what was returned before the end by ${by} is delivered (${core})`, async () => {
    const module = JSON.stringify(new URL('./index.js', import.meta.url).href)
    const source = `import { nodeHandler, serve, use } from ${module}
        const routes = { '/': ${handler} }
        console.log((await serve({ port: 0, quiet: true, core: '${core}', routes })).url)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', source])
    const ended = once(child, 'exit')
    const [url] = (await settled(once(child.stdout, 'data'), 'its URL')) as [Buffer]
    const request = http.get(String(url).trim(), { agent: false })
    const [response] = (await settled(once(request, 'response'), 'its response')) as [http.IncomingMessage]
    let body = ''
    for await (const piece of response) body += String(piece)
    assert.equal(body, 'last words')
    assert.deepEqual(await settled(ended, 'its end'), [code, null])
  })
