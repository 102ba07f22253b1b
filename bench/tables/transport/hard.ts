/**
 * Whether codecs stay fast after objects that spoil the caches of an engine.
 *
 * `node hard.js '<order as JSON>'`, the samples as JSON on standard output: row → contender → ns per round.
 * Ten plain objects of one list of keys before; then ten thousands of objects of another list of keys in
 * dictionary mode and of 200 hidden classes; then the first ones again, and those of the other list in each
 * form.
 */
import assert from 'node:assert/strict'
import { loadCodecs, type Codec } from './codecs.ts'
import type { Extras, ExtrasOrder } from './extras.ts'
import { OBJECTS } from './payloads.ts'
import { slice } from './slice.ts'
import { HARD_ROWS } from './verdicts.ts'

const HIDDEN_CLASSES = 200
const SPOILING_PASSES = 40
const WARM_UP_MS = 60

type Fields = Record<string, unknown>

const plain = (index: number): Fields => ({ id: index, name: `name ${index}`, isOpen: index % 2 === 0 })
const other = (index: number): Fields => ({
  key: index,
  label: `label ${index}`,
  rate: index / 8,
  note: null,
})

/** A first key that goes again leaves a table of properties behind. */
function inDictionaryMode(fields: Fields): Fields {
  const object: Fields = { first: 0, ...fields }
  delete object['first']
  return object
}

/** Constructors whose objects are plain ones, each of a hidden class of its own. */
const makers = Array.from({ length: HIDDEN_CLASSES }, () => {
  const Made = function () {} as unknown as new () => Fields
  Made.prototype = Object.prototype
  return Made
})

const lists = (make: (index: number) => Fields): Fields[][] =>
  Array.from({ length: OBJECTS }, (_, list) => Array.from({ length: 10 }, (_, at) => make(list * 10 + at)))

const forms = {
  '10 of the other keys, plain': lists(other),
  '10 of the other keys, dictionary mode': lists((index) => inDictionaryMode(other(index))),
  '10 of the other keys, 200 hidden classes': lists((index) =>
    Object.assign(new makers[index % HIDDEN_CLASSES](), other(index)),
  ),
}

function measure(
  row: string,
  values: readonly unknown[],
  codecs: readonly Codec[],
  order: ExtrasOrder,
): Extras {
  const runs = codecs.flatMap((codec) => {
    const sent = values.map((value) => codec.encode(value))
    for (const [index, one] of sent.entries()) assert.deepEqual(codec.decode(one), values[index])
    const encode = codec.encodeTimed ?? ((value: unknown) => codec.encode(value))
    const decode = (index: number) => codec.decode(sent[index])
    return [
      { row: `${row}, encode`, name: codec.name, run: (index: number) => encode(values[index]) },
      { row: `${row}, decode`, name: codec.name, run: decode },
    ]
  })
  const found: Extras = {}
  for (const { run } of runs) slice(run, WARM_UP_MS)
  for (let round = 0; round < order.rounds; round += 1) {
    for (const { row: line, name, run } of runs)
      ((found[line] ??= {})[name] ??= []).push(slice(run, order.sliceMs))
  }
  return found
}

function spoil(codecs: readonly Codec[]): void {
  for (let pass = 0; pass < SPOILING_PASSES; pass += 1) {
    for (const value of Object.values(forms).flat())
      for (const codec of codecs) codec.decode((codec.encodeTimed?.(value), codec.encode(value)))
  }
}

async function main(order: ExtrasOrder): Promise<Extras> {
  const codecs = (await loadCodecs()).filter(({ isWhole }) => isWhole !== true)
  const values = lists(plain)
  const found = measure(HARD_ROWS.before, values, codecs, order)
  spoil(codecs)
  Object.assign(found, measure(HARD_ROWS.after, values, codecs, order))
  for (const [row, spoilt] of Object.entries(forms)) Object.assign(found, measure(row, spoilt, codecs, order))
  return found
}

process.stdout.write(JSON.stringify(await main(JSON.parse(process.argv[2]) as ExtrasOrder)))
