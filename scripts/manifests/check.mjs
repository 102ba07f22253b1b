/**
 * The program that checks manifests of compose and Kubernetes, and the schemas of Kubernetes.
 *
 * The program is compiled by Go from the modules that are pinned here; the schemas are those in a wheel of
 * PyPI, pinned too. Where either cannot be had, there is a reason instead.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { wheel } from '../cross/download.mjs'
import { inRoot, locked, MEMORY, must, run } from '../set-up/index.mjs'

const FOLDER = join(MEMORY, 'manifests')
const PROGRAM = join(FOLDER, 'manifests')
const SOURCES = ['go.mod', 'go.sum', 'main.go']
/** Schemas of one version of Kubernetes that refuse unknown fields. */
const SCHEMAS = join('kubernetes_validate', 'kubernetes-json-schema', 'v1.37.0-local-strict')
const PIN = {
  name: 'kubernetes-validate',
  version: '1.37.0',
  sha256: '85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9',
}

/**
 * Two functions that check a file: each resolves with its documents, or rejects with what is wrong.
 * @returns {Promise<string | Record<'compose' | 'kubernetes', (path: string) => Promise<any>>>} Text: why
 *   they cannot run here.
 */
export async function manifestChecks() {
  if (process.platform !== 'linux') return 'the checker of manifests is compiled on Linux'
  if ((await run('go', ['version'])).code !== 0) return 'the checker is compiled by Go, which is not here'
  if ((await run('python3', ['-m', 'pip', '--version'])).code !== 0)
    return 'the schemas of Kubernetes are downloaded with python3 and pip'
  const schemas = join(FOLDER, PIN.version)
  try {
    await locked(FOLDER, async () => {
      await compile()
      if (!existsSync(schemas)) await unpack(schemas)
    })
  } catch (error) {
    return error.message.trim().split('\n')[0]
  }
  const checked = async (...words) => {
    const { code, output } = await run(PROGRAM, words)
    if (code !== 0) throw new Error(output)
    return JSON.parse(output)
  }
  return {
    compose: (path) => checked('compose', path),
    kubernetes: (path) => checked('kubernetes', join(schemas, SCHEMAS), path),
  }
}

/** Whole or not at all. */
async function unpack(schemas) {
  const part = `${schemas}.part`
  rmSync(part, { recursive: true, force: true })
  await wheel(PIN, FOLDER, part)
  renameSync(part, schemas)
}

async function compile() {
  const source = (name) => inRoot('scripts', 'manifests', name)
  const isCurrent = (name) =>
    existsSync(join(FOLDER, name)) && readFileSync(join(FOLDER, name)).equals(readFileSync(source(name)))
  if (existsSync(PROGRAM) && SOURCES.every(isCurrent)) return
  rmSync(PROGRAM, { force: true })
  mkdirSync(FOLDER, { recursive: true })
  for (const name of SOURCES) copyFileSync(source(name), join(FOLDER, name))
  await must('Compiling the checker of manifests', 'go', ['build', '-mod=mod', '-o', PROGRAM, '.'], {
    cwd: FOLDER,
  })
}
