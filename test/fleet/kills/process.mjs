/**
 * A process that hosts jobs, submits them, or both: what kills.mjs starts and kills.
 *
 * `node process.mjs <address> <log> <roles> <first> <last>`: it submits the keys from `first` to `last`, 16
 * at once, and adds a line to the log for what was confirmed: `+ key`, and `= key value`. One that was killed
 * and is started again submits nothing that the log has as confirmed: that must be there. It prints `=` for
 * each result, and ends when all its keys have one; a host alone does not end. It waits for a server that is
 * away, as `corespun host` does.
 */
import { openSync, readFileSync, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { zone } from 'corespun'
import { connect, host } from 'corespun/fleet'

const [address, log, roles, first, last] = process.argv.slice(2)
const fd = openSync(log, 'a+')
const AT_ONCE = 16

const fleet = await connected()
if (roles.includes('host')) {
  const module = new URL('work.mjs', import.meta.url)
  const cpu = zone.create('cpu', { workers: 1, tasksPerWorkerMax: 8 })
  await host(fleet, { name: 'w', module, version: 'v', zone: cpu, jobsMax: 8, leaseMs: 500 })
}
process.stdout.write('ready\n')
if (roles.includes('caller')) {
  const jobs = fleet.jobs('w')
  const known = { '+': new Set(), '=': new Set() }
  // The last line of a process that was killed may be a part.
  for (const line of readFileSync(log, 'utf8').split('\n').slice(0, -1)) {
    const [kind, key] = line.split(' ')
    known[kind]?.add(key)
  }
  let next = Number(first)
  const lane = async () => {
    while (next < Number(last)) {
      const key = `job-${next++}`
      if (known['='].has(key)) continue
      if (!known['+'].has(key)) {
        await jobs.submit(key, 'work', [key], { retry: { hostsLostMax: 1000 } })
        writeSync(fd, `+ ${key}\n`)
      }
      writeSync(fd, `= ${await jobs.result(key)}\n`)
      process.stdout.write('=\n')
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
  process.exit(0)
}

async function connected() {
  for (;;)
    try {
      return await connect(address)
    } catch (error) {
      if (error.code !== 'FLEET_TIMEOUT' && error.facts?.isAway !== true) throw error
      await setTimeout(50)
    }
}
