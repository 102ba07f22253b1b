/**
 * src/ compiled to dist/, types included.
 *
 * Files of dist/ whose source has gone are removed first: a test that was deleted must not run on.
 */
import { rmSync } from 'node:fs'
import { relative } from 'node:path'
import { inRoot } from './place.mjs'
import { must } from './run.mjs'
import { filesBelow, forget, hashOf, isCurrent, remember } from './stamps.mjs'

const STAMP = 'typescript'
const EMITTED = /\.(js|js\.map|d\.ts)$/

/** The step; made anew for each run because it reads the sources when made. */
export function typescriptStep() {
  const sources = filesBelow(inRoot('src'), (path) => path.endsWith('.ts'))
  const inputs = hashOf([
    ...sources,
    inRoot('tsconfig.json'),
    inRoot('package.json'),
    inRoot('package-lock.json'),
  ])
  return {
    name: 'TypeScript',
    isCurrent: () => isCurrent(STAMP, inputs, outputs),
    async work() {
      forget(STAMP)
      removeOrphans(sources)
      await must('Compiling TypeScript', process.execPath, [tsc(), '-p', inRoot('tsconfig.json')])
      remember(STAMP, inputs, outputs())
    },
  }
}

/** The compiler's command. */
export function tsc() {
  return inRoot('node_modules', 'typescript', 'bin', 'tsc')
}

function outputs() {
  return hashOf(filesBelow(inRoot('dist'), (path) => EMITTED.test(path)))
}

function removeOrphans(sources) {
  const kept = new Set(sources.map((path) => relative(inRoot('src'), path).replace(/\.ts$/, '')))
  for (const path of filesBelow(inRoot('dist'), (path) => EMITTED.test(path))) {
    if (!kept.has(relative(inRoot('dist'), path).replace(EMITTED, ''))) rmSync(path)
  }
}
