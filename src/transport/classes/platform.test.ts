/**
 * Objects of classes that Node provides: what arrives of each, as structuredClone has it where that carries
 * them, and in which words the others are refused.
 */
import assert from 'node:assert/strict'
import { Blob, File } from 'node:buffer'
import crypto from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { openAsBlob } from 'node:fs'
import { BlockList, Server, Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { after, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MessageChannel } from 'node:worker_threads'
import { isTransportable, encode, move, register, decode } from '../index.ts'
import { processFrame, readFrame } from '../internal.ts'
import { readHostile } from '../hostile.test.support.ts'

/** The value behind a frame between threads. */
function inside<Value>(value: Value): Value {
  const frame = processFrame(value)
  return readFrame(frame, 0, frame.length) as Value
}
const anywhere = <Value>(value: Value): Value => decode(encode(value)) as Value
const both = [inside, anywhere]

test('Blob and File arrive with their bytes, type, name and date', async () => {
  const blobs = () => [
    new Blob([]),
    new Blob(['héllo'], { type: 'text/plain' }),
    new Blob([new Uint8Array(300_000).fill(7), 'tail']).slice(5, 290_000, 'a/b'),
    new Blob([new Blob(['inner']), 'outer']),
    new File(['content'], 'näme.txt', { type: 'text/x', lastModified: 12 }),
  ]
  for (const send of both) {
    const near = blobs()
    const far = send(near)
    for (const [index, blob] of near.entries()) {
      const [copy, oracle] = [far[index] as File, structuredClone(blob) as File]
      // Node 20 and 22 clone a File as a Blob.
      assert.deepEqual([copy instanceof Blob, copy instanceof File], [true, blob instanceof File])
      assert.deepEqual([copy.type, copy.size], [oracle.type, oracle.size])
      assert.deepEqual(await copy.arrayBuffer(), await oracle.arrayBuffer())
      if (blob instanceof File) assert.deepEqual([copy.name, copy.lastModified], ['näme.txt', 12])
    }
    const [first, second] = send([near[1], near[1]])
    assert.equal(first, second, 'one that is met twice is one')
  }
})

// Node keeps the file of a Blob open until the garbage collector finds its reader.
after(async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let turn = 0; turn < 5; turn++) {
    collect()
    await setImmediate()
  }
})

test('a Blob of a file is refused with what to send instead', async () => {
  const whole = await openAsBlob(fileURLToPath(import.meta.url))
  // Node marks the first alone; a reader is begun for the others, and they stay whole.
  for (const blob of [whole, whole.slice(0, 10_000), new Blob(['head', whole])]) {
    assert.throws(() => processFrame({ blob }), {
      code: 'TRANSPORT_REFUSED',
      message: /^value\.blob .*send the path of the file/,
    })
    assert.equal(isTransportable(blob), false)
    assert.ok((await blob.text()).includes('stay whole'))
  }
})

test('a part of a FormData that is refused is named as its caller reaches it', async () => {
  const later = await openAsBlob(fileURLToPath(import.meta.url))
  const form = new FormData()
  form.append('notes', 'text')
  form.append('file', later, 'a.ts')
  assert.throws(() => processFrame({ form }), {
    code: 'TRANSPORT_REFUSED',
    message: /^value\.form\.get\("file"\) /,
  })
  form.set('file', new Blob(['in memory']))
  form.append('file', later, 'b.ts')
  assert.throws(() => encode([form]), { message: /^value\[0\]\.getAll\("file"\)\[1\] / })
})

test('a port that is moved or sent is refused with what to send instead, and stays usable', async () => {
  const { port1, port2 } = new MessageChannel()
  assert.throws(() => move(port1 as never), {
    code: 'TRANSPORT_ARGUMENT',
    message: /send a Channel, or create/,
  })
  assert.throws(() => processFrame([port1]), {
    code: 'TRANSPORT_REFUSED',
    message: /^value\[0\] .*a Channel/,
  })
  const arrived = once(port2, 'message')
  port1.postMessage('still open')
  assert.deepEqual(await arrived, ['still open'])
  port1.close()
})

test('move of an object that is copied is refused with the advice to send it without move', () => {
  class Extends extends BlockList {}
  const values = [new BlockList(), new Extends(), new Headers(), new Blob(['b']), new URLSearchParams('a=1')]
  for (const value of [...values, crypto.createSecretKey(Buffer.alloc(8))]) {
    assert.throws(() => move(value as never), {
      code: 'TRANSPORT_ARGUMENT',
      message: /owns its whole buffer; received an? \w+: its content is copied; send it without move\(\)$/,
    })
    assert.ok(processFrame(value).length > 0)
  }
})

test('URLSearchParams, Headers and FormData arrive with all entries in order', async () => {
  for (const send of both) {
    const search = new URLSearchParams('?a=1&b=%20x&a=2&?c=ä')
    assert.deepEqual([...send(search)], [...search])
    const headers = new Headers([
      ['set-cookie', 'a=1'],
      ['Content-Type', 'text/plain'],
      ['set-cookie', 'b=2'],
      ['x', 'one'],
      ['X', 'two'],
    ])
    const far = send(headers)
    assert.ok(far instanceof Headers)
    assert.deepEqual([...far], [...headers])
    assert.deepEqual(far.getSetCookie(), ['a=1', 'b=2'])
    const data = new FormData()
    data.append('text', 'ü')
    data.append('file', new File(['body'], 'up.bin', { type: 'a/b', lastModified: 5 }))
    data.append('text', 'again')
    const form = send({ data }).data
    assert.deepEqual([...form.keys()], ['text', 'file', 'text'])
    assert.deepEqual(form.getAll('text'), ['ü', 'again'])
    const file = form.get('file') as unknown as File
    assert.deepEqual(
      [file.name, file.type, file.lastModified, await file.text()],
      ['up.bin', 'a/b', 5, 'body'],
    )
  }
})

test('keys arrive in the same process and stay in it', () => {
  const { privateKey, publicKey } = crypto.generateKeyPairSync('ed25519')
  const rsa = crypto.generateKeyPairSync('rsa', { modulusLength: 1024 })
  const keys = [
    crypto.createSecretKey(Buffer.from('secret')),
    privateKey,
    publicKey,
    rsa.privateKey,
    rsa.publicKey,
  ]
  for (const key of keys) {
    const copy = inside({ key }).key
    assert.ok(copy.equals(key) && structuredClone(key).equals(copy))
    assert.deepEqual([copy.type, copy.asymmetricKeyType], [key.type, key.asymmetricKeyType])
    assert.throws(() => encode({ key }), {
      code: 'TRANSPORT_REFUSED',
      message: /^value\.key .*key\.export\(\)/,
    })
  }
  const signed = crypto.sign(null, Buffer.from('text'), inside(privateKey))
  assert.ok(crypto.verify(null, Buffer.from('text'), inside(publicKey), signed))
})

test('a CryptoKey arrives where Node can make one at once, and is refused elsewhere', async () => {
  const { subtle } = globalThis.crypto
  const keys = [
    await subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']),
    await subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, true, ['sign']),
    ...Object.values(
      await subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign', 'verify']),
    ),
  ]
  for (const key of keys) {
    assert.throws(() => encode(key), { code: 'TRANSPORT_REFUSED', message: /exportKey/ })
    if (!('toCryptoKey' in crypto.KeyObject.prototype)) {
      assert.throws(() => inside(key), { code: 'TRANSPORT_REFUSED', message: /KeyObject\.from\(key\)/ })
      assert.ok(inside(crypto.KeyObject.from(key)).equals(crypto.KeyObject.from(key)))
      continue
    }
    const [copy, oracle] = [inside(key), structuredClone(key)]
    assert.ok(copy instanceof CryptoKey)
    assert.deepEqual(
      [copy.type, copy.extractable, copy.algorithm, copy.usages],
      [oracle.type, oracle.extractable, oracle.algorithm, oracle.usages],
    )
    assert.ok(crypto.KeyObject.from(copy).equals(crypto.KeyObject.from(key)))
  }
})

test('a BlockList arrives with its rules', () => {
  const list = new BlockList()
  list.addAddress('1.2.3.4')
  list.addAddress('::1', 'ipv6')
  list.addRange('10.0.0.1', '10.0.0.9')
  list.addSubnet('fe80::', 10, 'ipv6')
  for (const send of both) {
    const copy = send(list)
    assert.ok(copy instanceof BlockList)
    assert.deepEqual(copy.rules, list.rules)
    assert.deepEqual(
      [copy.check('10.0.0.5'), copy.check('10.0.0.10'), copy.check('fe80::2', 'ipv6')],
      [true, false, true],
    )
  }
})

type Made = { toString(): string }
type TemporalHere = Record<string, { from(text: string | object): Made }>
const temporal = (globalThis as { Temporal?: TemporalHere }).Temporal

test('values of Temporal arrive the same', { skip: temporal === undefined }, () => {
  const texts = {
    Instant: '2026-11-22T15:00:00.123456789Z',
    PlainDate: '2026-11-22[u-ca=hebrew]',
    PlainTime: '01:02:03.000000004',
    PlainDateTime: '2026-11-22T01:02:03.5',
    PlainYearMonth: '2026-11',
    PlainMonthDay: '11-22',
    ZonedDateTime: '2026-11-22T15:00:00+01:00[Europe/Berlin]',
  }
  for (const send of both) {
    for (const [name, text] of Object.entries(texts)) {
      const value = temporal![name].from(text)
      const far = send(value)
      assert.equal(Object.getPrototypeOf(far), Object.getPrototypeOf(value))
      assert.equal(far.toString(), value.toString())
    }
    const duration = temporal!['Duration'].from({ hours: -30, milliseconds: -5000 }) as Made & {
      milliseconds: number
    }
    assert.deepEqual([send(duration).toString(), send(duration).milliseconds], [duration.toString(), -5000])
  }
})

test('what extends a class of the language arrives as that class, as of structuredClone', () => {
  class Table extends Map<string, number> {}
  class Tags extends Set<string> {}
  class List extends Array<unknown> {}
  class Bytes extends Uint8Array {}
  class Stamp extends Date {}
  class Link extends URL {}
  class Upload extends File {}
  const values = () => [
    new Table([['a', 1]]),
    new Tags(['x']),
    List.from([1, { a: 2 }, [3]]),
    new Bytes([1, 2]),
    new Stamp(5),
    new (class extends RegExp {})('a+', 'g'),
    new (class extends ArrayBuffer {})(3),
    new (class extends Number {})(7),
  ]
  for (const send of both) {
    for (const [index, value] of values().entries()) {
      const oracle: unknown = structuredClone(value)
      const far = send(value)
      assert.equal(Object.getPrototypeOf(far), Object.getPrototypeOf(oracle), `value ${index}`)
      assert.deepEqual(far, oracle)
    }
    assert.equal(Object.getPrototypeOf(send(new Link('http://a/'))), URL.prototype)
    assert.equal(Object.getPrototypeOf(send(new Upload([], 'a'))), File.prototype)
    const list = List.from([1]) as unknown[]
    list.push(list)
    const cycle = send({ list, again: list })
    assert.ok(cycle.list[1] === cycle.list && cycle.again === cycle.list)
  }
  register(Table, { cid: 'platform.Table', save: (table) => [...table], load: (saved) => new Table(saved) })
  assert.ok(anywhere(new Table([['a', 1]])) instanceof Table)
})

test('an object that only claims to be one of them is refused', () => {
  for (const made of [Headers, FormData, Blob, File, URLSearchParams, BlockList, crypto.KeyObject]) {
    const claim = Object.create(made.prototype) as object
    assert.throws(() => processFrame([claim]), { code: 'TRANSPORT_REFUSED', message: /^value\[0\] / })
  }
})

test('what belongs to its thread is refused with what to do, and never advised to register', () => {
  const { port1, port2 } = new MessageChannel()
  const socket = new Socket()
  const cases: [unknown, RegExp][] = [
    [port1, /send a Channel, or create a BroadcastChannel/],
    [socket, /send the bytes/],
    [new Server(), /socket belongs/],
    [new PassThrough(), /send the path that it reads, or the bytes/],
    [new ReadableStream(), /send the path that it reads, or the bytes/],
    [new Request('http://a/'), /the bytes of its body/],
    [new Response('body'), /the bytes of its body/],
    [new AbortController(), /send its signal/],
    [new EventEmitter(), /listeners belong to its thread/],
    [new TextDecoder(), /send the values it is made from/],
    [new Intl.NumberFormat(), /send the values it is made from/],
    [new FinalizationRegistry(() => {}), /send the values it is made from/],
  ]
  for (const [value, message] of cases) {
    assert.throws(
      () => processFrame({ value }),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, 'TRANSPORT_REFUSED')
        assert.match(error.message, /^value\.value /)
        assert.match(error.message, message)
        assert.doesNotMatch(error.message, /call register/)
        return true
      },
    )
  }
  port2.close()
  socket.destroy()
  class Bus extends EventEmitter {}
  assert.throws(() => processFrame(new Bus()), {
    code: 'TRANSPORT_CLASS_UNREGISTERED',
    message: /it extends EventEmitter, so call register\(Bus, \{ cid: 'app\/Bus', save, load \}\)/,
  })
})

test('frames that describe no such object are TransportErrors', () => {
  const names =
    'URLSearchParams Headers FormData Blob File KeyObject CryptoKey BlockList PlainDate Duration Nothing'
  const contents: unknown[] = [
    undefined,
    5,
    'text',
    [],
    [1],
    ['a'],
    ['a', 1],
    ['secret', 'x'],
    ['private', new Uint8Array(5)],
    [['public', new Uint8Array(2)], {}, true, []],
    ['Subnet: IPv4 1.2.3.4/99'],
    ['\0', '\0'],
    ['type', new Uint8Array(1), 5, 'now'],
  ]
  const head = encode(['@'])
  for (const name of names.split(' ')) {
    for (const content of contents) {
      // ['name', content] becomes a platform object: the tag of the array and its length go.
      const frame = processFrame([name, content])
      const bytes = Uint8Array.from([...frame.subarray(0, 6), 0xe9, ...frame.subarray(8)])
      new DataView(bytes.buffer).setUint32(2, new DataView(frame.buffer).getUint32(2, true) - 1, true)
      for (const mode of [0, 1]) {
        bytes[1] = mode
        assert.doesNotThrow(() => readHostile(bytes), `${name} of ${String(content)}`)
      }
    }
  }
  assert.ok(readHostile(head))
})
