/**
 * Frames built by hand to do harm, one lie each: lengths, references, keys, nesting, kinds.
 *
 * The property tests and the fuzzer find what nobody thought of; these keep what somebody did.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  FORMAT_VERSION,
  TAG_ARRAY32,
  TAG_ARRAY8,
  TAG_ARRAY_BUFFER,
  TAG_ARRAY_BUFFER_RESIZABLE,
  TAG_ARRAY_FLOAT64,
  TAG_BIGINT,
  TAG_CLASS,
  TAG_CLASS_NAMED,
  TAG_DEFINE,
  TAG_ERROR,
  TAG_CAPTURING,
  TAG_FUNCTION,
  TAG_HANDLE,
  TAG_HOLE,
  TAG_MAP,
  TAG_MOVED_BUFFER,
  TAG_NULL,
  TAG_OBJECT16,
  TAG_OBJECT32,
  TAG_OBJECT_AGAIN,
  TAG_OBJECT_KEYS,
  TAG_OBJECT_PAIRS,
  TAG_REFERENCE,
  TAG_REGEXP,
  TAG_SET,
  TAG_SHARED_BUFFER,
  TAG_STRING,
  TAG_STRING32,
  TAG_UNDEFINED,
  TAG_URL,
  TAG_VIEW,
} from './format.ts'
import { decode, encode } from './codec.ts'
import { processFrame, readFrame } from './frame.ts'
import { setFirstLeaves } from './write/kinds.ts'
import { memoryInUse, readHostile } from './hostile.test.support.ts'
import { register, registerHandle } from './classes/classes.ts'
import './tables.test.support.ts'

const huge = [0xff, 0xff, 0xff, 0xff]

/** A frame of this body and these bytes of text. */
function frameOf(body: number[], text: number[] = [], mode = 1): Uint8Array {
  return Uint8Array.from([FORMAT_VERSION, mode, ...word(body.length), ...body, ...text])
}

function word(value: number): number[] {
  return [0, 8, 16, 24].map((shift) => (value >> shift) & 0xff)
}

const textOf = (text: string) => [text.length * 2, 0, 0, 0, ...Buffer.from(text, 'latin1')]

/** Read `frame` as threads read what they hand to each other. */
const readInside = (frame: Uint8Array): unknown => readFrame(frame, 0, frame.length)

/** The body is refused, in either mode, without harm and at once. */
function check(body: number[], text: number[] = []): void {
  for (const mode of [0, 1]) {
    const frame = frameOf(body, text, mode)
    assert.throws(() => decode(frame), { name: 'TransportError' }, `mode ${mode}: ${body.join(' ')}`)
    assert.equal(readHostile(frame), false, `mode ${mode}: ${body.join(' ')}`)
  }
}

test('the builder of these tests builds frames', () => {
  assert.deepEqual(decode(frameOf([TAG_ARRAY8, 2, 5, TAG_STRING + 3], textOf('abc'))), [5, 'abc'])
})

test('lengths that promise more than there is are refused', () => {
  for (const tag of [
    TAG_ARRAY32,
    TAG_ARRAY_FLOAT64,
    TAG_MAP,
    TAG_SET,
    TAG_ARRAY_BUFFER,
    TAG_STRING32,
    TAG_OBJECT_PAIRS,
  ]) {
    check([tag, ...huge])
    check([tag, ...huge, 1, 2, 3])
    check([tag, 0xff, 0xff, 0, 0])
    check([tag])
  }
  check([TAG_ARRAY8, 200, 1])
  check([TAG_BIGINT, 0, ...huge])
  check([TAG_BIGINT, 0, 0, 0, 0, 0])
  check([TAG_BIGINT, 2, 1, 0, 0, 0, 5])
  check([TAG_VIEW, 2, ...huge, ...huge, TAG_ARRAY_BUFFER, 0, 0, 0, 0])
  check([TAG_VIEW, 9, 1, 0, 0, 0, 1, 0, 0, 0, TAG_ARRAY_BUFFER, 9, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  check([TAG_VIEW, 99, 0, 0, 0, 0, 0, 0, 0, 0, TAG_ARRAY_BUFFER, 0, 0, 0, 0])
  check([TAG_VIEW, 1, 0, 0, 0, 0, 0, 0, 0, 0, TAG_NULL])
  check([TAG_ARRAY_BUFFER_RESIZABLE, 0, 0, 0, 0, ...huge])
  check([TAG_ARRAY_BUFFER_RESIZABLE, 2, 0, 0, 0, 1, 0, 0, 0, 5, 5])
})

test('texts that are not there are refused', () => {
  check([TAG_STRING + 5])
  check([TAG_STRING + 5], textOf('abc'))
  check([TAG_ARRAY8, 2, TAG_STRING + 3, TAG_STRING + 1], textOf('abc'))
  check([TAG_STRING + 2], [...huge, 1, 2])
  check([TAG_STRING + 2], [4, 0])
  check([TAG_STRING + 2], [5, 0, 0, 0, 1, 2, 3])
})

test('keys that contradict themselves are refused', () => {
  check([TAG_OBJECT_KEYS, 0xff, 0xff, 1, 0, 1, 97, 5])
  check([TAG_OBJECT_KEYS, 1, 0, 1, 5])
  check([TAG_OBJECT_KEYS, 4, 0, 1, 0, 9, 97, 5])
  check([TAG_OBJECT_KEYS, 4, 0, 2, 0, 1, 97, 5, 5])
  check([TAG_OBJECT_KEYS, 6, 0, 2, 0, 1, 1, 97, 97, 5, 5])
  check([TAG_OBJECT_KEYS, 6, 0, 2, 0, 1, 1, 97, 98, 5])
  check([TAG_OBJECT_AGAIN, 0, 0, 5])
  check([TAG_OBJECT16, 0, 0])
  check([TAG_OBJECT16, 0xff, 0xff, 1, 2, 3])
  check([TAG_OBJECT32, ...huge, 1, 2, 3])
  check([TAG_OBJECT_PAIRS, 1, 0, 0, 0, 5, 5])
})

test('references to nothing, and definitions of nothing, are refused', () => {
  check([TAG_REFERENCE, 0, 0, 0, 0])
  check([TAG_ARRAY8, 2, TAG_DEFINE, TAG_ARRAY8, 0, TAG_REFERENCE, 1, 0, 0, 0])
  check([TAG_DEFINE, 5])
  check([TAG_DEFINE, TAG_NULL])
  check([TAG_DEFINE, TAG_REFERENCE, 0, 0, 0, 0])
  check([TAG_DEFINE, TAG_DEFINE, TAG_REFERENCE, 0, 0, 0, 0])
  check(new Array<number>(5000).fill(TAG_DEFINE))
  check([TAG_DEFINE, TAG_URL, TAG_REFERENCE, 0, 0, 0, 0])
})

test('kinds with content that makes no sense are refused', () => {
  check([TAG_REGEXP, TAG_STRING + 1, TAG_STRING, 0, 0, 0, 0, 0, 0, 0, 0], textOf('('))
  check([TAG_REGEXP, TAG_STRING + 1, TAG_STRING + 1, 0, 0, 0, 0, 0, 0, 0, 0], textOf('a!'))
  check([TAG_URL, TAG_STRING + 3], textOf('abc'))
  check([TAG_HANDLE, TAG_STRING + 3, 5], textOf('abc'))
  check([TAG_CLASS, 1, 2, 3, 4, 0, 0, 0, 0, TAG_NULL])
  check([TAG_FUNCTION, ...huge])
  check([TAG_SHARED_BUFFER, ...huge])
  check([TAG_MOVED_BUFFER, ...huge])
  check([TAG_ERROR, 99, 0, TAG_NULL, TAG_NULL])
  check([TAG_ERROR, 0, 255, TAG_STRING, TAG_STRING, TAG_STRING])
  check([TAG_ERROR, 0, 0, 5, 5, TAG_OBJECT_PAIRS, 0, 0, 0, 0])
  check([TAG_CAPTURING, ...huge])
  check([TAG_CAPTURING, 1, 0, 0, 0, TAG_NULL])
  check([TAG_CAPTURING, 1, 0, 0, 0, TAG_ARRAY8, 0])
  for (let tag = 0xe9; tag <= 0xff; tag++) check([tag, 0, 0, 0, 0])
})

test('holes cannot make an array longer than its length, and take no memory', () => {
  check([TAG_ARRAY8, 3, TAG_HOLE, 4, 0, 0, 0])
  check([TAG_ARRAY8, 3, TAG_HOLE, 0, 0, 0, 0])
  check([TAG_HOLE, 1, 0, 0, 0])
  const before = memoryInUse()
  const far = decode(frameOf([TAG_ARRAY32, 0, 0, 0, 1, TAG_HOLE, 0, 0, 0, 1])) as unknown[]
  assert.ok(memoryInUse() - before < 8_000_000)
  assert.equal(far.length, 1 << 24)
})

test('deep nesting is refused before the stack ends', () => {
  const deep = (levels: number) =>
    Array.from({ length: levels * 2 }, (_, index) => (index % 2 === 0 ? TAG_ARRAY8 : 1))
  for (const levels of [1001, 20_000, 500_000]) {
    assert.throws(() => decode(frameOf([...deep(levels), 5])), {
      code: 'TRANSPORT_DEPTH',
    })
  }
  assert.throws(() => decode(frameOf(new Array<number>(300_000).fill(TAG_SET))), {
    name: 'TransportError',
  })
})

test('invalid headers are refused', () => {
  const frame = encode([1, 'a'])
  for (let length = 0; length < 7; length++)
    assert.throws(() => decode(frame.subarray(0, length)), {
      code: 'TRANSPORT_MALFORMED',
      message: 'damaged frame, or not a frame: too short; pass exactly the bytes that encode() returned',
    })
  assert.throws(() => decode(Uint8Array.from([2, ...frame.subarray(1)])), {
    code: 'TRANSPORT_VERSION',
    facts: { version: 2, versionKnown: 1 },
  })
  assert.throws(() => decode(Uint8Array.from([1, 7, ...frame.subarray(2)])), {
    code: 'TRANSPORT_MALFORMED',
  })
  assert.throws(() => decode(Uint8Array.from([1, 1, ...huge, 5])), {
    code: 'TRANSPORT_MALFORMED',
  })
  assert.throws(() => decode(Uint8Array.from([1, 1, 0, 0, 0, 0, 5])), {
    code: 'TRANSPORT_MALFORMED',
  })
  assert.throws(() => decode(frameOf([5, 5])), {
    code: 'TRANSPORT_MALFORMED',
  })
})

test('a self-contained frame cannot use numbers of this process', () => {
  setFirstLeaves(0)
  for (let seen = 0; seen < 20; seen++) encode({ numbered: 1 }, { mode: 'process' })
  const frame = processFrame({ numbered: 1 })
  assert.equal(frame[6], TAG_OBJECT16)
  frame[1] = 1
  assert.throws(() => decode(frame), { code: 'TRANSPORT_MALFORMED' })
})

test('bytes behind the value are refused', () => {
  for (const value of [1, 'a', { a: ['b'] }, 'x'.repeat(40_000)]) {
    const frame = encode(value)
    for (const tail of [[0], [0, 0, 0, 0], textOf('abc')]) {
      const longer = Uint8Array.from([...frame, ...tail])
      assert.throws(() => decode(longer), { code: 'TRANSPORT_MALFORMED', message: /bytes follow/ })
    }
  }
})

test('a malformed URL is a TransportError also when the engine has optimised its check', () => {
  const text = textOf('http://a\xc6\x8c\x18')
  const frame = frameOf([TAG_URL, TAG_STRING + 11], text)
  const good = frameOf([TAG_URL, TAG_STRING + 8], textOf('http://a'))
  for (let round = 0; round < 10_000; round++) {
    decode(good)
    try {
      assert.fail(`it was read: ${String(decode(frame))}`)
    } catch (error) {
      if ((error as { code?: string }).code !== 'TRANSPORT_MALFORMED') throw error
    }
  }
})

test('what the engine cannot make of a frame is a TransportError with its cause', () => {
  const full = class extends Map {
    override set(): never {
      throw new RangeError('Map maximum size exceeded')
    }
  }
  const { Map: Kept } = globalThis
  Object.assign(globalThis, { Map: full })
  try {
    assert.throws(
      () => decode(frameOf([TAG_MAP, ...word(1), 1, 1])),
      (error: Error & { code?: string }) =>
        error.code === 'TRANSPORT_MALFORMED' && error.cause instanceof RangeError,
    )
  } finally {
    Object.assign(globalThis, { Map: Kept })
  }
})

test('names of keys from a frame never run as code', () => {
  const keys = [
    '"]}; globalThis.hacked = 1; ({["',
    '\u2028',
    '${globalThis.hacked = 1}',
    '\\',
    '*/ hacked /*',
    '`',
  ]
  const value = Object.fromEntries(keys.map((key) => [key, 1]))
  for (let seen = 0; seen < 100; seen++) assert.deepEqual(decode(encode(value)), value)
  assert.equal((globalThis as { hacked?: unknown }).hacked, undefined)
})

test('holes take no more room than a small multiple of their frame', () => {
  const arrays = 4000
  const holes = [TAG_ARRAY32, ...word(1024), TAG_HOLE, ...word(1024)]
  const body = [TAG_ARRAY32, ...word(arrays), ...Array.from({ length: arrays }, () => holes).flat()]
  const frame = frameOf(body)
  const before = memoryInUse()
  const value = decode(frame) as unknown[][]
  const taken = memoryInUse() - before
  assert.equal(value.length, arrays)
  assert.ok(value.every((array) => array.length === 1024 && !(0 in array)))
  assert.ok(taken < 100 * frame.length, `${taken} bytes for a frame of ${frame.length}`)
})

test('resizable buffers take a bounded part of the address space, however many a frame holds', () => {
  const tiny = [TAG_ARRAY_BUFFER_RESIZABLE, ...word(1), ...word(0x1000040), 7]
  const frame = (count: number, one = tiny) =>
    frameOf([TAG_ARRAY32, ...word(count), ...Array.from({ length: count }, () => one).flat()])
  assert.equal((decode(frame(16)) as unknown[]).length, 16)
  for (const count of [17, 65, 200, 5000]) {
    assert.throws(() => decode(frame(count)), { code: 'TRANSPORT_MALFORMED', message: /resizable/ })
  }
  const still = [TAG_ARRAY_BUFFER_RESIZABLE, ...word(1), ...word(1), 7]
  assert.equal((decode(frame(64, still)) as unknown[]).length, 64)
  assert.throws(() => decode(frame(65, still)), { code: 'TRANSPORT_MALFORMED', message: /more than 64/ })
})

test('a list of more keys than any writer makes is refused before code is generated for it', () => {
  const frame = (count: number) => {
    const keys = Array.from({ length: count }, (_, id) => `k${id}`)
    const text = Buffer.from(keys.join(''), 'latin1')
    const half = (value: number) => word(value).slice(0, 2)
    const lengths = keys.map((key) => key.length)
    const block = [...half(2 + count + text.length), ...half(count), ...lengths, ...text]
    return frameOf([TAG_OBJECT_KEYS, ...block, ...new Array<number>(count).fill(1)])
  }
  assert.equal(Object.keys(decode(frame(256)) as object).length, 256)
  assert.throws(() => decode(frame(257)), { code: 'TRANSPORT_MALFORMED' })
})

test('what a handle stumbles over in a damaged frame is a TransportError, with its cause', () => {
  class Gate {}
  registerHandle({
    tag: 'hostile.gate',
    is: Gate,
    save: () => ({ id: 1 }),
    load: (saved: { id: number }) => (saved.id.toFixed() === '1' ? new Gate() : new Gate()),
  })
  const text = textOf('hostile.gate')
  for (const saved of [[TAG_NULL], [5], [TAG_ARRAY8, 0]]) {
    assert.throws(
      () => readInside(frameOf([TAG_HANDLE, TAG_STRING + 12, ...saved], text, 0)),
      (error: Error & { code?: string }) =>
        error.code === 'TRANSPORT_MALFORMED' &&
        error.message.includes("'hostile.gate'") &&
        error.cause instanceof TypeError,
    )
  }
})

test(
  'a frame whose memory shrinks while it is read is refused',
  {
    skip: !('resizable' in ArrayBuffer.prototype),
  },
  () => {
    type Growing = ArrayBuffer & { resize(length: number): void }
    const Growing = ArrayBuffer as unknown as new (length: number, options: object) => Growing
    let memory: Growing | undefined
    class Shrinking {}
    register(Shrinking, {
      cid: 'hostile.Shrinking',
      save: () => 1,
      load: () => {
        memory?.resize(memory.byteLength - 500)
        return new Shrinking()
      },
    })
    for (const bytes of [new Uint8Array(1000), new Uint16Array(500), new ArrayBuffer(1000)]) {
      const frame = encode([new Shrinking(), bytes])
      memory = new Growing(frame.length, { maxByteLength: frame.length })
      const view = new Uint8Array(memory)
      view.set(frame)
      assert.throws(() => decode(view), { code: 'TRANSPORT_MALFORMED' })
      memory = undefined
      assert.deepEqual((decode(frame) as unknown[])[1], bytes)
    }
  },
)

test('an error cannot be made an object of a class with a load hook, or of a class of other objects', () => {
  class Money {
    cents = 1
  }
  register(Money, {
    cid: 'hostile.Money',
    save: () => 1,
    load: () => {
      throw new RangeError('never')
    },
  })
  class Plain {}
  register(Plain, { cid: 'hostile.Plain' })
  for (const cid of ['hostile.Money', 'hostile.Plain']) {
    const body = [TAG_ERROR, 0, 8, TAG_UNDEFINED, TAG_UNDEFINED, TAG_STRING + cid.length]
    const rest = [...word(0), TAG_OBJECT_PAIRS, ...word(0)]
    assert.throws(() => decode(frameOf([...body, ...rest], textOf(cid))), {
      code: 'TRANSPORT_MALFORMED',
      message: /is not a class of errors/,
    })
  }
})

test('a class with save and without load takes its fields from a plain object only', () => {
  class Saving {}
  register(Saving, { cid: 'hostile.Saving', save: () => ({}) })
  const text = textOf('hostile.Saving')
  for (const saved of [
    [TAG_VIEW, 2, ...word(0), ...word(2), TAG_ARRAY_BUFFER, ...word(2), 1, 2],
    [TAG_ARRAY8, 2, 1, 2],
    [TAG_MAP, ...word(0)],
    [5],
  ]) {
    assert.throws(() => decode(frameOf([TAG_CLASS_NAMED, TAG_STRING + 14, ...word(0), ...saved], text)), {
      code: 'TRANSPORT_MALFORMED',
      message: /hostile\.Saving/,
    })
  }
})
