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
const ENDS: readonly [by: string, core: string, statement: string, code: number][] = [
  ['a rejection that nobody handles', 'native', REJECTION, 1],
  ['a rejection that nobody handles', 'node', REJECTION, 1],
  ['process.exit()', 'native', 'process.nextTick(() => process.exit(4))', 4],
]

for (const [by, core, statement, code] of ENDS)
  test(`what was returned before the end by ${by} is delivered (${core})`, async () => {
    const module = JSON.stringify(new URL('./index.js', import.meta.url).href)
    const source = `import { serve } from ${module}
        const routes = { '/': () => { ${statement}; return 'last words' } }
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
