/**
 * `node command.js <contender> <module> <export> <input>`: a whole command without Corespun, as people write
 * it: a line of JSON for each file of a folder, or for each line of a file in NDJSON, in order.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'

const WORKERS = 2
/** What people write. */
const CHUNK = 25

interface Work {
  readonly module: string
  readonly name: string
  readonly items: readonly string[]
  /** Items are texts in JSON. */
  readonly isJson: boolean
}

async function loop({ module, name, items, isJson }: Work): Promise<string> {
  const exports = (await import(module)) as Record<string, (item: unknown) => unknown>
  const { [name]: fn } = exports
  const lines = items.map((item) => JSON.stringify(fn(isJson ? JSON.parse(item) : item)))
  return `${lines.join('\n')}\n`
}

function chunks({ items, ...work }: Work): Promise<string> {
  const pieces: string[] = []
  let [next, done] = [0, 0]
  return new Promise((resolve, reject) => {
    for (let index = 0; index < WORKERS; index += 1) {
      const worker = new Worker(new URL('./command-thread.js', import.meta.url), { workerData: work })
      const send = (): void => {
        if (next >= items.length) return
        worker.postMessage({ first: next, items: items.slice(next, next + CHUNK) })
        next += CHUNK
      }
      worker.on('error', reject)
      worker.on('message', ({ first, lines, count }: { first: number; lines: string; count: number }) => {
        pieces[first / CHUNK] = lines
        done += count
        send()
        if (done === items.length) resolve(pieces.join(''))
      })
      // Two, so that the next one is there when one ends.
      send()
      send()
    }
  })
}

const [contender, module, name, input] = process.argv.slice(2)
const isJson = input.endsWith('.ndjson')
const items = isJson
  ? readFileSync(input, 'utf8').trimEnd().split('\n')
  : readdirSync(input)
      .sort()
      .map((file) => join(input, file))
const work = { module: pathToFileURL(module).href, name, items, isJson }
const text = await (contender === 'plain loop' ? loop(work) : chunks(work))
process.stdout.write(text, () => process.exit(0))
