/**
 * One set-up at a time per checkout: `npm start` and `npm test` may be typed in two terminals at once.
 *
 * cargo locks its own folder; `npm ci`, which removes node_modules first, and tsc, which writes files in
 * path, do not. The lock is a listening socket: only one process can listen at an address, the system closes
 * it when that process ends however it ends, and who waits is connected and sees the end as an event. So
 * nothing is left behind to be judged stale. No library can do this: none is installed yet.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Run `work` while no other process runs work of that name.
 * @param {string} name A path, such as the folder that is written.
 * @param {(line: string) => void} [report] Receives a line when another process has to be waited for.
 */
export async function locked(name, work, report = console.error) {
  const address = addressOf(name)
  const waiting = new Set()
  const server = createServer((socket) => waiting.add(socket.on('error', () => {})))
  for (let hasReported = false; !(await listens(server, address)); hasReported = true) {
    if (!hasReported) report(`set-up: waiting for another process, which is setting up ${name}`)
    await endOfHolder(address)
  }
  try {
    return await work()
  } finally {
    server.close()
    for (const socket of waiting) socket.destroy()
  }
}

/** Linux and Windows have names without files; elsewhere it is a file, which a killed process leaves. */
function addressOf(name) {
  const id = `corespun-set-up-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
  if (process.platform === 'linux') return `\0${id}`
  return process.platform === 'win32' ? `\\\\?\\pipe\\${id}` : join(tmpdir(), id)
}

async function listens(server, address) {
  try {
    await once(server.listen(address), 'listening')
    return true
  } catch (error) {
    if (error.code === 'EADDRINUSE') return false
    throw error
  }
}

async function endOfHolder(address) {
  const socket = connect(address)
  try {
    await once(socket.resume(), 'close')
  } catch (error) {
    // A file that nobody listens at; with a name, the holder has ended in between.
    if (error.code === 'ECONNREFUSED' && !address.startsWith('\0')) rmSync(address, { force: true })
    else if (!['ECONNREFUSED', 'ECONNRESET', 'ENOENT'].includes(error.code)) throw error
  }
}
