/**
 * Small projects that use the tarball, each with a tool that runs, tests or bundles it.
 *
 * Each runs with the plugin and without, and prints what its functions return. The table is exact: a cell
 * that begins to work or to fail fails the test. The recipes of the guide for test runners run as they are
 * written. The tools are those of test/plugin, installed below .set-up/ from a lock file of their own.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { pack } from '../../scripts/pack/main.mjs'
import { inRoot, installCopy, MEMORY, npm } from '../../scripts/set-up/index.mjs'
import { blocksIn } from '../docs/blocks.mjs'

const PROJECTS = inRoot('test', 'package', 'projects')
const TOOLS = join(MEMORY, 'plugin-tools')
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-projects-')))
const app = join(folder, 'app')
after(() => rmSync(folder, { recursive: true, force: true }))

/** Paths of the tarballs: the package, then that of this platform. */
let tarballs = []

before(async () => {
  await installCopy('the tools of the plugin', inRoot('test', 'plugin', 'tools'), TOOLS)
  tarballs = await pack(join(folder, 'packed'))
  cpSync(join(PROJECTS, 'app'), app, { recursive: true })
  const { program, args } = npm()
  installed(program, [...args, 'install', '--prefer-offline', '--no-audit', '--no-fund', ...tarballs], app)
  const present = new Set(readdirSync(join(app, 'node_modules')))
  for (const name of readdirSync(join(TOOLS, 'node_modules'))) {
    const path = join(app, 'node_modules', name)
    if (!present.has(name)) symlinkSync(join(TOOLS, 'node_modules', name), path)
  }
})

/** What a program prints; nothing of the checkout's environment reaches it. */
function ran(program, args, cwd, env = {}) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(CORESPUN_|NODE_|npm_)/.test(name))
  return output(program, args, cwd, { ...Object.fromEntries(kept), NO_COLOR: '1', TMPDIR: folder, ...env })
}

/** Run a package manager, which may need the registry and the certificates of the environment. */
function installed(program, args, cwd, env = {}) {
  return output(program, args, cwd, { ...process.env, ...env })
}

function output(program, args, cwd, env) {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    env,
    timeout: 120_000,
  })
  assert.equal(status, 0, stdout + stderr)
  return stdout
}

const node = (args, isUsed, env = {}) =>
  ran(process.execPath, ['--no-warnings', ...args], app, { PLUGIN: isUsed ? 'yes' : 'no', ...env })
const toolFile = (...path) => join(app, 'node_modules', ...path)
const answersOf = (text) => /answers: (.*)$/m.exec(text)?.[1]
const hooked = (isUsed) => (isUsed ? ['--import', 'corespun/plugin/register'] : [])

function vitest(isUsed, ...flags) {
  return answersOf(node([toolFile('vitest', 'vitest.mjs'), 'run', ...flags], isUsed))
}

/** As `vitest`, with coverage that must have counted lines of the program. */
function vitestCovered(isUsed, pool, provider) {
  const reports = join(folder, `${provider}-${isUsed}`)
  const flags = ['--coverage.enabled', `--coverage.provider=${provider}`]
  const answers = vitest(isUsed, `--pool=${pool}`, ...flags, `--coverage.reportsDirectory=${reports}`)
  checkCovered(reports)
  return answers
}

function checkCovered(reports) {
  const summary = JSON.parse(readFileSync(join(reports, 'coverage-summary.json'), 'utf8'))
  const found = Object.entries(summary).find(([path]) => path.endsWith('/src/program.js'))
  assert.ok(found?.[1].lines.covered > 0, JSON.stringify(summary))
}

function jest(isUsed) {
  const reports = join(folder, `jest-${isUsed}`)
  const entry = toolFile('jest', 'bin', 'jest.js')
  const flags = ['--coverage', `--coverageDirectory=${reports}`]
  const answers = answersOf(node(['--experimental-vm-modules', entry, ...flags], isUsed))
  checkCovered(reports)
  return answers
}

function nodeTest(isUsed) {
  const reports = join(folder, `c8-${isUsed}`)
  const c8 = [
    inRoot('node_modules', 'c8', 'bin', 'c8.js'),
    '--reporter=json-summary',
    `--reports-dir=${reports}`,
  ]
  const run = [process.execPath, '--no-warnings', ...hooked(isUsed), '--test', 'program.node.js']
  const answers = answersOf(node([...c8, `--temp-directory=${join(reports, 'raw')}`, ...run], isUsed))
  checkCovered(reports)
  return answers
}

/** A bundle runs in a folder from which the sources cannot be reached. */
function bundled(isUsed) {
  const out = join(folder, `bundle-${isUsed}`)
  node(['build.js', out], isUsed)
  writeFileSync(join(out, 'package.json'), readFileSync(join(app, 'package.json')))
  mkdirSync(join(out, 'node_modules'))
  for (const name of ['corespun', '@corespun']) symlinkSync(toolFile(name), join(out, 'node_modules', name))
  return ran(process.execPath, ['main.js'], out).trim()
}

const runners = {
  'plain JavaScript': (isUsed) => node([...hooked(isUsed), 'src/main.js'], isUsed).trim(),
  tsx: (isUsed) => node([...hooked(isUsed), '--import', 'tsx', 'src/typed.ts'], isUsed).trim(),
  'node:test with c8': nodeTest,
  'vitest, forks': (isUsed) => vitest(isUsed, '--pool=forks'),
  'vitest, threads': (isUsed) => vitest(isUsed, '--pool=threads'),
  "vitest, V8's coverage": (isUsed) => vitestCovered(isUsed, 'forks', 'v8'),
  "vitest, istanbul's coverage": (isUsed) => vitestCovered(isUsed, 'threads', 'istanbul'),
  "jest, V8's coverage": jest,
  'esbuild, minified with --keep-names': bundled,
}

const CAPTURES = 'FUNCTION_CAPTURES'
/** A function that is an argument of a call is refused as one. */
const ARGUMENT = 'TRANSPORT_FUNCTION'
/** The functions of program.js, in its order. */
const WITH = '8 MODULE! B .b NAME'
const PLAIN = `8 ${CAPTURES} ${ARGUMENT} .b NAME`
const REWRITTEN_IMPORTS = `8 ${CAPTURES} ${ARGUMENT} ${CAPTURES} NAME`
const WITHOUT = {
  'plain JavaScript': PLAIN,
  tsx: PLAIN,
  'node:test with c8': PLAIN,
  'vitest, forks': REWRITTEN_IMPORTS,
  'vitest, threads': REWRITTEN_IMPORTS,
  "vitest, V8's coverage": REWRITTEN_IMPORTS,
  "vitest, istanbul's coverage": `${CAPTURES} ${CAPTURES} ${ARGUMENT} ${CAPTURES} NAME`,
  "jest, V8's coverage": PLAIN,
  // The names of functions inside of the sent one are kept by a minified helper.
  'esbuild, minified with --keep-names': `${CAPTURES} ${CAPTURES} ${ARGUMENT} .b NAME`,
}

for (const [name, run] of Object.entries(runners)) {
  test(`${name}: with the plugin, functions use imports and what is constant`, () => {
    assert.equal(run(true), WITH)
  })
  test(`${name}: without the plugin, the refusals name it`, () => {
    assert.equal(run(false), WITHOUT[name])
  })
}

/** The project that the guide tests: its blocks that begin with the name of a file, in a folder. */
function recipe(runner) {
  const target = join(folder, `recipe-${runner}`)
  const guide = inRoot('docs', 'guide', 'tools.md')
  for (const { text } of blocksIn(guide, readFileSync(guide, 'utf8'))) {
    const name = /^\/\/ ([\w./]+)\n/.exec(text)?.[1]
    if (name === undefined) continue
    mkdirSync(dirname(join(target, name)), { recursive: true })
    writeFileSync(join(target, name), text)
  }
  writeFileSync(join(target, 'package.json'), '{ "type": "module" }')
  symlinkSync(join(app, 'node_modules'), join(target, 'node_modules'))
  return target
}

/** Run a recipe with coverage, which must have counted the module of the app. */
function followed(target, args) {
  ran(process.execPath, ['--no-warnings', ...args], target)
  const counted = JSON.parse(readFileSync(join(target, 'coverage', 'coverage-final.json'), 'utf8'))
  assert.ok(Object.keys(counted).includes(join(target, 'src', 'app.ts')), Object.keys(counted).join())
}

test('the recipe for vitest', () =>
  followed(recipe('vitest'), [toolFile('vitest', 'vitest.mjs'), 'run', '--coverage']))

test('the recipe for jest', () => {
  const target = recipe('jest')
  const path = join(target, 'src', 'app.test.ts')
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, text.replace("from 'vitest'", "from '@jest/globals'"))
  followed(target, ['--experimental-vm-modules', toolFile('jest', 'bin', 'jest.js'), '--coverage'])
})

test('check() in jest, in a test of CommonJS', () => {
  const target = join(folder, 'commonjs')
  mkdirSync(target)
  symlinkSync(join(app, 'node_modules'), join(target, 'node_modules'))
  writeFileSync(join(target, 'package.json'), '{ "jest": { "transform": {} } }')
  writeFileSync(
    join(target, 'seeds.test.js'),
    `test('an update is lost', async () => {
      const { check } = await import('corespun/test')
      const found = check({ seeds: 100 }, async ({ spawn, step }) => {
        let sum = 0
        const add = async () => {
          const read = sum
          await step()
          sum = read + 1
        }
        for (const task of [spawn(add), spawn(add)]) await task.join()
        expect(sum).toBe(2)
      })
      await expect(found).rejects.toThrow(/play it again: .*npx jest .*seeds.test.js/)
    })`,
  )
  ran(process.execPath, ['--experimental-vm-modules', toolFile('jest', 'bin', 'jest.js')], target)
})

/** The platforms of which there is no tarball here get that of this one, which is never loaded for them. */
function coreVersions(versionOf) {
  const { optionalDependencies } = JSON.parse(readFileSync(toolFile('corespun', 'package.json'), 'utf8'))
  const own = basename(tarballs[1]).replace(/-\d.*/, '').replace('corespun-', '@corespun/')
  return Object.fromEntries(Object.keys(optionalDependencies).map((name) => [name, versionOf(name === own)]))
}

/** A workspace whose package `app` uses the tarball and the package `words`. */
function workspace(name, fields, files) {
  const target = join(folder, name)
  cpSync(join(PROJECTS, 'workspace'), target, { recursive: true })
  edit(join(target, 'packages', 'app', 'package.json'), ({ dependencies, ...rest }) => ({
    ...rest,
    dependencies: { ...dependencies, corespun: `file:${tarballs[0]}` },
  }))
  edit(join(target, 'package.json'), (manifest) => ({ ...manifest, ...fields }))
  for (const [path, text] of Object.entries(files)) writeFileSync(join(target, path), text)
  return target
}

function edit(path, change) {
  writeFileSync(path, JSON.stringify(change(JSON.parse(readFileSync(path, 'utf8')))))
}

function checkWorkspace(target, ...flags) {
  const printed = (...more) =>
    ran(process.execPath, ['--no-warnings', ...flags, ...more, 'main.js'], join(target, 'packages', 'app'))
  assert.equal(printed(), `8 ${CAPTURES} INSIDE NAME\n`)
  assert.equal(printed('--import', 'corespun/plugin/register'), '8 MODULE INSIDE NAME\n')
}

test('a workspace of pnpm', () => {
  const overrides = coreVersions((isOwn) => (isOwn ? `file:${tarballs[1]}` : '-'))
  const files = { 'pnpm-workspace.yaml': 'packages: [packages/*]\n' }
  const target = workspace('pnpm', { pnpm: { overrides } }, files)
  installed(process.execPath, [toolFile('pnpm', 'bin', 'pnpm.cjs'), 'install', '--prefer-offline'], target)
  checkWorkspace(target)
})

/** @param {'node-modules' | 'pnp'} linker */
function yarn(linker) {
  const resolutions = coreVersions(() => `file:${tarballs[1]}`)
  const settings = `nodeLinker: ${linker}\nenableTelemetry: false\nenableGlobalCache: false\n`
  const files = { '.yarnrc.yml': settings, 'yarn.lock': '' }
  const target = workspace(`yarn-${linker}`, { resolutions }, files)
  const entry = toolFile('@yarnpkg', 'cli-dist', 'bin', 'yarn.js')
  // Yarn has a registry of its own by default; a mirror is configured for npm.
  const { program, args } = npm()
  const registry = installed(program, [...args, 'config', 'get', 'registry'], folder).trim()
  const env = { YARN_NPM_REGISTRY_SERVER: registry }
  installed(process.execPath, [entry, 'install', '--no-immutable'], target, env)
  return target
}

test('a workspace of Yarn', () => checkWorkspace(yarn('node-modules')))

test("a workspace of Yarn with Plug'n'Play", () => {
  const target = yarn('pnp')
  const loader = pathToFileURL(join(target, '.pnp.loader.mjs')).href
  checkWorkspace(target, '--require', join(target, '.pnp.cjs'), '--experimental-loader', loader)
})
