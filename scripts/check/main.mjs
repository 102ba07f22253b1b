/**
 * The checks of `npm run check`: types, what contracts cost the compiler, oxlint with the rules that need
 * types, oxfmt, knip (what nobody imports), API Extractor (the public surface), rustfmt, clippy, tidy (what
 * no other tool checks).
 *
 * Each prints one line when it passes and what it found when it does not; all run, whatever fails. The set-up
 * has been done before, so the tools are there.
 */
import { existsSync } from 'node:fs'
import { inRoot, must, Stop, tsc } from '../set-up/index.mjs'
import { tidy } from '../tidy/main.mjs'
import { contractTypes } from './contract-types.mjs'

/** Each has its own tsconfig.json, where it exists; src was checked when set-up compiled it. */
const PROJECTS = ['examples', 'bench']

/** It reads how it formats, and what, from .oxfmtrc.json. */
const OXFMT = inRoot('node_modules', 'oxfmt', 'bin', 'oxfmt')
const CLIPPY = ['--locked', '--workspace', '--all-targets', '--quiet', '--', '-D', 'warnings']
const CHECKS = {
  types,
  contracts: contractTypes,
  lint: program(process.execPath, inRoot('node_modules', 'oxlint', 'bin', 'oxlint'), '--deny-warnings', '.'),
  format: program(process.execPath, OXFMT, '--check'),
  unused: program(process.execPath, inRoot('node_modules', 'knip', 'bin', 'knip.js'), '--no-progress'),
  api: program(process.execPath, inRoot('scripts', 'check', 'api.mjs')),
  rustfmt: program('cargo', 'fmt', '--all', '--check'),
  clippy: program('cargo', 'clippy', ...CLIPPY),
  tidy: () => tidy([]),
}

/** A check that passes when a program does; what that prints then is of no interest. */
function program(name, ...args) {
  return async () => void (await must('A check', name, args))
}

/**
 * Run the named checks, all when none is named.
 * @param {(name: string, text: string) => void} [onFailure] Receives what is printed of a check that failed.
 * @returns {Promise<number>} 0 when all passed.
 * @throws {Stop} If a name is not that of a check.
 */
export async function runChecks(names, onFailure) {
  const unknown = names.find((name) => !(name in CHECKS))
  if (unknown !== undefined)
    throw new Stop(`unknown check '${unknown}' (expected ${Object.keys(CHECKS).join(', ')})`)
  let failed = 0
  // All at once: most of them use one core and wait for their files.
  const started = (names.length > 0 ? names : Object.keys(CHECKS)).map((name) => [name, resultOf(name)])
  for (const [name, result] of started) {
    const { output, wrong } = await result
    console.log(
      wrong === undefined ? `pass  ${name}${output ? `: ${output.trim()}` : ''}` : `FAIL  ${name}\n${wrong}`,
    )
    if (wrong === undefined) continue
    failed += 1
    onFailure?.(name, wrong)
  }
  return failed === 0 ? 0 : 1
}

async function resultOf(name) {
  try {
    return { output: await CHECKS[name]() }
  } catch (error) {
    return { wrong: error instanceof Stop ? error.message : error.stack }
  }
}

async function types() {
  for (const folder of PROJECTS.filter((each) => existsSync(inRoot(each, 'tsconfig.json')))) {
    const flags = ['-p', inRoot(folder), '--noEmit', '--pretty', 'false']
    await must(`Types of ${folder}`, process.execPath, [tsc(), ...flags])
  }
}

/** `npm run format`. */
export async function formatted(words) {
  await must('Formatting', process.execPath, [OXFMT, ...words])
  await must('Formatting Rust', 'cargo', ['fmt', '--all'])
  return 0
}
