/**
 * Forms: what is accepted, and who is at fault for malformed or expensive ones.
 *
 * The parser's messages differ between versions of Node and are not compared.
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { onServer } from '../cores.test.support.ts'
import { native } from '../fetch/native.ts'
import type { HttpRequest } from '../app/routes.ts'
import { createApp } from '../server.ts'
import { readForm } from './form.ts'
import { bodyLimit } from '../app/body-limit.ts'
import { use } from '../app/middleware.ts'
import { requestId } from './request-id.ts'
import { jsonErrors } from '../app/status-error.ts'

const { Request: NativeRequest, Response: NativeResponse } = native()

const MULTIPART = 'multipart/form-data; boundary=b'
const URLENCODED = 'application/x-www-form-urlencoded'

function part(name: string, more = ''): string {
  return `--b\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\nv\r\n`
}

/** Posts a body in chunks, so that the server does not receive its length. */
function post(url: string, type: string, body: string): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': type, 'transfer-encoding': 'chunked' }
    const request = http.request(url, { method: 'POST', agent: false, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('end', () => resolve([response.statusCode!, text])).on('error', reject)
    })
    request.on('error', reject)
    request.end(body)
  })
}

test('forms, taken apart and bounded', async () => {
  const app = createApp({
    routes: use(
      {
        '/': async (request: Request) => {
          const { fields, files } = await readForm(request, {
            partsMax: 3,
            fieldCharsMax: 5,
            fileBytesMax: 4,
          })
          const sizes = Object.entries(files).map(([name, file]) => `${name} ${file.name} ${file.size}`)
          return { fields: { ...fields }, files: sizes }
        },
      },
      requestId(),
    ),
    error: jsonErrors(),
  })
  const post = async (
    body: string | FormData | URLSearchParams,
    headers: Record<string, string> = {},
  ): Promise<unknown> => {
    const response = await app.inject('/', { method: 'POST', body, headers })
    return response.status === 200 ? await response.json() : response.status
  }
  const form = (...entries: [string, string | File][]): FormData => {
    const data = new FormData()
    for (const [name, value] of entries) data.append(name, value)
    return data
  }
  const file = (bytes: number): File => new File(['x'.repeat(bytes)], 'n.txt')
  assert.deepEqual(await post(form(['a', '1'], ['f', file(4)])), {
    fields: { a: '1' },
    files: ['f n.txt 4'],
  })
  assert.deepEqual(await post(new URLSearchParams('a=b&__proto__=c')), {
    fields: JSON.parse('{"a":"b","__proto__":"c"}') as object,
    files: [],
  })
  assert.equal(await post(form(['f', file(5)])), 413)
  assert.equal(await post(form(['a', '123456'])), 413)
  assert.equal(await post(form(['a', ''], ['b', ''], ['c', ''], ['d', ''])), 413)
  assert.equal(await post('{}', { 'content-type': 'application/json' }), 415)
  assert.equal(
    await post('--x\r\nbroken', {
      'content-type': 'multipart/form-data; boundary=x',
    }),
    400,
  )
})

test('a form that was read before is the mistake of the handler', async () => {
  const logged: unknown[] = []
  const handlers = {
    '/read': async (request: Request) => {
      await request.text()
      return (await readForm(request)).fields
    },
    '/locked': async (request: Request) => {
      request.body!.getReader()
      return (await readForm(request)).fields
    },
  }
  for (const routes of [handlers, use(handlers, bodyLimit(100))]) {
    const app = createApp({ routes, error: jsonErrors({ log: (cause) => logged.push(cause) }) })
    for (const path of ['/read', '/locked']) {
      const response = await app.inject(path, { method: 'POST', body: new URLSearchParams({ a: 'b' }) })
      assert.equal(response.status, 500, path)
    }
  }
  assert.equal(logged.filter((cause) => cause instanceof TypeError).length, 4)
})

onServer('a broken form is 400 and nobody’s log, whatever the parser throws', async (start) => {
  const logged: unknown[] = []
  const routes = {
    '/form-of': async (request: HttpRequest) => Object.keys((await readForm(request)).files),
    '/form-data': async (request: HttpRequest) => [...(await request.formData()).keys()],
  }
  const broken = part('q', '; filename="a"')
  for (const given of [routes, use(routes, bodyLimit(1000))]) {
    const server = await start({ routes: given, error: jsonErrors({ log: (cause) => logged.push(cause) }) })
    for (const path of ['/form-of', '/form-data']) {
      const [status, text] = await post(server.url + path, MULTIPART, broken)
      const { error } = JSON.parse(text) as { error: { code: string } }
      assert.deepEqual([status, error.code], [400, path === '/form-of' ? 'FORM_MALFORMED' : 'BAD_REQUEST'])
    }
  }
  assert.deepEqual(logged, [])
})

test('a broken form of a request of the platform is a StatusError too', async () => {
  const of = (type: string, body: string): Promise<unknown> =>
    readForm(new NativeRequest('http://x', { method: 'POST', headers: { 'content-type': type }, body }))
  for (const body of ['', '--b', part('q'), part('q', '; filename="a"'), '--b\r\nx: y\r\n'.repeat(9), 'text'])
    await assert.rejects(of(MULTIPART, body), { status: 400 }, body)
  for (const type of ['', ';boundary=', ';boundary="\\""', `;boundary=${'x'.repeat(257)}`])
    await assert.rejects(of(`multipart/form-data${type}`, `${part('q')}--b--\r\n`), { status: 400 }, type)
  for (const type of ['multipart/form-data-x; boundary=b', 'form', '', 'text/plain'])
    await assert.rejects(of(type, 'a=b'), { status: 415 }, type)
})

test('parts are counted before anything is made of them', async (t) => {
  const parse = t.mock.method(NativeResponse.prototype, 'formData')
  const parsePlatform = t.mock.method(NativeRequest.prototype, 'formData')
  const of = async (type: string, body: string, partsMax: number): Promise<number | string> => {
    const headers = { 'content-type': type }
    const request = new NativeRequest('http://x', { method: 'POST', headers, body })
    return readForm(request, { partsMax }).then(
      ({ data }) => [...data.keys()].length,
      (error: { status: number }) => `${error.status}`,
    )
  }
  const three = part('x') + part('y') + part('z')
  const refused: [string, string, number][] = [
    [URLENCODED, 'a&'.repeat(5000), 100],
    [URLENCODED, '&a=1&&b=2&c', 2],
    [MULTIPART, `${three}--b--\r\n`, 2],
    [MULTIPART, three, 2],
    [MULTIPART, part('x').repeat(2000), 1999],
    // The parser takes the first boundary, as a browser would: no other is counted.
    ['multipart/form-data; a="; boundary=zz"; Boundary="b"; boundary=d', `${three}--b--\r\n`, 2],
  ]
  for (const [type, body, partsMax] of refused)
    assert.equal(await of(type, body, partsMax), '413', JSON.stringify([type, body.slice(0, 99)]))
  const calls = [parse, parsePlatform].map(({ mock }) => mock.callCount())
  assert.deepEqual(calls, [0, 0])
  const taken: [string, string, number, number][] = [
    [URLENCODED, '&a=1&&b=2&', 2, 2],
    [URLENCODED, '', 0, 0],
    [MULTIPART, `${three}--b--\r\n`, 3, 3],
    [MULTIPART, `${three}--b--`, 3, 3],
    [MULTIPART, `${part('x', `; filename="${'y'.repeat(8000)}"`)}--b--`, 1, 1],
    [MULTIPART, `${part('x').replace('v', '\n--c\n--\n')}--b--`, 1, 1],
    ['multipart/form-data; a="; boundary=zz"; Boundary="b"; boundary=d', `${three}--b--\r\n`, 3, 3],
  ]
  for (const [type, body, partsMax, parts] of taken)
    assert.equal(await of(type, body, partsMax), parts, JSON.stringify([type, body.slice(0, 99)]))
})

test('a form in a URL’s words is read as the standard reads it', async () => {
  const body = '?a=1+2&b=%C3%A4%2B%zz&&c&=d&a=%FF&e=\u00e4=+'
  const headers = { 'content-type': 'Application/X-WWW-Form-Urlencoded;charset=UTF-8' }
  const { data, fields } = await readForm(new NativeRequest('http://x', { method: 'POST', headers, body }))
  const expected = [
    ['?a', '1 2'],
    ['b', 'ä+%zz'],
    ['c', ''],
    ['', 'd'],
    ['a', '\ufffd'],
    ['e', 'ä= '],
  ]
  assert.deepEqual([...data], expected)
  assert.deepEqual({ ...fields }, Object.fromEntries(expected))
})
