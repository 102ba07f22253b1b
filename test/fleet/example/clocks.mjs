/**
 * A caller that checks what depends on time: `clocks.mjs FOLDER NAME`, with the hosts of the example.
 *
 * Spans are compared with `performance.now()`, and times with that of a file that was just written, which is
 * the kernel's: the wall clock of this process may be wrong (clock.mjs). Limits are far above what a busy
 * machine takes and below a minute, which is what the clocks are wrong by.
 */
import assert from 'node:assert/strict'
import { mkdirSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { connect } from 'corespun/fleet'
import 'corespun/typescript'

const { centsOf } = await import('../../../examples/fleet/work.ts')
const WRONG_MS = 45_000
const SPAN_MS = 1500
const [folder, name] = process.argv.slice(2)
const { CORESPUN_NATS: servers } = process.env

const far = await connect(servers, { replicas: 3 })
const zone = far.zone('invoices')
const jobs = far.jobs('invoices')

await Promise.all([deadlines(), delays(), schedules(), locks(), ages()])
await far.close()

/** What work takes is at least `leastMs`, and not wrong by the difference of the clocks. */
async function takes(leastMs, work) {
  const begunMs = performance.now()
  const value = await work()
  const spentMs = performance.now() - begunMs
  assert.ok(spentMs >= leastMs - 1 && spentMs < leastMs + WRONG_MS, `${spentMs} ms instead of ${leastMs}`)
  return value
}

async function deadlines() {
  for (let id = 0; id < 12; id += 1)
    assert.equal(await zone.run('centsOf', [id], { timeoutMs: WRONG_MS }), centsOf(id))
  const late = (work) => takes(SPAN_MS, () => assert.rejects(work(), ({ code }) => /TIMEOUT|DEAD/.test(code)))
  await late(() => zone.run('pause', [2 * WRONG_MS], { timeoutMs: SPAN_MS }))
  await late(async () => {
    await jobs.submit(`${name}-late`, 'pause', [2 * WRONG_MS], {
      timeoutMs: SPAN_MS,
      retry: { attemptsMax: 1 },
    })
    await jobs.result(`${name}-late`)
  })
  await jobs.submit(`${name}-long`, 'pause', [2 * WRONG_MS])
  await late(() => jobs.result(`${name}-long`, { timeoutMs: SPAN_MS }))
  assert.equal(await jobs.cancel(`${name}-long`), true)
}

async function delays() {
  await takes(SPAN_MS, async () => {
    await jobs.submit(`${name}-delay`, 'centsOf', [1], { delayMs: SPAN_MS })
    assert.equal(await jobs.result(`${name}-delay`), centsOf(1))
  })
}

async function schedules() {
  const changes = await jobs.watch()
  const patterns = { every: { everyMs: 1000 }, cron: { cron: '* * * * * *' } }
  for (const [kind, schedule] of Object.entries(patterns))
    assert.equal(await jobs.submit(`${name}-${kind}`, 'centsOf', [2], { schedule }), true)
  const left = { every: 2, cron: 2 }
  for await (const { key, status } of changes) {
    const [, kind, time] = new RegExp(`^${name}-(every|cron)@(.*)$`).exec(key) ?? []
    if (kind === undefined || status !== 'done' || left[kind] === 0) continue
    const aheadMs = Date.parse(time) - rightNowMs()
    assert.ok(Math.abs(aheadMs) < WRONG_MS, `${kind} was due ${aheadMs} ms ahead`)
    left[kind] -= 1
    if (left.every + left.cron === 0) break
  }
  for (const kind of Object.keys(patterns)) assert.equal(await jobs.cancel(`${name}-${kind}`), true)
}

async function locks() {
  for (let turn = 0; turn < 2; turn += 1)
    await far.lock('clocks', { leaseMs: 10_000 }).guard(async ({ signal }) => {
      const taken = join(folder, 'taken')
      mkdirSync(taken) // fails while another holder is there
      await setTimeout(SPAN_MS)
      signal.throwIfAborted()
      rmdirSync(taken)
    })
}

async function ages() {
  const waiting = far.jobs(`nobody-${name}`)
  await waiting.submit('waits', 'nothing', [])
  await setTimeout(SPAN_MS)
  const { queues } = await far.overview({ waitMs: 1 })
  const { waitedMs } = queues.find(({ zone }) => zone === waiting.name)
  assert.ok(waitedMs >= SPAN_MS / 2 && waitedMs < WRONG_MS, `it waits for ${waitedMs} ms`)
  // Hosts of a busy machine may reply late.
  while ((await far.overview()).hosts.length < 3);
  const copy = await far.store(`prices-${name}`).copy()
  assert.ok(copy.ageMs >= 0 && copy.ageMs < WRONG_MS, `the copy is ${copy.ageMs} ms old`)
  copy.close()
}

function rightNowMs() {
  const path = join(folder, `now-${name}`)
  writeFileSync(path, '')
  return statSync(path).mtimeMs
}
