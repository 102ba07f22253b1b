/**
 * Files with a compressed form beside them, on both cores: which of them a client gets, and by which tag.
 *
 * The contents of the files name them and are not compressed: files() sends what is there.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { compress } from '../coding/compress.ts'
import { onCores } from '../cores.test.support.ts'
import { createApp } from '../server.ts'
import { files } from './files.ts'
import { use } from '../app/middleware.ts'

const folder = mkdtempSync(join(tmpdir(), 'corespun-precompressed-'))
after(() => rmSync(folder, { recursive: true }))
mkdirSync(join(folder, 'sub'))
const CSS = 'text/css;charset=UTF-8'
/** The time of all files but some. */
const THEN = 1_700_000_000
for (const name of [
  'app.css',
  'app.css.br',
  'app.css.gz',
  'sub/index.html',
  'sub/index.html.zst',
  'a.txt',
  'b.br',
])
  write(name, name)
write('old.css', 'old.css', THEN + 2)
write('old.css.br', 'old.css.br', THEN + 1)
write('old.css.gz', 'old.css.gz', THEN + 2)
mkdirSync(join(folder, 'a.txt.br'))

function write(name: string, text: string, seconds = THEN): void {
  writeFileSync(join(folder, name), text)
  utimesSync(join(folder, name), seconds, seconds)
}

async function ask(
  url: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<[http.IncomingMessage, string]> {
  const request = http.request(url, { method, agent: false, headers }).end()
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  let text = ''
  for await (const piece of response.setEncoding('utf8') as AsyncIterable<string>) text += piece
  return [response, text]
}

const ROWS: readonly (readonly [path: string, accept: string, sent: string, coding?: string])[] = [
  ['/app.css', 'gzip, br', 'app.css.br', 'br'],
  ['/app.css', 'gzip', 'app.css.gz', 'gzip'],
  ['/app.css', 'gzip, br;q=0.9', 'app.css.gz', 'gzip'],
  ['/app.css', 'zstd', 'app.css'],
  ['/app.css', '', 'app.css'],
  ['/app.css', 'identity, br;q=0.5', 'app.css'],
  ['/app.css.br', 'br', 'app.css.br'], // nothing is beside it
  ['/sub/', 'br, zstd', 'sub/index.html.zst', 'zstd'],
  ['/sub/index.html', 'zstd', 'sub/index.html.zst', 'zstd'],
  ['/old.css', 'br', 'old.css'],
  ['/old.css', 'br, gzip', 'old.css.gz', 'gzip'],
  ['/a.txt', 'br', 'a.txt'], // a folder is not a file
]

onCores('a client gets the best form that it accepts and that is not older', async (start) => {
  const routes = use(
    { '/*': files(folder, { precompressed: true, headers: { Vary: 'cookie' } }) },
    compress({ bytesMin: 0 }),
  )
  const { url } = await start({
    routes: { '/*': files(folder, { precompressed: true, headers: { Vary: 'cookie' } }) },
  })
  const around = await start({ routes })
  for (const [path, accept, sent, coding] of ROWS) {
    const [response, text] = await ask(url + path, { 'accept-encoding': accept })
    assert.deepEqual([text, response.headers['content-encoding']], [sent, coding], `${path} ${accept}`)
    assert.equal(response.headers.vary, 'cookie, accept-encoding')
    assert.equal(Number(response.headers['content-length']), sent.length)
    if (path.endsWith('.css')) assert.equal(response.headers['content-type'], CSS)
    if (coding !== undefined) {
      const [other, same] = await ask(around.url + path, { 'accept-encoding': accept })
      assert.deepEqual(
        [same, other.headers['content-encoding']],
        [sent, coding],
        'compress() leaves it alone',
      )
    }
    const [head] = await ask(url + path, { 'accept-encoding': accept }, 'HEAD')
    assert.deepEqual([head.headers['content-encoding'], head.headers.etag], [coding, response.headers.etag])
  }
  assert.equal((await ask(`${url}/b`, { 'accept-encoding': 'br' }))[0].statusCode, 404)
  const [{ statusCode, headers }, text] = await ask(`${url}/sub`, { 'accept-encoding': 'zstd' })
  assert.deepEqual([statusCode, headers.location, text], [301, './sub/', ''])
  assert.equal(headers.vary, 'cookie, accept-encoding')
})

onCores('each form has its own tag, and conditions and ranges are about it', async (start) => {
  const { url } = await start({ routes: { '/*': files(folder, { precompressed: true }) } })
  const at = `${url}/app.css`
  const etags = new Set<string>()
  for (const accept of ['br', 'gzip', 'identity']) {
    const [{ headers }] = await ask(at, { 'accept-encoding': accept })
    etags.add(headers.etag!)
    const [again] = await ask(at, { 'accept-encoding': accept, 'if-none-match': headers.etag! })
    assert.deepEqual(
      [again.statusCode, again.headers.vary, again.headers.etag],
      [304, 'accept-encoding', headers.etag],
    )
    const range = { 'accept-encoding': accept, range: 'bytes=-2', 'if-range': headers.etag! }
    const [part, text] = await ask(at, range)
    const end = { br: 'br', gzip: 'gz', identity: 'ss' }[accept]
    assert.deepEqual(
      [part.statusCode, text, part.headers['content-encoding']],
      [206, end, headers['content-encoding']],
    )
  }
  assert.equal(etags.size, 3)
})

onCores('a form that appears, changes or disappears is noticed', async (start) => {
  const { url } = await start({ routes: { '/*': files(folder, { precompressed: true }) } })
  write('new.css', 'plain')
  const seen = async (): Promise<string> => (await ask(`${url}/new.css`, { 'accept-encoding': 'br' }))[1]
  assert.equal(await seen(), 'plain')
  write('new.css.br', 'compressed')
  assert.equal(await seen(), 'compressed')
  write('new.css', 'changed', THEN + 5)
  assert.equal(await seen(), 'changed')
  write('new.css.br', 'compressed again', THEN + 5)
  assert.equal(await seen(), 'compressed again')
  rmSync(join(folder, 'new.css.br'))
  assert.equal(await seen(), 'changed')
  rmSync(join(folder, 'new.css'))
  write('new.css.br', 'compressed', THEN + 9)
  assert.equal((await ask(`${url}/new.css`, { 'accept-encoding': 'br' }))[0].statusCode, 404)
  rmSync(join(folder, 'new.css.br'))
})

test('nothing is looked for unless it was asked for, and large forms are streamed', async () => {
  const plain = createApp({ routes: { '/*': files(folder) } })
  const response = await plain.inject('/app.css', { headers: { 'accept-encoding': 'br' } })
  assert.deepEqual([await response.text(), response.headers.get('vary')], ['app.css', null])
  const large = 'large '.repeat(20_000)
  write('large.js', 'plain')
  write('large.js.br', large)
  const app = createApp({ routes: { '/*': files(folder, { precompressed: true }) } })
  const found = await app.inject('/large.js', { headers: { 'accept-encoding': 'br' } })
  assert.equal(await found.text(), large)
  assert.throws(() => files(folder, { precompressed: 'br' as never }), { code: 'HTTP_ARGUMENT' })
})
