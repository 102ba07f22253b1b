/**
 * One library in a zone, of threads or of processes: two workers, close and create again, and a call that is
 * cancelled while the library works. Prints what happened as JSON; a crash is the caller's to see.
 *
 * Usage: tried.mjs <folder of the project> <library> <isolation>
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { zone } from 'corespun'

process.env['ORT_DISABLE_TELEMETRY'] = '1'
const [folder, library, isolation] = process.argv.slice(2)
const svg = (filters) =>
  Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="300" height="300">
    <filter id="f">${'<feTurbulence baseFrequency="0.05" numOctaves="8"/>'.repeat(filters)}</filter>
    <rect width="100%" height="100%" filter="url(#f)"/></svg>`)
const inputs = (count) => Array.from({ length: count }, () => new Float32Array(256).fill(0.1))
/** A module and an export, short arguments, and those of a call that takes seconds. */
const CALLS = {
  sharp: ['images.mts', 'thumbnail', [svg(0)], [svg(60)]],
  'onnxruntime-node': ['model.mts', 'scores', [inputs(2)], [inputs(12_000)]],
  'gpt-tokenizer': ['tokens.mts', 'tokens', ['a few words'], ['a'.repeat(500_000)]],
  'node:sqlite': ['statements.mjs', 'sum', ['node:sqlite', 100], ['node:sqlite', 15_000_000]],
  'better-sqlite3': ['statements.mjs', 'sum', ['better-sqlite3', 100], ['better-sqlite3', 15_000_000]],
  'react-dom': ['page.mts', 'page', [3], [600_000]],
  pdfkit: ['invoice.mts', 'invoice', [['1 tea']], [Array.from({ length: 200_000 }, (_, n) => `${n} tea`)]],
}
const [file, name, short, long] = CALLS[library]

/** Call, and read a result that is a stream to its end, of which only what is always alike counts. */
async function call(zone, args, options) {
  const { value } = await zone.execute(pathToFileURL(join(folder, file)), name, args, options)
  if (value?.[Symbol.asyncIterator] === undefined) return JSON.stringify(value).length
  const chunks = []
  for await (const chunk of value) chunks.push(chunk)
  return Buffer.concat(chunks)
    .toString('latin1')
    .match(/<li>|%%EOF/g).length
}

const created = () => zone.create('tried', { workers: 2, isolation, graceMs: 50 })
const first = created()
const lengths = await Promise.all([short, short, short, short].map((args) => call(first, args)))
await first.close()
const second = created()
const again = await Promise.all([call(second, short), call(second, short)])
const cancelled = await call(second, long, { timeoutMs: 300 }).then(String, ({ code }) => code)
const startedMs = performance.now()
const other = await call(second, short)
while (cancelled === 'TASK_TIMEOUT' && second.stats().died === 0) await new Promise(setImmediate)
const endedMs = Math.round(performance.now() - startedMs)
const after = await Promise.all([short, short, short].map((args) => call(second, args)))
const { died } = second.stats()
await second.close()
const values = new Set([...lengths, ...again, other, ...after]).size
console.log(JSON.stringify({ values, cancelled, died, endedMs }))
