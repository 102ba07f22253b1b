/**
 * Full disks: of the server that leads, and of all three. Each server keeps its streams in a small file
 * system of its own, and a file fills it to the last byte.
 *
 * A server of NATS that cannot write ends JetStream until it is restarted. So space is freed first and the
 * server started again, as an operator does.
 */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { connect } from 'corespun/fleet'
import { inRoot, must } from '../../../../scripts/set-up/index.mjs'

const DISK = '64m'
const BALLAST = 'ballast'
const PAUSE_MS = 100

export const disk = {
  verb: 'filled the disks of',
  times: 2,
  jobs: 300,
  isApart: true,
  how: { module: inRoot('test', 'fleet', 'example', 'slow.mjs') },

  store: (path) => must('mount', 'mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'tmpfs', path]),

  async strike(time, { cluster, servers, hosts, urls }, report) {
    const isOne = time % 2 === 0
    const full = isOne ? [await cluster.leader()] : servers
    for (const { store } of full) fill(join(store, BALLAST))
    report(`filled the disk of ${full.map(({ name }) => name).join(', ')}`)
    // The others go on; of three without a disk none does.
    if (isOne) while (await cluster.leads(full[0].name)) await setTimeout(PAUSE_MS)
    else report(`submit: ${await refusal(urls)}`)
    const dead = [...servers, ...hosts].filter(({ isRunning }) => !isRunning)
    if (dead.length > 0) throw new Error(`${dead.map(({ name }) => name).join(', ')} ended by a full disk`)
    for (const { store } of full) rmSync(join(store, BALLAST))
    for (const server of full) {
      await server.end('SIGTERM')
      await server.start()
    }
    report('freed it')
    await cluster.whole()
    return 'servers'
  },
}

function fill(path) {
  const file = openSync(path, 'w')
  try {
    for (let size = 2 ** 20; size >= 1;)
      try {
        writeSync(file, Buffer.alloc(size))
      } catch (error) {
        if (error.code !== 'ENOSPC') throw error
        size /= 2
      }
  } finally {
    closeSync(file)
  }
}

/** How a job is refused that no server can keep. */
async function refusal(urls) {
  const far = await connect(urls, { replicas: 3 })
  try {
    for (let turn = 0; ; turn += 1) {
      await far.jobs('invoices').submit(`beyond-${turn}`, 'centsOf', [turn])
    }
  } catch ({ code, message }) {
    return `${code}: ${message}`
  } finally {
    await far.close()
  }
}
