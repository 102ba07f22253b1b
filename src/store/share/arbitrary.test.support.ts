/**
 * Values that can be shared, for fast-check: plain data as programs have it, and as none has it.
 *
 * Fields are few, so that records of one list have some in common and some not.
 */
import fc from 'fast-check'

const KEYS = ['id', 'name', 'toString', '__proto__', 'at', 'é☃', '0', 'constructor', 'then', 'length']

const number = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(0, -0, NaN, Infinity, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 32, 0.1),
)
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '\0', '\ud800', 'ÿ', '☃'),
)
const typed = fc.oneof(
  fc.int8Array(),
  fc.uint8Array(),
  fc.uint8ClampedArray(),
  fc.int16Array(),
  fc.uint16Array(),
  fc.int32Array(),
  fc.uint32Array(),
  fc.float32Array(),
  fc.float64Array(),
  fc.bigInt64Array(),
  fc.bigUint64Array(),
)
const leaf = fc.oneof(
  { weight: 4, arbitrary: number },
  { weight: 4, arbitrary: text },
  fc.boolean(),
  fc.constantFrom(null, undefined),
  fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
  fc.date({ noInvalidDate: true }),
  typed,
)

/** A record without the prototype's setter for `__proto__`. */
export function recordOf(entries: readonly (readonly [string, unknown])[]): object {
  const record = {}
  for (const [key, value] of entries)
    Object.defineProperty(record, key, { value, writable: true, enumerable: true, configurable: true })
  return record
}

const fields = fc.uniqueArray(fc.constantFrom(...KEYS), { maxLength: KEYS.length })

/** Records of which most have the same fields in the same order. */
function recordsOf(part: fc.Arbitrary<unknown>): fc.Arbitrary<object[]> {
  return fields.chain((keys) => {
    const values = fc.tuple(...keys.map(() => part))
    const uniform = values.map((all) => recordOf(all.map((value, index) => [keys[index], value])))
    return fc.array(fc.oneof({ weight: 5, arbitrary: uniform }, record(part)), { maxLength: 4 })
  })
}

function record(part: fc.Arbitrary<unknown>): fc.Arbitrary<object> {
  return fc
    .uniqueArray(fc.tuple(fc.constantFrom(...KEYS), part), { maxLength: 5, selector: ([key]) => key })
    .map(recordOf)
}

const { any } = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { depthSize: 'small', maxDepth: 2 },
    leaf,
    recordsOf(tie('any')),
    fc.array(tie('any'), { maxLength: 4 }),
    fc.array(leaf, { maxLength: 8 }),
    record(tie('any')),
  ),
}))

/** A value whose whole is a record or a list. */
export const shareable = fc.oneof(
  recordsOf(any),
  fc.array(any, { maxLength: 4 }),
  record(any),
  typed as fc.Arbitrary<object>,
)
