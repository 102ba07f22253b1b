/**
 * Runs the example in namespaces of its own: of networks, mounts and processes.
 *
 * Whatever is made there ends with its last process, and that with this one, however it ends: what the kernel
 * removes need not be found by the next run. On Linux, as root or where users may have such namespaces.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { must, run } from '../../../scripts/set-up/index.mjs'
import { withCleanUp } from './processes.mjs'

/** The folder of a run that is apart. */
const FOLDER = 'CORESPUN_EXAMPLE_FOLDER'

/** Ends all that it starts when the process that has started it ends, also by SIGKILL. */
function unshare() {
  const user = process.getuid() === 0 ? [] : ['--user', '--map-root-user']
  const own = ['--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child']
  return ['setpriv', '--pdeathsig', 'KILL', 'unshare', ...user, ...own]
}

/** Why there can be no such namespaces here; `undefined` where there can. */
export async function whyNotApart() {
  if (process.platform !== 'linux') return 'namespaces of networks and mounts exist on Linux'
  const [program, ...words] = unshare()
  const probe = 'mount -t tmpfs -o size=1m tmpfs /mnt && ip link add probe type bridge && nsenter --version'
  const { code, output } = await run(program, [...words, 'sh', '-c', probe])
  if (code === 0) return undefined
  return `namespaces with a network and a mount of their own cannot be made: ${output.trim().split('\n')[0]}`
}

/**
 * Call an exported function with words in a process that is apart.
 * @param {string} url Of its module. @param {string} name @param {string[]} words
 * @returns {Promise<number>} What it resolves with.
 */
export async function runApart(url, name, words) {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-apart-'))
  const code = `const { ${name} } = await import(${JSON.stringify(url)})
    process.exit(await ${name}(process.argv.slice(1)))`
  const [program, ...unshared] = unshare()
  const command = [...unshared, process.execPath, '--input-type=module', '-e', code, '--', ...words]
  const env = { ...process.env, [FOLDER]: folder }
  const work = async () => {
    const child = spawn(program, command, { env, stdio: ['ignore', 'pipe', 'inherit'] })
    const closed = once(child, 'close')
    for await (const line of createInterface({ input: child.stdout })) console.log(line)
    const [ended, signal] = await closed
    return signal === null ? ended : 1
  }
  return withCleanUp(work, () => rmSync(folder, { recursive: true, force: true }))
}

/** The folder of this run, in memory, where it is apart; else `undefined`. */
export async function folderApart() {
  const folder = process.env[FOLDER]
  if (folder === undefined) return undefined
  await must('mount', 'mount', ['-t', 'tmpfs', 'tmpfs', folder])
  await must('ip', 'ip', ['link', 'set', 'lo', 'up'])
  return folder
}
