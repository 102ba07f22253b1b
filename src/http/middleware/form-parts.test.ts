/**
 * Forms whose files are streams, on both cores: backpressure, limits that name their part, clients that send
 * broken, endless or cut forms, and handlers that leave early.
 *
 * A form is written by hand where a client of the platform would not write it so.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { after, test } from 'node:test'
import { until } from '../../base/wait.test.support.ts'
import { zone } from '../../zone/index.ts'
import type { HttpRequest } from '../app/routes.ts'
import { onCores, onServer } from '../cores.test.support.ts'
import { native } from '../fetch/native.ts'
import { createApp } from '../server.ts'
import { type FormLimits, type FormPart, formParts } from './form-parts.ts'

const { Request: NativeRequest } = native()

const cpu = zone.create('form-parts', { workers: 1 })
after(() => cpu.close())

/** A part of a form with the boundary `b`; a file if `file` is its name. */
function part(name: string, content: string, file?: string, type = 'text/csv'): string {
  const more = file === undefined ? '' : `; filename="${file}"\r\ncontent-type: ${type}`
  return `--b\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${content}\r\n`
}

const END = '--b--\r\n'
const TYPE = { 'content-type': 'multipart/form-data; boundary=b' }

function requestOf(
  body: string | ReadableStream<Uint8Array>,
  headers: Record<string, string> = TYPE,
): Request {
  return new NativeRequest('http://x', { method: 'POST', headers, body, duplex: 'half' })
}

/** Each part in a word; an error is the last one. */
async function read(request: Request, limits?: FormLimits): Promise<string[]> {
  const seen: string[] = []
  try {
    for await (const found of formParts(request, limits)) seen.push(await shownPart(found))
  } catch (error) {
    const { status, message } = error as { status?: number; message: string }
    seen.push(`${status} ${message.replace(/^\d+ /, '')}`)
  }
  return seen
}

async function shownPart(found: FormPart): Promise<string> {
  if (found.kind === 'field') return `${found.name}=${found.value}`
  return `${found.name}:${found.fileName}:${found.type}:${await new Response(found.stream).text()}`
}

test('parts arrive in their order, with names and types', async () => {
  const body =
    part('a', '1') +
    part('f', 'x,y', 'a b.csv', 'Text/CSV') +
    part('ä', 'ü') +
    part('g', '', '') +
    part('a', '2')
  assert.deepEqual(await read(requestOf(`preamble\r\n${body}${END}epilogue`)), [
    'a=1',
    'f:a b.csv:text/csv:x,y',
    'ä=ü',
    'g::text/csv:',
    'a=2',
  ])
  assert.deepEqual(await read(requestOf(part('f', 'x\r\n-b\r\n', '../../etc/passwd') + END)), [
    'f:../../etc/passwd:text/csv:x\r\n-b\r\n',
  ])
  assert.deepEqual(await read(requestOf(END)), [])
  const form = new FormData()
  form.set('title', 'one')
  form.set('file', new File(['12345'], 'fünf.txt', { type: 'text/plain' }))
  const request = new NativeRequest('http://x', { method: 'POST', body: form })
  assert.deepEqual(await read(request), ['title=one', 'file:fünf.txt:text/plain:12345'])
})

test('a form that is split anywhere is the same form', async () => {
  const bytes = Buffer.from(part('a', '1') + part('f', 'x'.repeat(99), 'n') + part('b', '\r\n-b') + END)
  const whole = await read(requestOf(bytes.toString()))
  for (let at = 0; at <= bytes.length; at += 7) {
    const pieces = [bytes.subarray(0, at), bytes.subarray(at)].filter((piece) => piece.length > 0)
    assert.deepEqual(await read(requestOf(new Blob(pieces).stream())), whole, `at ${at}`)
    assert.deepEqual(await read(requestOf(ReadableStream.from(pieces))), whole, `at ${at}`)
  }
  const single = ReadableStream.from(Array.from(bytes, (byte) => Uint8Array.of(byte)))
  assert.deepEqual(await read(requestOf(single)), whole)
})

const HEAD_TOO_LONG = '400 malformed form: the head of a part is longer than 8192 bytes'
const NO_HEAD = '400 malformed form: a part has no valid content-disposition'
/** Parts that RFC 7578, 4.2 does not allow. */
const HEADLESS = [
  '--b\r\ncontent-type: text/plain\r\n\r\n2\r\n',
  '--b\r\n\r\n2\r\n',
  '--b\r\ncontent-disposition: attachment; name="b"\r\n\r\n2\r\n',
  '--b\r\ncontent-disposition: form-data; name="b\n"\r\n\r\n2\r\n',
  '--b\r\ncontent-disposition; name="b"\r\n\r\n2\r\n',
  '--b\r\ncontent-disposition: form-data; name="b"\r\n',
  '--b\r\n',
]

const LIMITED: readonly (readonly [what: string, body: string, limits: FormLimits, ...seen: string[]])[] = [
  [
    'a long field',
    part('note', '12345') + END,
    { fieldCharsMax: 4 },
    '413 the field "note" is longer than 4 characters',
  ],
  [
    'a very long field',
    part('n', 'x'.repeat(99)) + END,
    { fieldCharsMax: 4 },
    '413 the field "n" is longer than 4 characters',
  ],
  ['a field of the limit', part('note', 'äöü€') + END, { fieldCharsMax: 4 }, 'note=äöü€'],
  [
    'a long file',
    part('f', '12345', 'n') + END,
    { fileBytesMax: 4 },
    '413 the file "f" is longer than 4 bytes',
  ],
  ['a file of the limit', part('f', '1234', 'n') + END, { fileBytesMax: 4 }, 'f:n:text/csv:1234'],
  [
    'too many parts',
    part('a', '1').repeat(3) + END,
    { partsMax: 2 },
    'a=1',
    '413 the form has more than 2 parts',
  ],
  ['no parts at all', part('a', '1') + END, { partsMax: 0 }, '413 the form has more than 0 parts'],
  [
    'a part without a name',
    part('a', '1').replace('; name="a"', '') + END,
    {},
    '400 malformed form: a part has no name',
  ],
  [
    'a file without a name',
    part('a', '1', 'n').replace(' name="a";', '') + END,
    {},
    '400 malformed form: a part has no name',
  ],
  [
    'a form that ends in a field',
    part('a', '1') + part('b', '2'),
    {},
    'a=1',
    '400 malformed form: it is invalid or cut off',
  ],
  ['text', 'text', {}, '400 malformed form: it is invalid or cut off'],
  ['a long head', part('n'.repeat(20_000), '1') + END, {}, HEAD_TOO_LONG],
  ['a long file name', part('f', '1', 'n'.repeat(20_000)) + END, {}, HEAD_TOO_LONG],
  [
    'a long head without an end',
    `${part('a', '1')}--b\r\nx: ${'y'.repeat(9000)}\r\n${END}`,
    {},
    'a=1',
    NO_HEAD,
  ],
  [
    'a long name that is not the last of its head',
    part('f', '1', 'n', `x/${'y'.repeat(9000)}`) + END,
    {},
    HEAD_TOO_LONG,
  ],
  ...HEADLESS.map(
    (bad) =>
      [bad.replace('\r\n', ' '), part('a', '1') + bad + part('c', '3') + END, {}, 'a=1', NO_HEAD] as const,
  ),
]
for (const [what, body, limits, ...seen] of LIMITED)
  test(`${what}: ${seen.join(', ')}`, async () => assert.deepEqual(await read(requestOf(body), limits), seen))

test('a part that is not one of a form is refused, as request.formData() refuses it', async () => {
  for (const bad of [...HEADLESS, part('b', '2').replace('; name="b"', '')])
    for (const body of [bad + END, part('a', '1') + bad + END, bad + part('c', '3') + END]) {
      const refusal = (await read(requestOf(body))).at(-1)!
      assert.match(refusal, /^400 malformed form/, JSON.stringify(body))
      await assert.rejects(requestOf(body).formData(), JSON.stringify(body))
    }
})

test('a head of 8192 bytes is read, and one of 8193 is refused, however it is split', async () => {
  const most = 8192 - 'content-disposition: form-data; name=""'.length
  for (const [chars, isRead] of [
    [most, true],
    [most + 1, false],
  ] as const)
    for (let behind = 0; behind <= 6; behind += 1) {
      const bytes = Buffer.from(part('n'.repeat(chars), '1') + END)
      const at = bytes.indexOf('\r\n\r\n') - 1 + behind
      const seen = await read(requestOf(ReadableStream.from([bytes.subarray(0, at), bytes.subarray(at)])))
      assert.ok(
        isRead ? seen[0] === `${'n'.repeat(chars)}=1` : seen[0] === HEAD_TOO_LONG,
        `${chars}, ${behind}`,
      )
    }
})

test('a limit may depend on the file, and no other content type is taken', async () => {
  const fileBytesMax = ({ name, type }: { name: string; type: string }): number =>
    type === 'text/csv' && name === 'f' ? 9 : 2
  const body = part('f', '123456789', 'n') + part('g', '123', 'n') + END
  assert.deepEqual(await read(requestOf(body), { fileBytesMax }), [
    'f:n:text/csv:123456789',
    '413 the file "g" is longer than 2 bytes',
  ])
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/mixed; boundary=b', ''])
    assert.deepEqual(await read(requestOf(END, { 'content-type': type })), ['415 the body must be a form'])
  assert.deepEqual(await read(requestOf(END, { 'content-type': 'multipart/form-data' })), [
    '400 malformed form: its content type has no valid boundary',
  ])
  const used = requestOf(END)
  await used.text()
  assert.match((await read(used))[0], /has been read already/)
  const locked = requestOf(END)
  locked.body!.getReader()
  assert.match((await read(locked))[0], /has been read already/)
  for (const limits of [{ partsMax: -1 }, { fileBytesMax: 'a' }, { files: 1 }])
    await assert.rejects(formParts(requestOf(END), limits as never).next(), { code: 'HTTP_ARGUMENT' })
})

test('files that are not read, or not to their end, are dropped', async () => {
  const body =
    part('f', 'x'.repeat(300_000), 'n') + part('g', 'y'.repeat(300_000), 'n') + part('a', '1') + END
  const seen: string[] = []
  for await (const found of formParts(requestOf(body))) {
    if (found.kind === 'field') seen.push(`${found.name}=${found.value}`)
    else if (found.name === 'f') seen.push('dropped')
    else {
      const reader = found.stream.getReader()
      seen.push(String((await reader.read()).value!.byteLength > 0))
      reader.releaseLock()
    }
  }
  assert.deepEqual(seen, ['dropped', 'true', 'a=1'])
})

onCores('a file is read as it arrives, and no faster than its reader', async (start, core) => {
  let readBytes = 0
  let mayRead = (): void => {}
  const gate = new Promise<void>((resolve) => (mayRead = resolve))
  const upload = async (request: HttpRequest): Promise<string> => {
    for await (const found of formParts(request)) {
      if (found.kind === 'field') continue
      const reader = found.stream.getReader()
      readBytes += (await reader.read()).value!.byteLength
      await gate
      for (let next = await reader.read(); !next.done; next = await reader.read())
        readBytes += next.value.byteLength
      reader.releaseLock()
    }
    return String(readBytes)
  }
  const server = await start({ routes: { '/': { POST: upload } }, limits: { bodyBytesMax: 2 ** 30 } })
  const request = http.request(server.url, { method: 'POST', agent: false, headers: TYPE })
  request.write(part('f', '', 'n').slice(0, -2) + 'first')
  await until(() => readBytes > 0) // while the rest has not been sent
  const megabyte = Buffer.alloc(2 ** 20)
  let sentBytes = 0
  const sending = (async () => {
    for (let piece = 0; piece < 64; piece += 1) {
      if (!request.write(megabyte)) await once(request, 'drain')
      sentBytes += megabyte.length
    }
  })()
  if (core === 'native') {
    let before = -1
    await until(() => sentBytes > 0 || before === (before = server.stats().bytesIn))
    assert.ok(server.stats().bytesIn < 16 * 2 ** 20, `${server.stats().bytesIn} bytes`)
  }
  mayRead()
  await sending
  request.end(`\r\n${END}`)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  let text = ''
  for await (const piece of response.setEncoding('utf8') as AsyncIterable<string>) text += piece
  assert.equal(Number(text), 5 + 64 * 2 ** 20)
})

onCores('a zone parses a file while it arrives', async (start) => {
  const rows = async (chunks: AsyncIterable<Uint8Array>): Promise<number> => {
    const decoder = new TextDecoder()
    let [count, rest] = [0, '']
    for await (const chunk of chunks) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      count += lines.filter((line) => line.split(',').length === 2).length
    }
    return count
  }
  const upload = async (request: HttpRequest): Promise<object> => {
    const counts: Record<string, unknown> = {}
    for await (const found of formParts(request))
      counts[found.name] = found.kind === 'field' ? found.value : await cpu.run(rows, found.stream)
    return counts
  }
  const { url } = await start({ routes: { '/': { POST: upload } } })
  const form = new FormData()
  form.set('one', new File(['a,1\n'.repeat(50_000)], 'one.csv'))
  form.set('title', 'two files')
  form.set('two', new File(['b,2\n'.repeat(7)], 'two.csv'))
  const response = await fetch(url, { method: 'POST', body: form })
  assert.deepEqual(await response.json(), { one: 50_000, title: 'two files', two: 7 })
})

onServer('a form beyond a limit is refused with the name of the part, while it is sent', async (start) => {
  const upload = async (request: HttpRequest): Promise<string[]> => {
    const seen: string[] = []
    for await (const found of formParts(request, { fileBytesMax: 1000 })) seen.push(await shownPart(found))
    return seen
  }
  const { url } = await start({ routes: { '/': { POST: upload } }, limits: { bodyBytesMax: 2 ** 30 } })
  const form = new FormData()
  form.set('small', new File(['12'], 'a'))
  form.set('large', new File(['x'.repeat(200_000)], 'b'))
  const response = await fetch(url, { method: 'POST', body: form })
  assert.equal(response.status, 413)
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  assert.deepEqual(
    [error.code, error.message],
    ['FORM_TOO_LARGE', 'the file "large" is longer than 1000 bytes'],
  )
})

onCores('a client that leaves, and a handler that leaves the loop, end the reading', async (start) => {
  const outcomes: string[] = []
  let begunCount = 0
  const upload = async (request: HttpRequest): Promise<string> => {
    begunCount += 1
    try {
      for await (const found of formParts(request)) {
        if (found.kind === 'field' && found.name === 'leave') return 'left'
        await shownPart(found)
      }
    } catch (error) {
      outcomes.push((error as { code: string }).code)
    }
    return 'over'
  }
  const { url } = await start({ routes: { '/': { POST: upload } } })
  for (const begin of [part('f', 'x', 'n').slice(0, -2), part('a', '1')]) {
    const request = http.request(url, {
      method: 'POST',
      agent: false,
      headers: { ...TYPE, 'content-length': 5000 },
    })
    request.on('error', () => {})
    request.write(begin)
    await until(() => begunCount === outcomes.length + 1)
    request.destroy()
    const leftCount = begunCount
    await until(() => outcomes.length === leftCount)
  }
  assert.deepEqual(outcomes, ['HTTP_CLIENT_DISCONNECTED', 'HTTP_CLIENT_DISCONNECTED'])
  const body = part('leave', '1') + part('f', 'x'.repeat(1000), 'n') + END
  const response = await fetch(url, { method: 'POST', headers: TYPE, body })
  assert.equal(await response.text(), 'left')
})

test('a thousand parts, and a million bytes outside of any part, are handled in one pass', async () => {
  const many = await read(requestOf(part('a', '').repeat(1000) + END), { partsMax: 1000 })
  assert.equal(many.length, 1000)
  assert.deepEqual(await read(requestOf('\r\n'.repeat(500_000) + END)), [])
  assert.deepEqual((await read(requestOf(`--b\r\n${'x: y\r\n'.repeat(100_000)}`))).length, 1)
  const app = createApp({ routes: { '/': { POST: (request) => read(request, { partsMax: 5 }) } } })
  const response = await app.inject('/', {
    method: 'POST',
    headers: TYPE,
    body: part('a', '1').repeat(9) + END,
  })
  assert.equal(((await response.json()) as string[]).length, 5)
})
