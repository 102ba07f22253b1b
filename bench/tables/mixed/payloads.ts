/**
 * What table `mixed` sends: payloads of the kinds that programs send, large and small, of many shapes.
 * A third is public data (public.ts).
 *
 * Each is 64 objects of different content, made anew from a seed. Every other object is made by JSON.parse,
 * where JSON can carry it: the engine keeps such objects differently.
 */
import { OBJECTS, REAL_PAYLOADS, textsFrom, type Texts } from '../transport/payloads.ts'
import { PUBLIC_PAYLOADS } from './public.ts'

/** One row of the table. */
export interface MixedPayload {
  readonly label: string
  /** What JSON can carry, and is compared with JSON; others with structuredClone, and with `against`. */
  readonly isJson: boolean
  readonly make: (index: number, text: Texts) => unknown
  /** Label of the payload whose successor this is. */
  readonly replaces?: string
}

/** Of dates, sets and maps. */
export const RICH_LABELS = [
  ...['date, set and map', '20 rows with dates', 'map of 100 names', 'set of 100 names'],
  ...['5 versions with dates', 'map of 39 media types'],
]
/** Bytes alone: their floor is one copy of them. */
export const BYTES_LABEL = 'Uint8Array of 64 KiB'
const BYTES = 65_536

function times<Value>(count: number, make: (at: number) => Value): Value[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

function pick<Value>(values: readonly Value[], at: number): Value {
  return values[at % values.length]
}

function real(label: string): MixedPayload {
  const { make } = REAL_PAYLOADS.find((payload) => payload.label === label)!
  return { label, isJson: true, make }
}

const json = (label: string, make: MixedPayload['make']): MixedPayload => ({ label, isJson: true, make })
const beyondJson = (label: string, make: MixedPayload['make']): MixedPayload => ({
  label,
  isJson: false,
  make,
})

/** All rows. */
export const MIXED_PAYLOADS: readonly MixedPayload[] = [
  json('one text of 40 characters', (_, text) => ({ msg: text(40) })),
  json('one character beyond Latin-1', (_, text) => ({ note: `${text(39)}東` })),
  json('log record, optional fields', logRecord),
  json('20 log records', (index, text) => times(20, (at) => logRecord(index * 20 + at, text))),
  json('call with three arguments', (index, text) => ({
    id: index,
    method: pick(['get', 'put', 'list'], index),
    params: [text(8), index * 3, index % 2 === 0],
  })),
  json('issue', issue),
  json('page of 30 issues', (index, text) => ({
    total_count: 1000 + index,
    items: times(30, (at) => issue(index * 30 + at, text)),
  })),
  real('API page of 20 users'),
  real('20 orders'),
  real('unicode text'),
  json('20 chat messages', chat),
  json('thread of comments', (index, text) => comment(index, text, 3)),
  real('GeoJSON of 10 shapes'),
  json('outline of 1,000 points', (index) => ({
    type: 'Polygon',
    coordinates: [times(1000, (at) => [-65.6 + at / 3001 + index / 7, 43.4 + Math.sin(at + index)])],
  })),
  json('500 objects of two fields', (index) => times(500, (at) => ({ id: index + at, ok: at % 3 === 0 }))),
  json('200 integers', (index) => times(200, (at) => (at * 7919 + index * 104_729) % 100_000)),
  json('matrix of 20 by 20', (index) => times(20, (row) => times(20, (at) => row * at + index / 7))),
  json('50 rows of a table', (index, text) =>
    times(50, (at) => [index * 50 + at, text(10), at / 7, at % 3 === 0, at % 5 === 0 ? null : text(6)]),
  ),
  json('50 measurements', (index, text) =>
    times(50, (at) => ({
      name: `http.requests.${pick(['count', 'errors', 'bytes'], at)}`,
      at: 1_700_000_000 + index * 60 + at,
      value: at * 1.37 + index,
      tags: { host: text(8), region: pick(['eu-1', 'us-2'], at), status: 200 + (at % 5) },
    })),
  ),
  json('object of 8 keys of its own', (index, text) =>
    Object.fromEntries(times(8, (at) => [text(8), index + at])),
  ),
  json('dictionary of 200 ids', (index, text) =>
    Object.fromEntries(times(200, (at) => [text(12), { name: text(10), score: index + at }])),
  ),
  json('dictionary of 200 numbers', (index, text) =>
    Object.fromEntries(times(200, (at) => [text(12), index + at])),
  ),
  json('lock file of 40 packages', lockFile),
  json('configuration', configuration),
  json('record of 30 fields, many null', (index, text) =>
    Object.fromEntries(
      times(30, (at) => [
        `field_${at}`,
        at === 0 ? index : (at * 7 + index) % 3 === 0 ? pick([text(9), at, true], at) : null,
      ]),
    ),
  ),
  json('20 switches', (index) =>
    Object.fromEntries(times(20, (at) => [`flag${at}`, ((index >> (at % 6)) & 1) === at % 2])),
  ),
  json('text of 10,000 characters', (_, text) => ({ title: text(20), body: text(10_000) })),
  beyondJson('date, set and map', (index, text) => ({
    at: new Date(1_700_000_000_000 + index),
    seen: new Set(times(8, (at) => index + at)),
    names: new Map(times(8, (at) => [text(6), at])),
  })),
  beyondJson('20 rows with dates', (index, text) =>
    times(20, (at) => ({
      id: index * 20 + at,
      name: text(10),
      createdAt: new Date(1_700_000_000_000 + index * 20 + at),
      updatedAt: new Date(1_710_000_000_000 + index * 20 + at),
    })),
  ),
  beyondJson('map of 100 names', (index, text) => new Map(times(100, (at) => [text(8), index + at]))),
  beyondJson('set of 100 names', (_, text) => new Set(times(100, () => text(8)))),
  beyondJson(BYTES_LABEL, (index) => new Uint8Array(BYTES).fill(index)),
  ...PUBLIC_PAYLOADS,
]

function logRecord(index: number, text: Texts): unknown {
  return {
    time: 1_700_000_000_000 + index * 17,
    level: pick(['debug', 'info', 'warn', 'error'], index),
    msg: text(30),
    ...(index % 2 === 0 ? { reqId: text(12) } : {}),
    ...(index % 3 === 0 ? { durationMs: index * 0.73 } : {}),
    ...(index % 5 === 0 ? { user: { id: index, role: 'admin' } } : {}),
    ...(index % 7 === 0 ? { err: `TypeError: ${text(30)}` } : {}),
  }
}

function account(index: number, text: Texts): unknown {
  const login = text(8)
  return {
    login,
    id: 100_000 + index,
    avatar_url: `https://avatars.example.com/u/${100_000 + index}?v=4`,
    url: `https://api.example.com/users/${login}`,
    type: 'User',
    site_admin: false,
  }
}

function issue(index: number, text: Texts): unknown {
  const number = 4000 + index
  return {
    url: `https://api.example.com/repos/a/b/issues/${number}`,
    id: 1_900_000_000 + index,
    number,
    title: `${text(8)} ${text(12)} ${text(5)}`,
    user: account(index, text),
    labels: times(index % 4, (at) => ({
      id: 300 + at,
      name: text(6),
      color: 'd73a4a',
      default: at === 0,
      description: null,
    })),
    state: pick(['open', 'closed'], index),
    locked: false,
    assignee: index % 3 === 0 ? account(index + 7, text) : null,
    milestone: null,
    comments: index % 12,
    created_at: new Date(1_700_000_000_000 + index * 60_000).toISOString(),
    closed_at: index % 2 === 1 ? new Date(1_705_000_000_000 + index * 60_000).toISOString() : null,
    body: `${text(40)}\n\n${text(60)} ${text(100)}\n`,
    reactions: { total_count: index % 5, '+1': index % 3, '-1': 0, laugh: 0 },
  }
}

function chat(index: number, text: Texts): unknown {
  const starts = ['Привет! ', '👍 ', 'Größe ', '你好 ', '', '', '', '']
  return times(20, (at) => ({
    id: `m${index}-${at}`,
    from: text(7),
    text: `${pick(starts, at + index)}${text(10 + ((at * 13) % 60))}`,
    at: 1_700_000_000_000 + index * 1000 + at,
    isEdited: at % 9 === 0,
  }))
}

function comment(index: number, text: Texts, depth: number): unknown {
  return {
    id: index,
    author: text(8),
    text: text(50),
    score: (index * 37) % 400,
    replies: depth === 0 ? [] : times(1 + (index % 3), (at) => comment(index * 4 + at, text, depth - 1)),
  }
}

function lockFile(index: number, text: Texts): unknown {
  const packages = times(40, (at) => [
    `node_modules/${text(5 + (at % 9))}`,
    {
      version: `${index % 20}.${at}.0`,
      resolved: `https://registry.example.com/${text(10)}.tgz`,
      integrity: `sha512-${text(86)}==`,
      ...(at % 3 === 0 ? { dev: true } : {}),
      license: 'MIT',
      ...(at % 2 === 0
        ? { dependencies: Object.fromEntries(times(1 + (at % 4), () => [text(8), '^1.0.0'])) }
        : {}),
      ...(at % 4 === 0 ? { engines: { node: '>=18' } } : {}),
    },
  ])
  return { name: text(9), version: '1.0.0', lockfileVersion: 3, packages: Object.fromEntries(packages) }
}

function configuration(index: number, text: Texts): unknown {
  return {
    server: { host: '0.0.0.0', port: 8000 + index, tls: { cert: `/etc/${text(6)}`, key: null } },
    database: { url: `postgres://${text(6)}:5432/app`, pool: { min: 2, max: 10 + index }, ssl: true },
    log: { level: 'info', targets: ['stdout', { file: `/var/log/${text(5)}`, rotate: '1d' }] },
    features: Object.fromEntries(times(12, (at) => [`feature-${at}`, (at + index) % 3 === 0])),
    limits: { bodyBytes: 1_048_576, timeoutMs: 30_000, rate: { perMinute: 600, burst: 50.5 } },
    env: Object.fromEntries(times(10, () => [text(9).toUpperCase(), text(16)])),
  }
}

/** The first `count` of the 64 objects of a payload. */
export function mixedObjects(payload: MixedPayload, count = OBJECTS): unknown[] {
  const text = textsFrom(payload.label.length * 7919 + 1)
  return times(count, (index) => {
    const object = payload.make(index, text)
    return payload.isJson && index % 2 === 1 ? (JSON.parse(JSON.stringify(object)) as unknown) : object
  })
}
