/**
 * A process that writes into a store with a file is killed again and again: no acknowledged write is lost.
 *
 * CORESPUN_KILLS sets how often; `npm run check:long` does it two hundred times.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { store } from '../../dist/store/index.js'

const KILLS = Number(process.env.CORESPUN_KILLS ?? 5)
const PROGRAM = fileURLToPath(new URL('file-writer.mjs', import.meta.url))
const WRITERS = 8

const folder = mkdtempSync(join(tmpdir(), 'corespun-kills-'))
after(() => rmSync(folder, { recursive: true }))

/** Start the writer, kill it after these `acknowledgements`, and return the last one of each writer. */
async function killedAfter(file, acknowledgements) {
  const child = spawn(process.execPath, [PROGRAM, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  let [text, lines] = ['', 0]
  child.stdout.on('data', (chunk) => {
    text += chunk
    lines += String(chunk).split('\n').length - 1
    if (lines >= acknowledgements) child.kill('SIGKILL')
  })
  const [code, signal] = await once(child, 'close')
  assert.deepEqual([code, signal], [null, 'SIGKILL'], text)
  const acknowledged = new Map()
  // The last piece may be a line that was cut.
  for (const line of text.split('\n').slice(0, -1)) {
    const at = line.lastIndexOf(' ')
    acknowledged.set(line.slice(0, at), Number(line.slice(at + 1)))
  }
  return acknowledged
}

test(`${KILLS} processes are killed while they write: no acknowledged write is lost`, async (context) => {
  const file = join(folder, 'killed.db')
  const least = new Map()
  let count = 0
  for (let kill = 0; kill < KILLS; kill++) {
    const acknowledged = await killedAfter(file, 1 + ((kill * 37) % 120))
    for (const [name, n] of acknowledged) least.set(name, n)
    count += acknowledged.size
    const used = store.create('killed', { file })
    for (let index = 0; index < WRITERS; index++) {
      const name = `writer ${index}`
      const [n, later] = [used.get(name)?.n ?? 0, used.get(`${name} after`)?.n ?? 0]
      assert.ok(
        n >= (least.get(name) ?? 0),
        `kill ${kill}: ${name} has ${n}, acknowledged ${least.get(name)}`,
      )
      assert.ok(later === n || later === n - 1, `kill ${kill}: ${name} has ${n}, then ${later}`)
      least.set(name, n)
    }
    used.close()
  }
  assert.ok(count > 0)
  context.diagnostic([...least.values()].join(' '))
})
