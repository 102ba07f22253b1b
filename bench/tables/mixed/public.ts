/**
 * Payloads of public data, which nobody made for a codec: files of packages that this checkout's lock pins.
 *
 * Each names the payload that it replaces. That one stays in the table for as long as it is compared with its
 * successor (gap.ts). All objects come from JSON.parse, as such data does in a program. Read when first asked
 * for, so a process whose first values are measured reads nothing else before.
 */
import { readFileSync } from 'node:fs'
import { parse, tokenizer } from 'acorn'
import { PACKAGE_FOLDER } from '../../harness/paths.ts'

/** A payload of public data. */
export interface PublicPayload {
  readonly label: string
  readonly isJson: boolean
  /** Label of the payload that was written for this bench. */
  readonly replaces: string
  readonly make: (index: number) => unknown
}

type Entries<Value> = readonly (readonly [name: string, value: Value])[]
interface MediaType {
  readonly extensions?: readonly string[]
}
interface Version {
  readonly date: string
}

const text = (path: string): string => readFileSync(`${PACKAGE_FOLDER}/${path}`, 'utf8')
const json = (path: string): unknown => JSON.parse(text(path))
const program = once(() => text('node_modules/acorn/dist/acorn.mjs'))

/** All media types by name: mime-db, MIT. */
export const mediaTypes = once(
  () => Object.entries(json('node_modules/mime-db/db.json') as object) as Entries<MediaType>,
)
/** The definitions of a JSON schema by name, without two that list all others: oxlint, MIT. */
export const definitions = once(() => {
  const { definitions } = json('node_modules/oxlint/configuration_schema.json') as { definitions: object }
  const all = Object.entries(definitions) as Entries<object>
  return all.filter(([, definition]) => JSON.stringify(definition).length < 10_000)
})
const locked = once(() => {
  const { packages } = json('package-lock.json') as { packages: object }
  return (Object.entries(packages) as Entries<{ optional?: boolean }>).slice(1)
})
/** Of @rushstack/terminal, MIT. */
const versions = once(() => {
  const { entries } = json('node_modules/@rushstack/terminal/CHANGELOG.json') as { entries: Version[] }
  return entries
})
/** GBK: iconv-lite, MIT. */
const characters = once(() => json('node_modules/iconv-lite/encodings/tables/cp936.json') as unknown[])
/** Of @babel/parser, MIT. */
const mappings = once(
  () => (json('node_modules/@babel/parser/lib/index.js.map') as { mappings: string }).mappings,
)
/** The statements of acorn, MIT, that have the length of a small function. */
const statements = once(() => {
  const { body } = parse(program(), { ecmaVersion: 'latest', sourceType: 'module' })
  const functions = body.filter(({ start, end }) => end - start > 300 && end - start < 3000)
  return JSON.parse(JSON.stringify(functions)) as unknown[]
})
const tokens = once(() => {
  const all = [...tokenizer(program(), { ecmaVersion: 'latest', sourceType: 'module' })].slice(0, 64 * 50)
  const plain = all.map(({ type, start, end, ...others }) => ({ type: type.label, start, end, ...others }))
  return JSON.parse(JSON.stringify(plain)) as unknown[]
})
const manifests = once(() => {
  const isChosen = ([path, { optional }]: readonly [string, { optional?: boolean }]): boolean =>
    optional !== true && path.lastIndexOf('node_modules/') === 0
  const paths = locked()
    .filter(isChosen)
    .map(([path]) => path)
  return paths.slice(0, 64).map((path) => json(`${path}/package.json`))
})

/** A third of the payloads of table `mixed`. */
export const PUBLIC_PAYLOADS: readonly PublicPayload[] = [
  payload('dictionary of 39 media types', 'dictionary of 200 ids', (index) =>
    Object.fromEntries(part(mediaTypes(), index, 39)),
  ),
  payload('lock file of 40 npm packages', 'lock file of 40 packages', (index) => ({
    lockfileVersion: 3,
    packages: Object.fromEntries(part([...locked(), ...locked()], index / 8, 40)),
  })),
  payload('change log of 5 versions', 'issue', (index) => part(versions(), index, 5)),
  payload('8 definitions of a JSON schema', 'record of 30 fields, many null', (index) =>
    Object.fromEntries(part(definitions(), index, 8)),
  ),
  payload('4 rows of Chinese characters', 'unicode text', (index) => part(characters(), index, 4)),
  payload('source map of 10,000 characters', 'text of 10,000 characters', (index) => ({
    version: 3,
    sources: ['../src/index.ts'],
    mappings: mappings().slice(index * 4000, index * 4000 + 10_000),
  })),
  payload('syntax tree of a function', 'thread of comments', (index) => statements()[index]),
  payload('50 tokens of a program', '50 measurements', (index) => part(tokens(), index, 50)),
  payload('manifest of a package', 'configuration', (index) => manifests()[index]),
  {
    label: '5 versions with dates',
    isJson: false,
    replaces: '20 rows with dates',
    make: (index) => part(versions(), index, 5).map((one) => ({ ...one, date: new Date(one.date) })),
  },
  {
    label: 'map of 39 media types',
    isJson: false,
    replaces: 'map of 100 names',
    make: (index) =>
      new Map(part(mediaTypes(), index, 39).map(([name, { extensions }]) => [name, extensions ?? null])),
  },
]

function payload(label: string, replaces: string, make: PublicPayload['make']): PublicPayload {
  return { label, isJson: true, replaces, make }
}

function part<Value>(values: readonly Value[], index: number, count: number): Value[] {
  return values.slice(index * count, (index + 1) * count)
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined
  return () => (made ??= { value: make() }).value
}
