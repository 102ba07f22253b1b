/**
 * The example fleet: starts it, kills parts of it while it works, and counts what came of each job.
 *
 * A job is lost if it was accepted and has no result in the end. It has two results if the one that its
 * producer has received differs from that in the end. That it ran twice is allowed, and counted.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connect } from 'corespun/fleet'
import { serverProgram } from '../cross/servers.mjs'
import { Cluster } from './cluster.mjs'
import { hostOf, programOf, startCluster } from './processes.mjs'

const WORDS = { jobs: { type: 'string', default: '300' }, kills: { type: 'string', default: '2' } }

/** @param {string[]} words @returns {Promise<number>} 0: no job was lost, and none has two results. */
export async function showFleet(words) {
  const { values } = parseArgs({ args: words, options: WORDS })
  const [jobs, kills] = [Number(values.jobs), Number(values.kills)]
  if (!(jobs >= 1 && kills >= 0)) throw new Error('--jobs takes 1 or more, --kills 0 or more')
  const program = await serverProgram('nats-server')
  if (program === undefined) return 0
  const folder = mkdtempSync(join(tmpdir(), 'corespun-fleet-'))
  const notes = join(folder, 'runs')
  writeFileSync(notes, '')
  const started = []
  try {
    const { servers, urls } = await startCluster(program, folder)
    started.push(...servers)
    const env = { CORESPUN_NATS: urls, CORESPUN_REPLICAS: '3', CORESPUN_RUNS: notes }
    const cluster = await Cluster.open(urls, servers)
    try {
      const hosts = [0, 1, 2].map((at) => hostOf(at, env))
      const gateway = programOf('gateway', /^http:/, env)
      started.push(...hosts, gateway)
      const [url] = await Promise.all([gateway.start(), ...hosts.map((host) => host.start())])
      console.log(`three servers, three hosts and a gateway at ${url}; ${jobs} jobs, ${kills} kills`)
      const producer = programOf('producer', /^\{/, { CORESPUN_GATEWAY: url, CORESPUN_JOBS: String(jobs) })
      started.push(producer)
      const seen = await underFire(producer, { cluster, hosts, jobs, kills })
      return await judge(seen, urls, notes)
    } finally {
      await cluster.close()
    }
  } finally {
    await Promise.all(started.reverse().map((each) => each.end('SIGKILL')))
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Let the producer work, and kill in turn the server that leads and a host, at equal shares of the jobs.
 * Nothing is killed before what was killed last is back, so that a majority of the servers remains.
 */
async function underFire(producer, { cluster, hosts, jobs, kills }) {
  const [accepted, results] = [new Set(), new Map()]
  let [lastMs, gapMs] = [performance.now(), 0]
  let reached = () => {}
  producer.onLine = (line) => {
    const { accepted: key, done, run } = JSON.parse(line)
    if (key !== undefined) accepted.add(key)
    if (done === undefined) return
    results.set(done, run)
    const nowMs = performance.now()
    gapMs = Math.max(gapMs, nowMs - lastMs)
    lastMs = nowMs
    reached()
  }
  await producer.start()
  const killed = { servers: 0, hosts: 0 }
  for (let kill = 0; kill < kills; kill += 1) {
    const share = Math.floor((jobs * (kill + 1)) / (kills + 2))
    await Promise.race([
      producer.ended,
      new Promise((resolve) => until(() => results.size >= share, resolve)),
    ])
    const victim = kill % 2 === 0 ? await cluster.leader() : hosts[(kill >> 1) % hosts.length]
    killed[kill % 2 === 0 ? 'servers' : 'hosts'] += 1
    await victim.end('SIGKILL')
    console.log(`killed ${victim.name} after ${results.size} results`)
    await victim.start()
    await cluster.whole()
  }
  const [code] = await producer.ended
  if (code !== 0) throw new Error(`the producer has ended with ${code}; it checks each result`)
  return { accepted, results, gapMs, killed }

  function until(isReached, resolve) {
    reached = () => isReached() && resolve()
    reached()
  }
}

/** Ask for each result anew, by a connection of its own. */
async function judge({ accepted, results, gapMs, killed }, urls, notes) {
  const far = await connect(urls, { replicas: 3 })
  const [lost, twice] = [[], []]
  try {
    const jobs = far.jobs('invoices')
    for (const id of accepted) {
      const found = await jobs.result(`invoice-${id}`, { timeoutMs: 30_000 }).catch(() => undefined)
      if (found === undefined) lost.push(id)
      else if (found.run !== results.get(id)) twice.push(id)
    }
  } finally {
    await far.close()
  }
  const runs = new Map()
  for (const key of readFileSync(notes, 'utf8').trim().split('\n')) runs.set(key, (runs.get(key) ?? 0) + 1)
  const again = [...runs.values()].filter((count) => count > 1).length
  console.log(
    `killed ${killed.servers} servers and ${killed.hosts} hosts; ` +
      `accepted ${accepted.size}, lost ${lost.length}, two results ${twice.length}, run twice ${again}, ` +
      `longest gap ${(gapMs / 1000).toFixed(1)} s`,
  )
  for (const [what, ids] of Object.entries({ lost, 'two results': twice }))
    if (ids.length > 0) console.log(`${what}: ${ids.slice(0, 10).join(', ')}`)
  return lost.length + twice.length === 0 ? 0 : 1
}
