/**
 * src/ compiled to dist/, types included, by tsc with its record of what it compiled from what.
 *
 * The record lies in dist, so a dist that was deleted is compiled anew. tsc leaves the files of
 * deleted sources; they are removed, because a deleted test must not run.
 */
import { existsSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { filesBelow, inRoot } from './paths.mjs'
import { must } from './run.mjs'

const EMITTED = /\.(js|js\.map|d\.ts)$/

/** The compiler's command. */
export function tsc() {
  return inRoot('node_modules', 'typescript', 'bin', 'tsc')
}

/** Compile what changed. @throws {Stop} With what the compiler found. */
export async function compileTypeScript() {
  const [src, dist] = [inRoot('src'), inRoot('dist')]
  const flags = [
    '-p',
    inRoot('tsconfig.json'),
    '--incremental',
    '--tsBuildInfoFile',
    join(dist, '.tsbuildinfo'),
  ]
  await must('Compiling TypeScript', process.execPath, [tsc(), ...flags])
  for (const path of filesBelow(dist, (path) => EMITTED.test(path))) {
    const source = join(src, relative(dist, path).replace(EMITTED, '.ts'))
    if (!existsSync(source)) rmSync(path)
  }
}
