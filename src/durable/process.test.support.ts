/**
 * A process that runs durable work in a file: what sqlite.test.ts kills.
 *
 * `node process.test.support.js <file> <log>`: it adds a line to the log for each step whose effect has
 * happened (`+ run step`), and for each behind which the run has continued (`= run step`).
 */
import { openSync, writeSync } from 'node:fs'
import { setTimeout as rest } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { all } from '../fiber/index.ts'
import { connect } from '../fleet/index.ts'
import { durable, pause, runs, step } from './index.ts'

export const PROCESS = fileURLToPath(import.meta.url)

/** How many steps a run has. */
export const STEPS = 12

export function definition(log: (line: string) => void) {
  function* logged(run: string, name: string) {
    yield* step(name, async () => {
      log(`+ ${run} ${name}`)
      await rest(Math.random() * 5)
    })
    log(`= ${run} ${name}`)
  }
  return durable('work', function* (run: string) {
    for (let n = 0; n < STEPS / 3; n++) {
      yield* logged(run, `one ${n}`)
      yield* all([logged(run, `left ${n}`), logged(run, `right ${n}`)])
      yield* pause(5)
    }
    return `${run} has ended`
  })
}

if (process.argv[1] === PROCESS) {
  const [file, path] = process.argv.slice(2)
  const fd = openSync(path, 'a')
  const fleet = await connect(`sqlite:${file}`)
  await runs(fleet, {
    definitions: [definition((line) => writeSync(fd, `${line}\n`))],
    leaseMs: 300,
    runsMax: 8,
  })
  process.stdout.write('ready\n')
}
