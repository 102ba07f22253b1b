/**
 * One library in a zone, of threads or of processes: two workers, close and create again, and a call that is
 * cancelled while the library works. Prints what happened as JSON; a crash is the caller's to see.
 *
 * Usage: tried.mjs <folder of the project> <library> <isolation>
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { zone } from 'corespun'
import { CALLS, measured } from './calls.mjs'

process.env['ORT_DISABLE_TELEMETRY'] = '1'
const [folder, library, isolation] = process.argv.slice(2)
const { file, name, short, long } = CALLS[library]

async function call(zone, args, options) {
  const { value } = await zone.execute(pathToFileURL(join(folder, file)), name, args, options)
  return measured(value)
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
