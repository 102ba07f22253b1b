/**
 * One attack against a server of its own, for the bench: `main.mjs <kind> <number> <seconds> <core>`.
 *
 * The server runs on that core; this process is as nice as can be. It prints the server's port; then each
 * line of its input makes it attack, again and again for so many seconds and then as long once more, and
 * print what memory the server took meanwhile. The end of its input ends both.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import os from 'node:os'
import { createInterface } from 'node:readline'
import { makeCertificate } from '../../../dist/http/tls/make.js'
import { pause, Victim } from './victim.mjs'

const PAGE_BYTES = 4096
const [kind, number, seconds, core] = process.argv.slice(2)
const { attacks } = await import(`./${kind}.mjs`)
const { limits, run } = attacks[number]
const tls = kind === 'tls' ? makeCertificate({ name: 'localhost', hosts: ['localhost'] }) : undefined

const victim = await Victim.start({ limits, tls, collects: false })
execFileSync('taskset', ['-acp', core, String(victim.pid)])
os.setPriority(19)
console.log(JSON.stringify({ port: victim.port }))
for await (const line of createInterface({ input: process.stdin })) {
  assert.equal(line, 'attack')
  const before = residentBytes()
  const first = await greatestDuring(attack())
  const second = await greatestDuring(attack())
  console.log(JSON.stringify({ moreBytes: Math.max(first, second) - before, growthBytes: second - first }))
}
assert.equal(await victim.stop(), 0)

async function attack() {
  const until = performance.now() + seconds * 1000
  do {
    const sockets = (await run(victim)) ?? []
    for (const socket of sockets) socket.destroy()
  } while (performance.now() < until)
}

/** The greatest resident memory of the server until `over` settles. */
async function greatestDuring(over) {
  let [most, isOver] = [0, false]
  const end = over.finally(() => (isOver = true))
  end.catch(() => {}) // thrown below
  while (!isOver) {
    most = Math.max(most, residentBytes())
    await pause(20)
  }
  await end
  return most
}

function residentBytes() {
  return Number(readFileSync(`/proc/${victim.pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES
}
