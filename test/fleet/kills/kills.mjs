/**
 * Jobs under SIGKILL of the processes that have them: none is lost, and a key has one result.
 *
 * The tests of each engine start it. CORESPUN_KILLS and CORESPUN_JOBS are how many; kills are spread over the
 * jobs, so each of them finds some on their way. `npm run check:long -- kills` kills 200 times.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect } from 'corespun/fleet'

const PROCESS = fileURLToPath(new URL('process.mjs', import.meta.url))
const { CORESPUN_KILLS, CORESPUN_JOBS } = process.env
/** For tests that are longer than the suite's when they are asked to. */
export const timeout = 3_600_000
const READ_AT_ONCE = 256

/** A process; resolves when it has printed a line. @param {(line: string) => void} [onLine] */
export async function start(t, words, onLine = () => {}) {
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close').then(([code, signal]) => code ?? signal)
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const lines = createInterface({ input: child.stdout }).on('line', onLine)
  await Promise.race([once(lines, 'line'), ended.then((code) => assert.fail(`it ended with ${code}`))])
  return { child, ended }
}

/**
 * Run jobs, and kill one process after the other meanwhile, and the server where there is one.
 * @param {object} setting
 * @param {string} setting.address Of `connect`.
 * @param {string} setting.log A file of its own.
 * @param {boolean} [setting.isOne] One process hosts and calls. Default: hosts and callers are others.
 * @param {() => Promise<void>} [setting.restart] Kills the server and starts it again.
 * @param {{ kills: number, jobs: number }} small How many of each without the variables.
 */
export async function underKills(t, { address, log, isOne = false, restart }, small) {
  const [kills, jobs] = [Number(CORESPUN_KILLS ?? small.kills), Number(CORESPUN_JOBS ?? small.jobs)]
  writeFileSync(log, '')
  let [results, look] = [0, () => {}]
  const onLine = (line) => {
    if (line !== '=') return
    results++
    look()
  }
  const reached = (count) =>
    new Promise((resolve) => {
      look = () => results >= count && resolve()
      look()
    })
  const begin = (role) => start(t, [PROCESS, address, log, ...role], onLine)
  const roles = rolesOf(jobs, isOne, CORESPUN_KILLS === undefined ? 1 : 2)
  // Those that were killed start while others work, and are killed again when they have started.
  const running = roles.map(begin)
  const ofCallers = () => running.filter((_, at) => roles[at][0].includes('caller'))
  const callers = () => Promise.all(ofCallers().map(async (one) => (await one).ended))
  const struck = { processes: 0, servers: 0 }
  for (let kill = 0; kill < kills; kill++) {
    await Promise.race([reached((jobs * (kill + Math.random())) / (kills + 1)), callers()])
    const at = kill % (roles.length + (restart === undefined ? 0 : 1))
    if (at === roles.length) await restart()
    else {
      const { child, ended } = await running[at]
      child.kill('SIGKILL')
      await ended
      running[at] = begin(roles[at])
    }
    struck[at === roles.length ? 'servers' : 'processes']++
  }
  for (const code of await callers()) assert.equal(code, 0)
  const hosts = isOne ? [await begin(['host'])] : await Promise.all(running)
  const found = await judge(address, log, jobs)
  t.diagnostic(`killed ${struck.processes} processes and ${struck.servers} servers; ${found}`)
  for (const { child } of hosts) child.kill('SIGKILL')
}

/** The words of each process: as many hosts, and callers that share the keys. */
function rolesOf(jobs, isOne, count) {
  if (isOne) return [['host,caller', '0', String(jobs)]]
  const share = (at) => String(Math.round((jobs * at) / count))
  const each = Array.from({ length: count }, (_, at) => at)
  return [...each.map(() => ['host']), ...each.map((at) => ['caller', share(at), share(at + 1)])]
}

/** Every key that was confirmed has the result that its caller has received, and no item is left. */
async function judge(address, log, jobsCount) {
  const [confirmed, results] = [new Set(), new Map()]
  for (const line of readFileSync(log, 'utf8').split('\n').slice(0, -1)) {
    const [kind, key] = line.split(' ')
    if (kind === '+') confirmed.add(key)
    else if (!results.has(key)) results.set(key, line.slice(2))
    else assert.equal(line.slice(2), results.get(key))
  }
  assert.deepEqual([confirmed.size, results.size], [jobsCount, jobsCount])
  const fleet = await connect(address)
  try {
    const jobs = fleet.jobs('w')
    const keys = [...confirmed]
    while (keys.length > 0)
      await Promise.all(
        keys
          .splice(0, READ_AT_ONCE)
          .map(async (key) => assert.equal(await jobs.result(key), results.get(key))),
      )
    // The item of a process that was killed behind the end of its job is lent again, and dropped.
    while ((await jobs.count()) > 0) await setTimeout(20)
    assert.equal((await jobs.counts()).dead, 0)
  } finally {
    await fleet.close()
  }
  return `${jobsCount} jobs, none lost, one result for each key`
}
