/**
 * The other Nodes that the suite runs on, from npm packages.
 *
 * They are installed below .set-up/ from a lock file of their own (scripts/nodes), because the packages exist
 * for Linux x64 alone and would fail `npm ci` everywhere else. Elsewhere the suite runs on the Node that
 * started it.
 */
import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { hashOf, inRoot, isCurrent, locked, MEMORY, must, npm, remember } from '../set-up/index.mjs'

const MAJORS = [22, 24, 26]
const FOLDER = join(MEMORY, 'nodes')

/**
 * Install the other Nodes where that is possible.
 * @returns {Promise<{major: number, path: string}[]>} All but the major version that runs this; [] where none
 *   exist.
 */
export async function otherNodes() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return []
  await locked(join(MEMORY, 'nodes.lock'), install)
  const own = Number(process.versions.node.split('.')[0])
  return MAJORS.filter((major) => major !== own).map((major) => ({ major, path: pathOf(major) }))
}

async function install() {
  const manifests = ['package.json', 'package-lock.json'].map((name) => inRoot('scripts', 'nodes', name))
  const inputs = hashOf(manifests)
  const outputs = () => String(MAJORS.every((major) => existsSync(pathOf(major))))
  if (isCurrent('nodes', inputs, outputs) && outputs() === 'true') return
  mkdirSync(FOLDER, { recursive: true })
  for (const name of ['package.json', 'package-lock.json']) {
    copyFileSync(inRoot('scripts', 'nodes', name), join(FOLDER, name))
  }
  const { program, args } = npm()
  await must('Installing Node 22, 24 and 26', program, [...args, 'ci'], { cwd: FOLDER })
  remember('nodes', inputs, outputs())
}

function pathOf(major) {
  return join(FOLDER, 'node_modules', `node-${major}`, 'bin', 'node')
}
