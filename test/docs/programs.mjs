/**
 * TypeScript programs out of the documentation: compiled together by the strict settings of the checkout,
 * then run one by one, each in a process of its own.
 *
 * They lie inside the checkout, where `corespun` is the package's own name.
 */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { MEMORY, ROOT, tsc } from '../../scripts/set-up/index.mjs'
import { NODE } from '../../dist/fleet/engine/sqlite/node.test.support.js'
import { nameOf } from './blocks.mjs'

export const PROGRAM_MS_MAX = 60_000
/** The Node for programs with a file of SQLite. */
export const SQLITE_NODE = NODE
/** Whether it is such a program, or such a command. @param {string} text */
export const hasSqlite = (text) => text.includes("connect('sqlite:") || text.includes('--journal ')

/** A folder that exists until the tests of the file end. @param {string} prefix */
export function programFolder(prefix) {
  mkdirSync(MEMORY, { recursive: true })
  const folder = mkdtempSync(join(MEMORY, prefix))
  after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * Compile programs; they are written even if their types are wrong.
 * @param {string} folder
 * @param {{name: string, text: string}[]} programs
 * @returns {string} What tsc reports; empty if all types are right.
 */
export function compilePrograms(folder, programs) {
  const files = programs.map(({ name, text }) => [nameOf(text) ?? `${name}.ts`, text])
  assert.equal(new Set(files.map(([file]) => file)).size, files.length, 'two programs have one name')
  for (const [file, text] of files) writeFileSync(join(folder, file), text)
  const options = { extends: '../../tsconfig.json', include: ['*.ts', '*.mts'] }
  const compilerOptions = { rootDir: '.', outDir: 'js', declaration: false, noUnusedLocals: false }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...options, compilerOptions }))
  const args = [tsc(), '-p', folder, '--pretty', 'false']
  return spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' }).stdout
}

/**
 * Run a compiled program, which must exit with 0 and write nothing to standard error but where it serves.
 * @param {string} folder
 * @param {string} name
 * @returns {Promise<string | undefined>} Its standard output; undefined: no Node here can run it.
 */
export async function runProgram(folder, name) {
  const path = join(folder, 'js', `${name}.js`)
  const hasFile = hasSqlite(readFileSync(path, 'utf8'))
  if (hasFile && SQLITE_NODE === undefined) return undefined
  const node = hasFile ? SQLITE_NODE : process.execPath
  const cwd = hasFile ? mkdtempSync(join(folder, 'run-')) : ROOT
  const options = { cwd, encoding: 'utf8', timeout: PROGRAM_MS_MAX }
  const { status, stdout, stderr } = await new Promise((resolve) => {
    execFile(node, [path], options, (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : (error.code ?? error.signal), stdout, stderr }),
    )
  })
  const errors = stderr.replace(/^corespun: serving .+\n/gm, '')
  assert.deepEqual({ status, errors }, { status: 0, errors: '' }, `${stdout}${stderr}`)
  return stdout
}
