/**
 * `corespun run` on inputs without end and readers that are slow or leave: constant memory, back-pressure
 * both ways.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { leftOut } from '../../dist/base/part.test.support.js'
import { start, until } from './corespun.mjs'

const wide = 'modules/items.mjs#wide'
const piece = 'some item of no great length\n'.repeat(2000)

/** Feed lines for as long as the child takes them. */
function feed(child) {
  let fedBytes = 0
  const more = () => {
    while (!child.stdin.destroyed && child.stdin.write(piece)) fedBytes += piece.length
  }
  child.stdin.on('drain', more)
  more()
  return () => fedBytes
}

/** Megabytes that the child holds. */
function residentMb(child) {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) / 1024
}

/** Resolve when `child` has written `bytes` more. */
function written(child, bytes) {
  return new Promise((resolve) => {
    let left = bytes
    const take = (text) => {
      left -= text.length
      if (left > 0) return
      child.stdout.off('data', take)
      resolve()
    }
    child.stdout.on('data', take)
  })
}

/** A child whose output is only counted. */
function endless(words) {
  const started = start(words)
  started.child.stdout.removeAllListeners('data')
  return started
}

const onLinux = { skip: process.platform !== 'linux' && 'reads /proc', timeout: 120_000 }

for (const [row, order] of [[], ['--unordered']].entries()) {
  const skip = onLinux.skip || leftOut(row)
  test(`an endless input takes constant memory ${order.join('')}`, { ...onLinux, skip }, async () => {
    const { child, ended } = endless(['run', wide, '-w', '2', ...order])
    feed(child)
    await written(child, 60e6) // The code is warm and every buffer has been full.
    const warmMb = residentMb(child)
    const samplesMb = []
    for (let round = 0; round < 5; round++) {
      await written(child, 50e6)
      samplesMb.push(residentMb(child))
    }
    child.stdin.destroy()
    child.stdout.destroy()
    await ended
    const mostMb = Math.max(...samplesMb)
    assert(mostMb < warmMb + 150, `from ${warmMb} to ${samplesMb.join(', ')} MB`)
  })
}

test('a reader that stops reading stops the writer of the input', onLinux, async () => {
  const { child, ended } = endless(['run', wide, '-w', '2'])
  const fedBytes = feed(child)
  await written(child, 5e6)
  child.stdout.pause()
  // Nothing reads any more, so feeding comes to rest: what was fed does not change over half a second.
  let before = -1
  while (before !== fedBytes()) {
    before = fedBytes()
    await new Promise((done) => setTimeout(done, 500))
  }
  assert(fedBytes() < 30e6, `${fedBytes()} bytes were taken for 5 MB of results`)
  const held = residentMb(child)
  assert(held < 600, `${held} MB`)
  child.stdout.resume()
  await written(child, 20e6)
  child.stdin.end()
  child.stdout.resume()
  assert.equal((await ended).code, 0)
})

test('a reader that leaves ends the run quietly', { timeout: 60_000 }, async () => {
  for (const order of [[], ['--unordered']]) {
    const { child, ended } = endless(['run', wide, ...order])
    feed(child)
    await written(child, 1000)
    child.stdout.destroy()
    const { code, signal, err } = await ended
    assert.deepEqual({ code, signal, err }, { code: 0, signal: null, err: '' })
  }
})

test('a reader that leaves before the first result', { timeout: 60_000 }, async () => {
  const { child, ended } = endless(['run', wide])
  child.stdout.destroy()
  feed(child)
  const { code, signal, err } = await ended
  assert.deepEqual({ code, signal, err }, { code: 0, signal: null, err: '' })
})

test('each line comes out while the input is still open', { timeout: 60_000 }, async () => {
  const started = start(['run', 'modules/items.mjs', '-'])
  for (const item of ['a', 'b', 'c']) {
    const seen = new Promise((resolve) => started.child.stdout.once('data', resolve))
    started.child.stdin.write(`${item}\n`)
    assert.equal(await seen, `{"got":"${item}"}\n`)
  }
  started.child.stdin.end()
  assert.equal((await started.ended).code, 0)
})

test('results come out while the item behind them runs', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-cli-'))
  try {
    const HOLD = join(folder, 'hold')
    const started = start(['run', 'modules/items.mjs#holdOn3', '-w', '1', '-'], { env: { HOLD } })
    started.child.stdin.end('1\n2\n3\n4\n')
    await until(started.child.stdout, () => started.out === '"1"\n"2"\n')
    writeFileSync(HOLD, '')
    const { code, out } = await started.ended
    assert.deepEqual({ code, out }, { code: 0, out: '"1"\n"2"\n"3"\n"4"\n' })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a slow item among many quick ones keeps nothing but itself waiting', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-cli-'))
  try {
    const HOLD = join(folder, 'hold')
    const words = ['run', 'modules/items.mjs#holdOn1500', '-w', '2', '--unordered', '-']
    const started = start(words, { env: { HOLD } })
    started.child.stdin.end(Array.from({ length: 3000 }, (_, index) => `${index + 1}\n`).join(''))
    await until(started.child.stdout, () => started.out.split('\n').length === 3000)
    writeFileSync(HOLD, '')
    const { code, out } = await started.ended
    assert.equal(code, 0)
    const lines = out.trimEnd().split('\n')
    assert.equal(lines.at(-1), '"1500"')
    assert.equal(new Set(lines).size, 3000)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test(
  'workers that die among quick items: a record for each item, and none runs twice',
  { timeout: 60_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'corespun-cli-'))
    try {
      const RAN = join(folder, 'ran')
      const started = start(['run', 'modules/items.mjs#exitOn77', '-w', '2', '-'], { env: { RAN } })
      const items = Array.from({ length: 1000 }, (_, index) => String(index + 1))
      started.child.stdin.end(items.join('\n'))
      const { code, out } = await started.ended
      assert.equal(code, 1)
      const lines = out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
      assert.deepEqual(
        lines.map((line) => (line.error?.code === 'WORKER_DIED' ? `died ${line.item}` : line)),
        items.map((item) => (item.endsWith('77') ? `died ${item}` : item)),
      )
      const ran = readFileSync(RAN, 'utf8').trimEnd().split('\n').map(Number)
      assert.deepEqual(
        ran.sort((one, other) => one - other),
        items.map(Number),
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
)

test('results that cannot be written: one line, exit code 2', { ...onLinux }, async () => {
  const { openSync, closeSync } = await import('node:fs')
  const full = openSync('/dev/full', 'w')
  const { child, ended } = start(['run', 'modules/items.mjs', '-'], { stdio: ['pipe', full, 'pipe'] })
  child.stdin.end('a\nb\n')
  const { code, err } = await ended
  closeSync(full)
  assert.deepEqual(
    { code, err },
    {
      code: 2,
      err: 'corespun: standard output: cannot be written: no space left on the device\n',
    },
  )
})
