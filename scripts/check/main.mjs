/**
 * The checks of `npm run check`: types, lint, rustfmt, clippy, tidy.
 *
 * Each prints one line when it passes and what it found when it does not; all run, whatever fails. The set-up
 * has been done before, so the tools are there.
 */
import { existsSync } from 'node:fs'
import { inRoot, must, needComponent, Stop, tsc } from '../set-up/index.mjs'
import { tidy } from '../tidy/main.mjs'

/** Each has its own tsconfig.json; all but the first only where it exists. */
const PROJECTS = ['.', 'examples', 'bench']

const CHECKS = { types, lint, rustfmt, clippy, tidy: () => tidy([]) }

/**
 * Run the named checks, all when none is named.
 * @param {string[]} names
 * @returns {Promise<number>} 0 when all passed.
 * @throws {Stop} When a name is no check.
 */
export async function runChecks(names) {
  const unknown = names.find((name) => !(name in CHECKS))
  if (unknown !== undefined)
    throw new Stop(`There is no check ${unknown}; there are ${Object.keys(CHECKS).join(', ')}.`)
  let failed = 0
  for (const name of names.length > 0 ? names : Object.keys(CHECKS)) {
    try {
      const said = await CHECKS[name]()
      console.log(`pass  ${name}${said ? `: ${said}` : ''}`)
    } catch (error) {
      console.log(`FAIL  ${name}\n${error instanceof Stop ? error.message : error.stack}`)
      failed += 1
    }
  }
  return failed === 0 ? 0 : 1
}

async function types() {
  const projects = PROJECTS.filter((folder) => existsSync(inRoot(folder, 'tsconfig.json')))
  for (const folder of projects) {
    await must(`Types of ${folder}`, process.execPath, [
      tsc(),
      '-p',
      inRoot(folder),
      '--noEmit',
      '--pretty',
      'false',
    ])
  }
  return ''
}

async function lint() {
  const oxlint = inRoot('node_modules', 'oxlint', 'bin', 'oxlint')
  await must('Lint', process.execPath, [oxlint, '--deny-warnings', '.'])
}

async function rustfmt() {
  await needComponent('rustfmt')
  await must('Formatting of Rust', 'cargo', ['fmt', '--all', '--check'])
}

async function clippy() {
  await needComponent('clippy')
  const args = ['clippy', '--locked', '--workspace', '--all-targets', '--quiet', '--', '-D', 'warnings']
  await must('Clippy', 'cargo', args)
}
