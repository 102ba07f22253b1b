/**
 * Programs for layouts against `JSON.parse`: whatever a program takes means the same, and what it does not
 * take is parsed, or refused in the same words, by the engine.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import { Cursor, MISS } from './cursor.ts'
import { layoutOf } from './layout.ts'
import { jsonParser } from './parse.ts'
import { type Program, programOf } from './program.ts'

const bytesOf = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))

/** What came of it, errors by their words. */
function outcome(act: () => unknown): unknown {
  try {
    return { value: act() }
  } catch (error) {
    return { error: (error as Error).message, name: (error as Error).name }
  }
}

/** The program for texts like this one. */
function learned(sample: string | Uint8Array): Program | undefined {
  const layout = layoutOf(typeof sample === 'string' ? bytesOf(sample) : sample)
  return layout === undefined ? undefined : programOf(layout)
}

/** Whether the program takes it; then it must mean what `JSON.parse` makes of it. */
function takes(program: Program, bytes: Uint8Array): boolean {
  const cursor = new Cursor()
  cursor.open(bytes)
  let value: unknown
  try {
    value = program(cursor)
  } catch (miss) {
    assert.equal(miss, MISS)
    return false
  }
  assert.deepStrictEqual(
    { value },
    outcome(() => JSON.parse(Buffer.from(bytes).toString())),
  )
  assert.deepEqual(
    Object.keys(Object(value) as object),
    Object.keys(Object(JSON.parse(Buffer.from(bytes).toString())) as object),
  )
  return true
}

/** A text of the sample's layout. */
function like(
  id: string,
  name: string,
  tags: string,
  inner: readonly [string, string],
  list: string,
): string {
  const [ok, none] = inner
  return `{"id":${id},"name":${name},"tags":${tags},"inner":{"ok":${ok},"none":${none}},"list":${list}}`
}

const SAMPLE = like('1', '"x"', '["a","b"]', ['true', 'null'], '[{"p":1.5},{"p":2}]')
const [LONG, BACKSLASHES] = [`"${'x'.repeat(300)}"`, `"${'\\'.repeat(98)}"`]

/** Texts of the sample's layout, and others; which of them its program takes. */
const TEXTS: readonly (readonly [text: string, isTaken: boolean])[] = [
  [SAMPLE, true],
  [like('-0', '""', '[]', ['false', '1'], '[]'), true],
  ['{"id":null,"name":null,"tags":null,"inner":null,"list":null}', true],
  [like('1e5', '"\\u00e9\\n\\""', '["\\\\"]', ['"é"', '"\u{1f600}"'], '[{"p":-1.25E-3}]'), true],
  [like('123456789012345678901234567890', LONG, '[1,2,3]', ['0', '0'], '[null,{"p":0}]'), true],
  [like('0.1', BACKSLASHES, '[0.30000000000000004]', ['5e-324', '1e309'], '[{"p":9007199254740993}]'), true],
  [like('0.000001', '"0123456789abc"', '["0123456789ab"]', ['100000000000000.5', '-0.0'], '[]'), true],
  [like('1', '2', '3', ['0.123456789012345', '12345678901234.5'], '[{"p":""}]'), true],
  [SAMPLE.replace('"id"', '"ID"'), false],
  [SAMPLE.replace('"x"', '"x","more":1'), false],
  [SAMPLE.replace('1,"name"', '1, "name"'), false],
  [SAMPLE.replace('true', '{}'), false],
  [SAMPLE + ' ', false],
  [SAMPLE.slice(0, -1), false],
  ['\ufeff' + SAMPLE, false],
  ['', false],
  ['null', true],
]
for (const [text, isTaken] of TEXTS) {
  test(`${isTaken ? 'taken' : 'left to the engine'}: ${text.slice(0, 60)}`, () => {
    assert.equal(takes(learned(SAMPLE)!, bytesOf(text)), isTaken)
  })
}

test('what is no JSON is not taken, wherever it stands', () => {
  const program = learned('{"value":1,"others":[1]}')!
  const wrong = [
    '01',
    '-',
    '1.',
    '.5',
    '+1',
    '1e',
    '1e+',
    '--1',
    '0x1',
    'NaN',
    'tru',
    'truE',
    'nul',
    'falsee',
    '"',
    '"\\x"',
    '"\\u12"',
  ]
  const more = [
    '"a\u0001b"',
    `"${'a'.repeat(100)}\n"`,
    "'a'",
    '1_0',
    'undefined',
    '',
    ' ',
    '1 2',
    '"a"b',
    '[',
    '{',
  ]
  for (const value of [...wrong, ...more]) {
    for (const text of [
      `{"value":${value},"others":[1]}`,
      `{"value":1,"others":[${value},2]}`,
      `{"value":1,"others":[2,${value}]}`,
    ]) {
      assert.equal(takes(program, bytesOf(text)), false, text)
    }
  }
  for (const text of [
    '{"value":1,"others":[1,]}',
    '{"value":1,"others":[,1]}',
    '{"value":1,"others":[1',
    '{"value":1,"others":[1}',
    '{"value":1,"others":[1]]',
  ])
    assert.equal(takes(program, bytesOf(text)), false, text)
})

test('blanks are part of the layout, and lists may be longer or shorter than the one that was seen', () => {
  for (const indent of [0, 1, 2, 4, '\t']) {
    const program = learned(
      JSON.stringify({ first: [1], second: [{ third: [] as number[] }], fourth: {} }, null, indent),
    )!
    for (const length of [0, 1, 2, 5]) {
      const second = Array.from({ length }, () => ({ third: [] }))
      const text = JSON.stringify(
        { first: Array.from({ length }, () => 1), second, fourth: {} },
        null,
        indent,
      )
      assert.ok(takes(program, bytesOf(text)), text)
    }
  }
})

/** Samples that have no layout, and why. */
const WITHOUT: Readonly<Record<string, string>> = {
  'a scalar': '"a long enough text"',
  'items of two layouts': '[{"first":1},{"second":2}]',
  'items of two kinds': '[{"first":1},[2]]',
  'a property named __proto__': '{"__proto__":{"polluted":true}}',
  'the same under an escape': '{"__pr\\u006fto__":{"polluted":true}}',
  'values that outweigh the names': `{"text":"${'a'.repeat(200)}"}`,
  'more names than code should have': JSON.stringify(
    Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`name${at}`, 1])),
  ),
  'more values than code should have': `{${Array.from({ length: 128 }, () => '"":1').join()}}`,
  'more depth than code should have': '{"a":'.repeat(17) + '1' + '}'.repeat(17),
}
for (const [what, text] of Object.entries(WITHOUT)) {
  test(`not learned: ${what}`, () => assert.equal(learned(text), undefined))
}

test('names that are numbers, repeated or empty keep the order and the values that they have in JSON', () => {
  for (const text of [
    '{"b":1,"2":2,"1":3,"":4}',
    '{"a":1,"b":2,"a":3}',
    '{"constructor":1,"toString":2,"hasOwnProperty":3}',
  ])
    assert.ok(takes(learned(text)!, bytesOf(text)), text)
})

test('a layout outlives the memory that it was read from', () => {
  const memory = Buffer.from(SAMPLE)
  const program = learned(memory)!
  memory.fill(0)
  assert.ok(takes(program, bytesOf(SAMPLE)))
})

/** A value and others of its layout: the scalars differ, lists have other lengths. */
const scalar = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ maxLength: 8 }),
  fc.boolean(),
  fc.constant(null),
)
// V8 of Node 24 and 26 takes an escaped key for this one, where it has seen it in the same place before.
const key = fc.string({ maxLength: 10 }).filter((name) => name !== '\\')
type Make = (scalars: () => unknown, length: () => number) => unknown
const { make } = fc.letrec<{ make: Make; object: Make; list: Make; leaf: Make }>((tie) => ({
  make: fc.oneof({ maxDepth: 4 }, tie('leaf'), tie('object'), tie('list')),
  leaf: fc.constant<Make>((scalars) => scalars()),
  object: fc
    .array(fc.tuple(key, tie('make')), { minLength: 1, maxLength: 5 })
    .map<Make>(
      (fields) => (scalars, length) =>
        Object.fromEntries(fields.map(([name, each]) => [name, each(scalars, length)])),
    ),
  list: tie('make').map<Make>(
    (each) => (scalars, length) => Array.from({ length: length() }, () => each(scalars, length)),
  ),
}))

test('any text of any layout, whole or damaged, is what JSON.parse makes of it', () => {
  const indent = fc.constantFrom(0, 2, '\t')
  const damage = fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 3 })
  let takenCount = 0
  fc.assert(
    fc.property(
      make,
      fc.array(scalar, { minLength: 8, maxLength: 8 }),
      fc.array(fc.nat(3), { minLength: 4, maxLength: 4 }),
      indent,
      damage,
      (one, scalars, lengths, space, hits) => {
        let [at, turn] = [0, 0]
        const text = (): string =>
          JSON.stringify(
            one(
              () => scalars[at++ % 8],
              () => lengths[turn++ % 4]!,
            ),
            null,
            space,
          )
        const program = learned(text())
        if (program === undefined) return
        for (let more = 0; more < 3; more += 1) {
          at += more
          turn += more
          const bytes = bytesOf(text())
          if (takes(program, bytes)) takenCount += 1
          for (const [place, byte] of hits) bytes[place % bytes.byteLength] = byte
          takes(program, bytes)
        }
      },
    ),
    { numRuns: 2000 },
  )
  assert.ok(takenCount > 500, `${takenCount} taken`)
})

test('the parser says what JSON.parse says, before it has learned and after', () => {
  const parse = jsonParser()
  const check = (text: string): void =>
    assert.deepStrictEqual(
      outcome(() => parse(bytesOf(text))),
      outcome(() => JSON.parse(text.replace(/^\ufeff/, ''))),
    )
  for (let turn = 0; turn < 100; turn += 1) {
    for (const [text] of TEXTS) check(text)
    check(SAMPLE.replace('1', String(turn)))
  }
})

test('it learns once a kind has come often, and again ever more seldom while its programs miss', () => {
  const learnedAt: number[] = []
  let count = 0
  const learn = (): Program => {
    learnedAt.push(count)
    return () => {
      throw MISS
    }
  }
  const parse = jsonParser(learn, () => 0)
  for (; count < 20_000; count += 1) assert.deepEqual(parse(bytesOf(SAMPLE)), JSON.parse(SAMPLE))
  assert.ok(learnedAt[0]! >= 10 && learnedAt[0]! < 20, String(learnedAt[0]))
  assert.ok(learnedAt.length > 5 && learnedAt.length < 12, String(learnedAt))
})

test('learning takes a hundredth of the time at most, and less once there were many programs', () => {
  let [nowMs, learnedMs, learnedCount] = [0, 0, 0]
  const learn = (): undefined => {
    nowMs += 5
    learnedMs += 5
    learnedCount += 1
  }
  const parse = jsonParser(learn, () => nowMs)
  const send = (requests: number): void => {
    for (let turn = 0; turn < requests; turn += 1) {
      nowMs += 0.05
      // Each kind comes often enough to be learned, and to take the place of the one before.
      parse(bytesOf(SAMPLE.replace('id', `id${Math.trunc(turn / 40)}`)))
    }
  }
  send(100_000)
  assert.ok(learnedCount >= 5, String(learnedCount))
  assert.ok(learnedMs <= nowMs / 90, `${learnedMs} of ${nowMs} ms`)
  send(3_000_000)
  assert.ok(learnedCount > 256 && learnedCount < 256 + 10, String(learnedCount))
})

test('a program is given up whose texts are the engine’s to read all the same', () => {
  let learnedCount = 0
  const learn = (bytes: Uint8Array): Program | undefined => {
    learnedCount += 1
    return learned(bytes)
  }
  const parse = jsonParser(learn, () => 0)
  const [plain, odd] = [SAMPLE, SAMPLE.replace('"x"', '"\\n"').replace('1.5', '1.5e1').replace('"a"', '"é"')]
  for (let turn = 0; turn < 500; turn += 1) assert.deepEqual(parse(bytesOf(plain)), JSON.parse(plain))
  assert.equal(learnedCount, 1)
  for (let turn = 0; turn < 500; turn += 1) assert.deepEqual(parse(bytesOf(odd)), JSON.parse(odd))
  assert.ok(learnedCount > 1 && learnedCount < 8, String(learnedCount))
})

test('what the application puts in place of JSON.parse is not asked', () => {
  const { parse: own } = JSON
  const parse = jsonParser()
  try {
    JSON.parse = () => ({})
    for (let turn = 0; turn < 40; turn += 1)
      assert.throws(() => parse(bytesOf('{"aaaaaaaa":1,"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb":"unfinished')))
  } finally {
    JSON.parse = own
  }
})

test('a program that misses now and then stays, and its errors are not taken for misses', () => {
  let [learnedCount, calls] = [0, 0]
  const parse = jsonParser(() => {
    learnedCount += 1
    return () => {
      if ((calls += 1) % 10 === 0) throw MISS
      return 'read'
    }
  })
  for (let turn = 0; turn < 2000; turn += 1) parse(bytesOf(SAMPLE))
  assert.deepEqual([learnedCount, calls > 1900], [1, true])
  const broken = jsonParser(() => () => {
    throw new RangeError('a defect')
  })
  assert.throws(() => {
    for (let turn = 0; turn < 100; turn += 1) broken(bytesOf(SAMPLE))
  }, RangeError)
})

test('kinds without number do not push out one that comes often, and leave nothing behind', () => {
  let learnedCount = 0
  const parse = jsonParser(() => {
    learnedCount += 1
    return () => 'read'
  })
  for (let turn = 0; turn < 200; turn += 1) parse(bytesOf(SAMPLE))
  for (let turn = 0; turn < 20_000; turn += 1) {
    parse(bytesOf(SAMPLE.replace('id', `id${turn}`)))
    if (turn % 50 === 0) assert.equal(parse(bytesOf(SAMPLE)), 'read')
  }
  assert.equal(learnedCount, 1)
})

test('where code must not be made from text the engine parses everything', () => {
  const url = new URL('./parse.js', import.meta.url).href
  const script = `
    const { jsonParser } = await import(${JSON.stringify(url)})
    const parse = jsonParser()
    const bytes = new Uint8Array(Buffer.from(${JSON.stringify(SAMPLE)}))
    for (let turn = 0; turn < 100; turn += 1) if (parse(bytes).name !== 'x') throw new Error('another value')
    console.log('parsed')`
  const flags = ['--disallow-code-generation-from-strings', '--input-type=module', '-e', script]
  assert.equal(execFileSync(process.execPath, flags, { encoding: 'utf8' }), 'parsed\n')
})
