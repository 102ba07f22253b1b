/**
 * The example fleet: starts it, does something bad to it while it works, and counts what came of each job.
 *
 * A job is lost if it was accepted and has no result in the end. It has two results if the one that its
 * producer has received differs from that in the end. That it ran twice is allowed, and counted.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { connect } from 'corespun/fleet'
import { serverProgram } from '../servers.mjs'
import { folderApart, runApart, whyNotApart } from './apart.mjs'
import { Cluster } from './cluster.mjs'
import { disk } from './faults/disk.mjs'
import { kill } from './faults/kill.mjs'
import { partition } from './faults/partition.mjs'
import { skew } from './faults/skew.mjs'
import { hostOf, programOf, startCluster, withCleanUp } from './processes.mjs'
import { Runs } from './runs.mjs'

const WORDS = {
  jobs: { type: 'string' },
  kills: { type: 'string' },
  every: { type: 'string' },
  fault: { type: 'string', default: 'kill' },
}
const FAULTS = { kill, partition, disk, skew }

/**
 * @param {string[]} words
 * @param {typeof serverProgram} [programOfServer]
 * @returns {Promise<number>} 0: it ran, no job was lost, and none has two results.
 */
export async function showFleet(words, programOfServer = serverProgram) {
  const { values } = parseArgs({ args: words, options: WORDS })
  const { fault: name } = values
  const fault = Object.hasOwn(FAULTS, name) ? FAULTS[name] : undefined
  if (fault === undefined) throw new Error(`--fault takes ${Object.keys(FAULTS).join(', ')}`)
  const everyMs = values.every === undefined ? undefined : timeOf(values.every)
  const timesMax = everyMs === undefined ? fault.times : Infinity
  const [jobs, times] = [Number(values.jobs ?? fault.jobs), Number(values.kills ?? timesMax)]
  if (!(jobs >= 1 && times >= 0)) throw new Error('--jobs takes 1 or more, --kills 0 or more')
  const program = await programOfServer('nats-server', console.error)
  if (program === undefined) return 1
  const apart = await folderApart()
  if (fault.isApart && apart === undefined) {
    const why = await whyNotApart()
    if (why === undefined) return runApart(import.meta.url, 'showFleet', words)
    console.error(why)
    return 1
  }
  const folder = mkdtempSync(join(apart ?? tmpdir(), 'corespun-fleet-'))
  const started = []
  const clean = () => {
    for (const each of started) each.kill('SIGKILL')
    if (apart === undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  const work = async () => {
    try {
      return await underFault(fault, { name, program, folder, started, jobs, times, everyMs })
    } finally {
      await Promise.all(started.map((each) => each.end('SIGKILL')))
    }
  }
  return withCleanUp(work, clean)
}

/** The ms of a time such as 5s. @param {string} text */
function timeOf(text) {
  const [, number, unit] = /^([1-9]\d{0,5})(ms|s)$/.exec(text) ?? []
  if (number === undefined) throw new Error(`--every takes a time such as 5s or 500ms, received ${text}`)
  return Number(number) * (unit === 's' ? 1000 : 1)
}

/** Start all of it, and end when its jobs have been judged. */
async function underFault(fault, { name, program, folder, started, jobs, times, everyMs }) {
  const notes = join(folder, 'runs')
  writeFileSync(notes, '')
  const runs = new Runs(notes)
  const network = await fault.network?.(folder)
  const { servers, urls } = await startCluster(program, folder, { network, store: fault.store })
  started.push(...servers)
  const env = { CORESPUN_NATS: urls, CORESPUN_REPLICAS: '3', CORESPUN_RUNS: notes }
  const cluster = await Cluster.open(urls, servers)
  try {
    const hosts = []
    for (const at of [0, 1, 2]) {
      const how = { ...fault.how, enter: await network?.host(at) }
      hosts.push(hostOf(at, { ...env, ...fault.env?.(at) }, how))
    }
    const gateway = programOf('gateway', /^http:/, { ...env, ...fault.env?.(hosts.length) })
    started.push(...hosts, gateway)
    const [url] = await Promise.all([gateway.start(), ...hosts.map((host) => host.start())])
    const often = [
      times === Infinity ? [] : `${times} times`,
      everyMs === undefined ? [] : `every ${everyMs} ms`,
    ]
    console.log(
      `three servers, three hosts and a gateway at ${url}; ${jobs} jobs, ${often.flat().join(', ')} ${name}`,
    )
    const producer = programOf('producer', /^\{/, { CORESPUN_GATEWAY: url, CORESPUN_JOBS: String(jobs) })
    started.push(producer)
    const fleet = { cluster, servers, hosts, network, runs, folder, urls, env, program }
    const seen = await underFire(producer, { fault, fleet, jobs, times, everyMs })
    await fault.check?.(fleet)
    return await judge(seen, { fault, urls, runs })
  } finally {
    await cluster.close()
  }
}

/**
 * Let the producer work, and let the fault happen at equal shares of the jobs, or every so many ms until the
 * producer ends. Each time all is whole again before it goes on, so that a majority of the servers remains.
 */
async function underFire(producer, { fault, fleet, jobs, times, everyMs }) {
  const [accepted, results, struck] = [new Set(), new Map(), { servers: 0, hosts: 0 }]
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
  let dueMs = performance.now()
  for (let time = 0; time < times; time += 1) {
    if (everyMs === undefined) await Promise.race([producer.ended, share((time + 1) / (times + 2))])
    else {
      dueMs = Math.max(dueMs + everyMs, performance.now())
      if (await endsBy(producer, dueMs)) break
    }
    const what = await fault.strike(time, fleet, (line) =>
      console.log(`${line} after ${results.size} results`),
    )
    struck[what] += 1
  }
  const [code] = await producer.ended
  if (code !== 0) throw new Error(`the producer has ended with ${code}; it checks each result`)
  return { accepted, results, gapMs, struck }

  /** Resolves when a share of the jobs has results. */
  function share(part) {
    return new Promise((resolve) => {
      reached = () => results.size >= Math.floor(jobs * part) && resolve()
      reached()
    })
  }
}

/** Whether a process has ended, at a time of `performance.now()` or before. */
async function endsBy({ ended }, timeMs) {
  const controller = new AbortController()
  const { signal } = controller
  const waits = setTimeout(Math.max(0, timeMs - performance.now()), false, { signal }).catch(() => false)
  try {
    return await Promise.race([ended.then(() => true), waits])
  } finally {
    controller.abort()
  }
}

/** Ask for each result anew, by a connection of its own. */
async function judge({ accepted, results, gapMs, struck }, { fault, urls, runs }) {
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
  console.log(
    `${fault.verb} ${struck.servers} servers and ${struck.hosts} hosts; ` +
      `accepted ${accepted.size}, lost ${lost.length}, two results ${twice.length}, ` +
      `run twice ${runs.twice().size}, longest gap ${(gapMs / 1000).toFixed(1)} s`,
  )
  for (const [what, ids] of Object.entries({ lost, 'two results': twice }))
    if (ids.length > 0) console.log(`${what}: ${ids.slice(0, 10).join(', ')}`)
  return lost.length + twice.length === 0 ? 0 : 1
}
