/**
 * What a program that serves prints: one line for each server, when it accepts connections.
 *
 * The programs are processes of their own, whose standard output and standard error are read.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { serve, type ServeOptions } from './index.ts'
import { servingLine } from './serving-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-serving-'))
after(() => rmSync(folder, { recursive: true }))

const HTTP = JSON.stringify(new URL('./index.js', import.meta.url))
const ZONE = JSON.stringify(new URL('../zone/index.js', import.meta.url))

/** Run a program that has `serve` and `zone`; it must print nothing else. */
function printed(program: string): { stdout: string; stderr: string } {
  const path = join(folder, 'program.mjs')
  writeFileSync(path, `import { serve } from ${HTTP}\nimport { zone } from ${ZONE}\n${program}`)
  const { CORESPUN_HTTP_CORE: _, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, [path], {
    encoding: 'utf8',
    env,
    timeout: 60_000,
  })
  assert.equal(status, 0, stderr)
  return { stdout, stderr }
}

test('a server prints its URL and its core on standard error, once it accepts connections', () => {
  const { stdout, stderr } = printed(`
    const write = process.stderr.write.bind(process.stderr)
    let response
    process.stderr.write = (line) => {
      response = fetch(/http:\\S+/.exec(String(line))[0].replace('0.0.0.0', '127.0.0.1'))
      return write(line)
    }
    const server = await serve({ port: 0, host: '0.0.0.0', routes: { '/': 'Hello' } })
    console.log(server.url, await (await response).text())
    await server.close()`)
  const [, url, core] =
    /^corespun: serving (http:\/\/0\.0\.0\.0:\d+) in one thread \((\w+) core\)\n$/.exec(stderr) ?? []
  assert.equal(stdout, `${url} Hello\n`, stderr)
  assert.ok(core === 'native' || core === 'node')
})

test('a server in a zone prints one line for all workers, whatever replaces them', () => {
  const { stdout, stderr } = printed(`
    const web = zone.create('web', { workers: 2 })
    const app = 'data:text/javascript,export const routes = { "/": "Hello", "/end": () => process.exit(0) }'
    const server = await serve({ zone: web, app, port: 0 })
    await fetch(server.url + '/end').catch(() => {})
    while ((await server.stats()).workers < 2 || web.stats().died + web.stats().ended === 0)
      await new Promise((resolve) => setTimeout(resolve, 10))
    console.log(server.url)
    await server.close()
    await web.close()`)
  const lines = stderr.split('\n').filter((line) => line.startsWith('corespun: serving '))
  assert.deepEqual(lines, [servingLine(stdout.trim(), 'native', 2)], stderr)
})

test('quiet servers print nothing: by the option of serve, or of the app of a zone', () => {
  const { stderr } = printed(`
    const here = await serve({ quiet: true, port: 0, routes: { '/': 'Hello' } })
    const web = zone.create('web', { workers: 1 })
    const app = (options) => 'data:text/javascript,export default { routes: { "/": "Hello" }' + options + ' }'
    const servers = [
      here,
      await serve({ zone: web, app: app(''), port: 0, quiet: true }),
      await serve({ zone: web, app: app(', quiet: true'), port: 0 }),
    ]
    for (const server of servers) await server.close()
    await web.close()`)
  // A busy machine may cause a warning that has nothing to do with `quiet`.
  const stalls = /^\(node:\d+\) Warning: .* has not returned to its event loop .*\n(\(Use `node .*\n)?/gm
  assert.equal(stderr.replace(stalls, ''), '')
})

test('the line counts workers in words', () => {
  assert.equal(
    servingLine('http://a:1', 'native', 1),
    'corespun: serving http://a:1 with 1 worker (native core)',
  )
  assert.equal(servingLine('unix:/a', 'node', 12), 'corespun: serving unix:/a with 12 workers (node core)')
})

test('quiet is true or false', async () => {
  const given = { port: 0, routes: { '/': 'x' } }
  await assert.rejects(serve({ ...given, quiet: 'yes' } as unknown as ServeOptions), {
    code: 'HTTP_ARGUMENT',
    message: 'serve(): quiet must be true or false; received "yes"',
  })
  await assert.rejects(serve({ ...given, silent: true } as ServeOptions), {
    message: /^serve\(\): unknown option "silent"/,
  })
})
