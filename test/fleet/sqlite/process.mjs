/**
 * A process that hosts jobs of a file, submits them, or both: what test/fleet/sqlite.test.mjs kills.
 *
 * `node process.mjs <file> <log> <roles> <first> <last>`: it submits the keys from `first` to `last`, 16 at
 * once, and adds a line to the log for what was confirmed: `+ key`, and `= key value`. It ends when all its
 * keys have a result; a host alone does not end.
 */
import { openSync, writeSync } from 'node:fs'
import { zone } from 'corespun'
import { connect, host } from 'corespun/fleet'

const [file, log, roles, first, last] = process.argv.slice(2)
const fd = openSync(log, 'a')
const AT_ONCE = 16

const fleet = await connect(`sqlite:${file}`)
if (roles.includes('host')) {
  const module = new URL('work.mjs', import.meta.url)
  const cpu = zone.create('cpu', { workers: 1, tasksPerWorkerMax: 8 })
  await host(fleet, { name: 'w', module, version: 'v', zone: cpu, jobsMax: 8, leaseMs: 500 })
}
process.stdout.write('ready\n')
if (roles.includes('caller')) {
  const jobs = fleet.jobs('w')
  let next = Number(first)
  const lane = async () => {
    while (next < Number(last)) {
      const key = `job-${next++}`
      await jobs.submit(key, 'work', [key], { retry: { hostsLostMax: 1000 } })
      writeSync(fd, `+ ${key}\n`)
      writeSync(fd, `= ${await jobs.result(key)}\n`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
  process.exit(0)
}
