/**
 * Values for property tests and the fuzzer: everything that can travel, nested, shared and in cycles.
 *
 * Trees come mostly from fast-check itself; graphs are objects wired to each other at random afterwards,
 * because no generator of trees ever makes a cycle.
 */
import fc from 'fast-check'

/** A value of any carried kind. Objects may be shared and lead back to themselves. */
export function anyValue(): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 3, arbitrary: anyTree() }, { weight: 1, arbitrary: anyGraph() })
}

/** A value in which no object is met twice, apart from what fast-check itself repeats. */
function anyTree(): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      withUnicodeString: true,
      maxDepth: 5,
    }),
    fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        tie('leaf'),
        tie('list'),
        tie('record'),
        tie('map'),
        tie('error'),
      ),
      list: fc.array(tie('node')),
      record: fc.dictionary(
        fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('__proto__', 'constructor', 'a', 'b')),
        tie('node'),
      ),
      map: fc.array(fc.tuple(tie('node'), tie('node'))).map((entries) => new Map(entries)),
      error: fc.tuple(fc.string(), tie('node')).map(([message, cause]) => new TypeError(message, { cause })),
      leaf: anyLeaf(),
    })).node,
  )
}

function anyLeaf(): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ minLength: 0, maxLength: 300 }),
    fc.double(),
    fc.integer(),
    fc.bigInt(),
    fc.constantFrom(undefined, null, true, false, -0, NaN, '\ud800', 'ÿ', 'Ā'),
    fc.date({ noInvalidDate: false }),
    fc.uint8Array().map((bytes) => bytes.buffer),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    fc.webUrl().map((href) => new URL(href)),
    fc.constantFrom(/a/g, /\d+(?<n>x)/iu).map((pattern) => new RegExp(pattern)),
    fc.sparseArray(fc.integer()),
    fc.float64Array().map((numbers) => [...numbers]),
  )
}

/** Objects wired to each other at random. */
function anyGraph(): fc.Arbitrary<unknown> {
  const kind = fc.constantFrom('object', 'array', 'map', 'set', 'error', 'null')
  const wires = fc.array(fc.tuple(fc.nat(), fc.nat(), fc.oneof(anyLeaf(), fc.constant(wire))), {
    maxLength: 30,
  })
  return fc.tuple(fc.array(kind, { minLength: 1, maxLength: 12 }), wires).map(([kinds, links]) => {
    const objects = kinds.map(made)
    for (const [from, to, value] of links) {
      const target = value === wire ? objects[to % objects.length] : value
      connect(objects[from % objects.length], `k${to % 5}`, target)
    }
    return objects[0]
  })
}

const wire = Symbol('wire')

function made(kind: string): object {
  if (kind === 'array') return []
  if (kind === 'map') return new Map()
  if (kind === 'set') return new Set()
  if (kind === 'error') return new Error('graph')
  return kind === 'null' ? (Object.create(null) as object) : {}
}

function connect(from: object, key: string, to: unknown): void {
  if (Array.isArray(from)) from.push(to)
  else if (from instanceof Map) from.set(key, to)
  else if (from instanceof Set) from.add(to)
  else (from as Record<string, unknown>)[key] = to
}
