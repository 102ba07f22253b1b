/**
 * Where tests of a file run: in this Node, or, if it has no SQLite, in a newer one as a process of its own.
 *
 * That is CORESPUN_SQLITE_NODE, or the Node 24 that `npm test -- nodes` runs the suite on.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const HAS_SQLITE = isBuiltin('node:sqlite')
const NODES = fileURLToPath(new URL('../../../../.set-up/nodes/node_modules', import.meta.url))
const NEWER = join(NODES, 'node-24', 'bin', 'node')
const OTHER = process.env['CORESPUN_SQLITE_NODE'] ?? (existsSync(NEWER) ? NEWER : undefined)
/** The Node that runs programs with a file; `undefined`: no such Node. */
export const NODE = HAS_SQLITE ? process.execPath : OTHER

/** Whether the tests of a file are to be declared here; else all of the file is one test. */
export function runsHere(url: string): boolean {
  if (HAS_SQLITE) return true
  // Without V8's counters: another Node counts the fields of a class as a function of another range, so
  // that those of the two do not add up, and fields that this Node reaches would be reported as unreached.
  const isCounted = process.env['NODE_V8_COVERAGE'] !== undefined
  const skip =
    OTHER === undefined
      ? 'without SQLite; npm test -- nodes installs a Node that has it'
      : isCounted && 'counters have no use in a Node with SQLite; npm test -- nodes runs it there'
  test('in a Node with SQLite', { skip }, async () => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const args = ['--test-reporter=spec', fileURLToPath(url)]
    const child = spawn(OTHER!, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const output: string[] = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => output.push(String(text)))
    const [code] = (await once(child, 'close')) as [number]
    assert.equal(code, 0, output.join(''))
  })
  return false
}

/** A folder that goes with the tests of a file. */
export function folderOf(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`))
  after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
