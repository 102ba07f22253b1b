/**
 * A call of each heavy library: the programs of the pages, with arguments of three sizes.
 *
 * The tests try them (tried.mjs), and table `heavy` of the bench measures what they do to a light route.
 */
const svg = (filters) =>
  Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="300" height="300">
    <filter id="f">${'<feTurbulence baseFrequency="0.05" numOctaves="8"/>'.repeat(filters)}</filter>
    <rect width="100%" height="100%" filter="url(#f)"/></svg>`)
const inputs = (count) => Array.from({ length: count }, () => new Float32Array(256).fill(0.1))
const items = (count) => Array.from({ length: count }, (_, n) => `${n} tea`)
const sum = (library) => ({
  file: 'statements.mjs',
  name: 'sum',
  short: [library, 100],
  usual: [library, 200_000],
  long: [library, 15_000_000],
})

/** A module of the project and its export; arguments of a call of some ms, of tens of ms, and of seconds. */
export const CALLS = {
  sharp: { file: 'images.mts', name: 'thumbnail', short: [svg(0)], usual: [svg(1)], long: [svg(60)] },
  'onnxruntime-node': {
    file: 'model.mts',
    name: 'scores',
    short: [inputs(2)],
    usual: [inputs(100)],
    long: [inputs(12_000)],
  },
  'node:sqlite': sum('node:sqlite'),
  'better-sqlite3': sum('better-sqlite3'),
  'gpt-tokenizer': {
    file: 'tokens.mts',
    name: 'tokens',
    short: ['a few words'],
    usual: ['Heavy work leaves light requests fast. '.repeat(12_000)],
    long: ['a'.repeat(500_000)],
  },
  'react-dom': { file: 'page.mts', name: 'page', short: [3], usual: [5000], long: [600_000] },
  pdfkit: {
    file: 'invoice.mts',
    name: 'invoice',
    short: [items(1)],
    usual: [items(1000)],
    long: [items(200_000)],
  },
}

/** A figure of a result that is always alike, and cheap to make; a stream is read to its end. */
export async function measured(value) {
  if (value[Symbol.asyncIterator] === undefined) return value.length ?? value
  const chunks = []
  for await (const chunk of value) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString('latin1')
  return text.match(/<li>|%%EOF/g).length
}
