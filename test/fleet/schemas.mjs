/**
 * The manifests of examples/fleet by the schemas of their formats: two programs of PyPI that contain those.
 *
 * What a manifest names within itself, no schema sees; manifests.mjs does.
 */
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { locked, MEMORY, must, run } from '../../scripts/set-up/index.mjs'

const PROGRAMS = ['check-jsonschema==0.39.0', 'kubernetes-validate==1.37.0']
const FOLDER = join(MEMORY, `schemas-${PROGRAMS.join('-')}`)

/** What is started. To the latter a kind or version that has no schema is a warning alone. */
const WORDS = {
  compose: ['check_jsonschema', '--no-cache', '--builtin-schema', 'vendor.compose-spec'],
  kubernetes: ['kubernetes_validate', '--quiet', '--strict'],
}

/**
 * What checks a file.
 * @returns {Promise<string | ((kind: 'compose' | 'kubernetes', path: string) => Promise<void>)>} Text: why it
 *   cannot run here. The function rejects with what is wrong.
 */
export async function schemaCheck() {
  if ((await run('python3', ['-m', 'pip', '--version'])).code !== 0)
    return 'the schemas are in packages of PyPI, and there is no python3 with pip'
  try {
    await locked(FOLDER, install)
  } catch (error) {
    return error.message.trim().split('\n').at(-1)
  }
  const env = { ...process.env, PYTHONPATH: FOLDER }
  return async (kind, path) => {
    const { code, output } = await run('python3', ['-m', ...WORDS[kind], path], { env })
    if (code !== 0 || output.includes('WARN')) throw new Error(output)
  }
}

/** Whole or not at all. */
async function install() {
  if (existsSync(FOLDER)) return
  const part = `${FOLDER}.part`
  rmSync(part, { recursive: true, force: true })
  await must('Installing the schemas', 'python3', ['-m', 'pip', 'install', '--target', part, ...PROGRAMS])
  renameSync(part, FOLDER)
}
