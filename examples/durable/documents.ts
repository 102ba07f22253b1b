/**
 * Documents that are read, recognized and indexed, as durable runs: the heavy step runs on all cores.
 *
 * `node examples/durable/documents.ts` prints what was found. Recognition only computes for some milliseconds
 * here: call your OCR instead. It captures nothing, so what it needs it imports itself.
 */
import assert from 'node:assert/strict'
import { durable, runs, step } from 'corespun/durable'
import { Schedule, forEach } from 'corespun/fiber'
import { connect } from 'corespun/fleet'
import { zone } from 'corespun/zone'

interface Page {
  readonly number: number
  readonly scan: Uint8Array
}

const ocr = zone.create('ocr', { workers: 2 })
const scans = new Map([
  ['letter.pdf', ['Dear Ann', 'yours, Bob']],
  ['invoice.pdf', ['Invoice 17', '250 pears', 'total 999']],
])
const index = new Map<string, string>()

async function pagesOf(name: string): Promise<Page[]> {
  const texts = scans.get(name)
  if (texts === undefined) throw new Error(`${name} does not exist`)
  return texts.map((text, number) => ({ number, scan: new TextEncoder().encode(text) }))
}

/** Runs in the zone. */
async function recognize({ number, scan }: Page): Promise<string> {
  const { pbkdf2Sync } = await import('node:crypto')
  pbkdf2Sync(scan, 'as long as recognition takes', 20_000, 32, 'sha256')
  return `${number + 1}: ${new TextDecoder().decode(scan)}`
}

const document = durable('document', function* (name: string) {
  const pages = yield* step('read', pagesOf, [name])
  const texts = yield* forEach(
    pages,
    (page) =>
      step('recognize', recognize, [page], { zone: ocr, timeoutMs: 60_000, retry: Schedule.recurs(2) }),
    { concurrency: 4 },
  )
  yield* step('index', async () => void index.set(name, texts.join('\n')))
  return texts.length
})

const fleet = await connect('memory:documents') // or sqlite:work.db
const work = await runs(fleet, { definitions: [document] })
const started = await Promise.all(
  [...scans.keys()].map((name) => work.start('document', name, { key: name })),
)
const counts = await Promise.all(started.map((run) => run.result()))
assert.deepEqual(counts, [2, 3])
for (const [name, text] of index) console.log(`${name}\n${text}`)
assert.equal(index.get('invoice.pdf'), '1: Invoice 17\n2: 250 pears\n3: total 999')

await work.close()
await fleet.close()
await ocr.close()
