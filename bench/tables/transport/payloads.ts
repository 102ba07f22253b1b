/**
 * What table `transport` sends: the seventeen payloads of the napajs report, and six that look like real
 * ones.
 *
 * Each payload is 64 different objects, made anew from a seed, so every process measures the same ones. The
 * seventeen are `generateObject` of that report: K keys `key0`..., D levels, and as values the integer i,
 * distinct strings of one length, or booleans. In the first object they are those of the report; in the
 * others integers are other ones of as many digits, booleans other ones, so that the contents differ. Five
 * booleans have 32 contents, each of which comes twice.
 */

/** How the objects came to be: it decides how the engine keeps them. */
export type Built = 'assigned' | 'parsed'

/** One line of the table. */
export interface Payload {
  readonly label: string
  /** Row of the seed's table, for the seventeen. */
  readonly seedRow: string | undefined
  readonly make: (index: number, text: Texts) => unknown
}

/** Distinct texts from one seed. */
export type Texts = (length: number) => string

/** Objects of one payload. */
export const OBJECTS = 64

const SEED_ROWS: readonly (readonly [
  keys: number,
  levels: number,
  kind: 'integers' | 'strings' | 'booleans',
  length?: number,
])[] = [
  [10, 1, 'integers'],
  [100, 1, 'integers'],
  [2, 10, 'integers'],
  [10, 2, 'integers'],
  [5, 3, 'integers'],
  [10, 1, 'strings', 10],
  [100, 1, 'strings', 10],
  [10, 2, 'strings', 10],
  [5, 3, 'strings', 10],
  [10, 1, 'strings', 100],
  [100, 1, 'strings', 100],
  [10, 2, 'strings', 100],
  [5, 3, 'strings', 100],
  [10, 1, 'booleans'],
  [100, 1, 'booleans'],
  [10, 2, 'booleans'],
  [5, 3, 'booleans'],
]

/** The seventeen of the seed, in its order. */
export const SEED_PAYLOADS: readonly Payload[] = SEED_ROWS.map(([keys, levels, kind, length], at) => ({
  label: `${levels} level - ${keys} ${kind}${length === undefined ? '' : ` - length ${length}`}`,
  seedRow: String(at + 1),
  make: (index, text) => {
    const value = (key: number) =>
      kind === 'integers'
        ? integer(key, index, Math.max(keys, 10))
        : kind === 'booleans'
          ? boolean(key, index, Math.min(keys, 6))
          : text(length!)
    return generateObject(keys, levels, value)
  },
}))

/** 0 to `most` − 1 in turn; after a whole turn, object `index` differs in its first key. */
function integer(key: number, index: number, most: number): number {
  return (key + index + (key === 0 ? Math.floor(index / most) : 0)) % most
}

/** True and false in turn, of which the first `bits` are changed by the bits of `index`. */
function boolean(key: number, index: number, bits: number): boolean {
  const isChanged = key < bits && ((index >> key) & 1) === 1
  return (key % 2 === 0) !== isChanged
}

function generateObject(keys: number, levels: number, value: (key: number) => unknown): unknown {
  const object: Record<string, unknown> = {}
  for (let key = 0; key < keys; key += 1) {
    object[`key${key}`] = levels > 1 ? generateObject(keys, levels - 1, value) : value(key)
  }
  return object
}

/** Six of the kinds that programs send. */
export const REAL_PAYLOADS: readonly Payload[] = [
  { label: 'API page of 20 users', seedRow: undefined, make: apiPage },
  { label: '50 log lines with optional fields', seedRow: undefined, make: logLines },
  { label: 'GeoJSON of 10 shapes', seedRow: undefined, make: geoJson },
  { label: '20 orders', seedRow: undefined, make: orders },
  { label: 'unicode text', seedRow: undefined, make: unicodeText },
  { label: 'number arrays', seedRow: undefined, make: numberArrays },
]

function times<Value>(count: number, make: (at: number) => Value): Value[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

function apiPage(index: number, text: Texts): unknown {
  return {
    page: index,
    total: 4711 + index,
    next: `https://api.example.com/users?page=${index + 1}&cursor=${text(24)}`,
    users: times(20, (at) => ({
      id: 100_000 + index * 20 + at,
      name: `${text(6)} ${text(9)}`,
      email: `${text(8)}@example.com`,
      isActive: at % 3 !== 0,
      score: at * 1.37 + index,
      manager: at % 4 === 0 ? null : 100_000 + at,
      tags: times(at % 4, () => text(5)),
      address: { street: `${text(10)} ${at}`, city: text(8), zip: String(10_000 + at), country: 'DE' },
      createdAt: new Date(1_700_000_000_000 + index * 86_400_000 + at).toISOString(),
    })),
  }
}

function logLines(index: number, text: Texts): unknown {
  return times(50, (at) => ({
    time: 1_700_000_000_000 + index * 1000 + at,
    level: ['debug', 'info', 'warn', 'error'][at % 4],
    message: `${text(12)} ${text(20)}`,
    ...(at % 2 === 0 ? { requestId: text(16) } : {}),
    ...(at % 5 === 0 ? { durationMs: at * 0.73 } : {}),
    ...(at % 7 === 0 ? { error: { name: 'TypeError', stack: text(120) } } : {}),
    ...(at % 3 === 0 ? { user: { id: at, role: 'admin' } } : {}),
  }))
}

function geoJson(index: number, text: Texts): unknown {
  const point = (at: number) => [8 + index / 100 + at / 1000.7, 47 + Math.sin(at) / 10]
  return {
    type: 'FeatureCollection',
    features: times(10, (feature) => ({
      type: 'Feature',
      id: `way/${index * 10 + feature}`,
      properties: { name: text(12), highway: 'residential', lanes: feature % 3, oneway: feature % 2 === 0 },
      geometry: { type: 'Polygon', coordinates: [times(40, (at) => point(feature * 40 + at))] },
    })),
  }
}

function orders(index: number, text: Texts): unknown {
  return times(20, (at) => ({
    orderId: `${index}-${at}-${text(8)}`,
    customer: { id: index * 100 + at, name: text(14), vip: at % 9 === 0 },
    items: times(1 + (at % 5), (item) => ({
      sku: text(10),
      quantity: 1 + item,
      priceCents: 999 + item * 250,
      discount: item === 2 ? 0.15 : 0,
    })),
    status: ['open', 'paid', 'shipped'][at % 3],
    note: at % 6 === 0 ? text(60) : '',
  }))
}

function unicodeText(index: number, text: Texts): unknown {
  const samples = [
    'Привет, мир',
    'こんにちは世界',
    'Größe und Übermaß',
    '你好，世界',
    '😀 emoji ✨',
    'plain words',
  ]
  return times(12, (at) => ({
    language: ['ru', 'ja', 'de', 'zh', 'xx', 'en'][at % 6],
    title: `${samples[at % 6]} ${index}`,
    body: `${samples[at % 6]} ${text(8)} `.repeat(8),
  }))
}

function numberArrays(index: number): unknown {
  return {
    integers: times(500, (at) => at * 37 + index),
    small: times(500, (at) => (at + index) % 100),
    fractions: times(500, (at) => Math.sqrt(at + index)),
    matrix: times(20, (row) => times(20, (column) => row * column + index / 7)),
  }
}

/** The 64 objects of a payload. */
export function objectsOf(payload: Payload, built: Built): unknown[] {
  const text = textsFrom(payload.label.length * 7919 + 1)
  const objects = times(OBJECTS, (index) => payload.make(index, text))
  return built === 'assigned'
    ? objects
    : objects.map((object) => JSON.parse(JSON.stringify(object)) as unknown)
}

/** Texts of any length, the same ones for the same seed. */
export function textsFrom(seed: number): Texts {
  let state = seed
  return (length) => {
    let text = ''
    while (text.length < length) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      text += state.toString(36)
    }
    return text.slice(0, length)
  }
}
