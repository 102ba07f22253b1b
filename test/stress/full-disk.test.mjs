/**
 * A full disk: flush() rejects, the process goes on, and later writes succeed once there is space.
 *
 * The disk is a tmpfs in a mount namespace of the process, where the system allows that.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const folder = mkdtempSync(join(tmpdir(), 'corespun-disk-'))
after(() => rmSync(folder, { recursive: true }))

const PROGRAM = fileURLToPath(new URL('full-disk.mjs', import.meta.url))
const NAMESPACE = ['--mount', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])]
const SCRIPT = 'mount -t tmpfs -o size=4m tmpfs "$1" && shift && exec "$@"'

/** Run a command whose first argument, the folder, is a disk of 4 MB. */
function onSmallDisk(command) {
  const args = [...NAMESPACE, 'sh', '-c', SCRIPT, 'sh', folder, ...command]
  return spawnSync('unshare', args, { encoding: 'utf8', timeout: 120_000, killSignal: 'SIGKILL' })
}

const skip = onSmallDisk(['true']).status === 0 ? false : 'this system mounts no tmpfs for a test'

test(
  'a full disk is an error of flush() and of close(), and loses nothing that was acknowledged',
  { skip },
  () => {
    const { status, stdout, stderr } = onSmallDisk([process.execPath, PROGRAM, folder])
    assert.equal(status, 0, stderr)
    const { written, message, ...result } = JSON.parse(stdout)
    assert.ok(written > 10, `${written} writes`)
    assert.match(message, /no space is left for the file .*store\.db of the store 'full'/)
    assert.deepEqual(result, {
      code: 'STORE_DISK_FULL',
      inMemory: 20_000,
      again: 'STORE_DISK_FULL',
      missing: 0,
      around: [1, 2],
      closing: 'STORE_DISK_FULL',
    })
  },
)
