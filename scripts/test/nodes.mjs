/**
 * The other Nodes that the suite runs on, from npm packages.
 *
 * They are installed below .set-up/ from a lock file of their own (scripts/nodes), because the packages exist
 * for Linux x64 alone and would fail `npm ci` everywhere else. Elsewhere the suite runs on the Node that
 * started it.
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { inRoot, install, locked, MEMORY } from '../set-up/index.mjs'

const MAJORS = [22, 24, 26]
const FOLDER = join(MEMORY, 'nodes')

/**
 * Install the other Nodes where that is possible.
 * @returns {Promise<{major: number, path: string}[]>} All but the major version that runs this; [] where none
 *   exist.
 */
export async function otherNodes() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return []
  await locked(FOLDER, async () => {
    cpSync(inRoot('scripts', 'nodes'), FOLDER, { recursive: true })
    await install('Node 22, 24 and 26', FOLDER)
  })
  const own = Number(process.versions.node.split('.')[0])
  const others = MAJORS.filter((major) => major !== own)
  return others.map((major) => ({
    major,
    path: join(FOLDER, 'node_modules', `node-${major}`, 'bin', 'node'),
  }))
}
