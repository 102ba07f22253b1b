/**
 * One program under each tool, with the plugin and without it, as a table of what it prints.
 *
 * It uses the tarballs. The tools are installed below .set-up/ from a lock file of their own. Bundles are run
 * in a folder from which the sources cannot be reached, so they must have everything that their workers load.
 * The recipes of the guide for bundlers run as they are written.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
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
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { pack } from '../../scripts/pack/main.mjs'
import { inRoot, installCopy, MEMORY, must, npm } from '../../scripts/set-up/index.mjs'
import { blocksIn } from '../docs/blocks.mjs'

const TOOLS = join(MEMORY, 'plugin-tools')
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-tools-')))
const sources = join(folder, 'sources')
/** Where the tarballs are installed. */
const INSTALLED = join(folder, 'installed', 'node_modules')
after(() => rmSync(folder, { recursive: true, force: true }))

const program = `import type { Zone } from 'corespun'
import { basename } from 'node:path'
import { total } from './prices.ts'
import join, { shout, type Text } from './words.ts'
import { cpu } from './zones.ts'

const MARK = '!'

const marked = (text: Text): string => shout(text) + MARK

const sent = [
  () => cpu.run((n: number): number => n * 2, 4),
  () => cpu.run(marked, 'module'),
  () => cpu.map(['/a/b'], (path: string) => shout(basename(path))),
  () => cpu.run(async () => (await import('node:path')).extname('a.b')),
  async () => (await cpu.execute<number>(new URL('./tasks.ts', import.meta.url), 'triple', [2])).value,
  () => total.on(cpu).run(['tea', 'milk']),
  () => times(3),
  () =>
    cpu.run((text: Text) => {
      throw new Error(shout(text))
    }, 'thrown'),
  () => typed(cpu, 'typed'),
  () => relayed(cpu, 'relayed'),
]
function relayed(given: Zone, text: Text): Promise<string> {
  return given.run(() => given.run((more: Text) => shout(join(text, more)), MARK))
}
function typed(given: Zone, text: Text): Promise<string> {
  return given.run(() => shout(text))
}
function times(factor: number): Promise<number> {
  const { add } = { add: 1 }
  return cpu.run((n: number) => n * factor + add, 2)
}

/** Joined; a function that is refused is its code. */
export async function answers(): Promise<string> {
  const found = await Promise.allSettled(sent.map((each) => each()))
  await cpu.close()
  return found.map((each) => (each.status === 'fulfilled' ? each.value : reasonOf(each.reason))).join(' ')
}

function reasonOf(error: Error & { code?: string }): string {
  return error.code ?? error.message + '@' + /[\\w.]+:\\d+/.exec(String(error.stack).split('\\n')[1])?.[0]
}
`
const files = {
  'package.json': '{ "type": "module", "private": true }',
  'src/program.ts': program,
  'src/words.ts': `export type Text = string
export const shout = (text: Text): string => text.toUpperCase()
export default (...texts: Text[]): string => texts.join('')
`,
  'src/zones.ts': `import { zone } from 'corespun'
export const cpu = zone.create('cpu', { workers: 1 })
`,
  'src/tasks.ts': `export function triple(n: number): number {
  return n * 3
}
`,
  'src/prices.ts': `import { exported, lift } from 'corespun/arrow'
const prices = new Map([['tea', 3], ['milk', 1]])
export function sum(items: string[]): number {
  return items.reduce((all, item) => all + (prices.get(item) ?? 0), 0)
}
export const total = lift(exported(import.meta.url, sum))
`,
  'types-loader.mjs': `import { stripTypes } from ${url('dist/zone/worker/loader/strip.js')}
export default function (code) { return stripTypes(code, this.resourcePath) }
`,
  'src/main.ts': `import { answers } from './program.ts'
console.log(await answers())
`,
  'runner.vitest.ts': `import { test } from 'vitest'
import { answers } from './src/program.ts'
test('program', async () => console.log('answers: ' + (await answers())))
`,
  'runner.jest.ts': `import { test } from '@jest/globals'
import { answers } from './src/program.ts'
test('program', async () => process.stdout.write('answers: ' + (await answers()) + '\\n'))
`,
  'plain.mjs': `import { stripTypes } from ${url('dist/zone/worker/loader/strip.js')}
export default { process: (code, path) => ({ code: path.endsWith('.ts') ? stripTypes(code, path) : code }) }
`,
  'vitest.config.mjs': `import { rollup as corespun } from 'corespun/plugin'
const plugins = process.env.PLUGIN === 'yes' ? [corespun()] : []
export default { plugins, test: { include: ['*.vitest.ts'], coverage: { reporter: [] } } }
`,
  'jest.config.mjs': `const transform = process.env.PLUGIN === 'yes' ? 'corespun/plugin/jest' : './plain.mjs'
export default {
  cacheDirectory: '<rootDir>/cache',
  extensionsToTreatAsEsm: ['.ts'],
  testMatch: ['**/*.jest.ts'],
  transform: { '\\\\.[jt]s$': transform },
}
`,
}

before(async () => {
  await installCopy('the tools of the plugin', inRoot('test', 'plugin', 'tools'), TOOLS)
  const tarballs = await pack(join(folder, 'packed'))
  const [cwd, { program: command, args }] = [join(folder, 'installed'), npm()]
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'package.json'), '{ "private": true }')
  const flags = ['install', '--prefer-offline', '--no-audit', '--no-fund']
  await must('Installing the tarballs', command, [...args, ...flags, ...tarballs], { cwd })
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(sources, name, '..'), { recursive: true })
    writeFileSync(join(sources, name), text)
  }
  link(sources, INSTALLED, join(TOOLS, 'node_modules'))
})

/** Link packages of these folders into a folder: of those with one name, the first. */
function link(target, ...from) {
  const modules = join(target, 'node_modules')
  mkdirSync(modules)
  for (const each of from) {
    const present = new Set(readdirSync(modules))
    const names = readdirSync(each).filter((name) => !name.startsWith('.') && !present.has(name))
    for (const name of names) symlinkSync(join(each, name), join(modules, name))
  }
}

function url(path) {
  return JSON.stringify(pathToFileURL(inRoot(path)).href)
}

/** What node prints. @param {string} cwd @param {string[]} args */
function node(cwd, args, env = {}) {
  const given = { ...process.env, NODE_OPTIONS: '', NODE_V8_COVERAGE: '', NO_COLOR: '1', ...env }
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--no-warnings', ...args], {
    cwd,
    encoding: 'utf8',
    env: given,
    timeout: 120_000,
  })
  assert.equal(status, 0, stdout + stderr)
  return stdout
}

/** Bundle the program, in a process of its own since tools leave threads behind, and run it elsewhere. */
function bundled(name, isUsed, main = 'main.js') {
  const out = join(folder, `${name}-${isUsed}`)
  const build = () => node(sources, [inRoot('test', 'plugin', 'build.mjs'), name, isUsed ? 'yes' : 'no', out])
  build()
  if (name.endsWith('next')) {
    // Again, with the tool's cache on the disk.
    rmSync(out, { recursive: true })
    build()
  }
  writeFileSync(join(out, 'package.json'), files['package.json'])
  link(out, INSTALLED)
  return node(out, [main]).trim()
}

const runners = {
  node: (isUsed) => {
    const flags = isUsed ? ['--import', 'corespun/plugin/register'] : []
    return node(sources, ['--import', 'corespun/typescript', ...flags, 'src/main.ts']).trim()
  },
  rolldown: (isUsed) => bundled('rolldown', isUsed),
  rollup: (isUsed) => bundled('rollup', isUsed),
  vite: (isUsed) => bundled('vite', isUsed),
  esbuild: (isUsed) => bundled('esbuild', isUsed),
  'esbuild, minified': (isUsed) => bundled('esbuild, minified', isUsed),
  ...Object.fromEntries(
    ['webpack', 'rspack'].flatMap((tool) =>
      Object.entries({ commonjs: 'main.cjs', module: 'main.js', next: 'app/main.cjs' }).map(
        ([kind, main]) => [`${tool}, ${kind}`, (isUsed) => bundled(`${tool}, ${kind}`, isUsed, main)],
      ),
    ),
  ),
  'vitest, forks': (isUsed) => vitest(isUsed, '--pool=forks'),
  'vitest, threads, istanbul': (isUsed) =>
    vitest(isUsed, '--pool=threads', '--coverage.enabled', '--coverage.provider=istanbul'),
  'jest, with coverage by Babel': (isUsed) => {
    const entry = join(sources, 'node_modules', 'jest', 'bin', 'jest.js')
    return answersOf(
      node(
        sources,
        ['--experimental-vm-modules', entry, '--coverage', '--coverageReporters=json'],
        used(isUsed),
      ),
    )
  },
}

function vitest(isUsed, ...flags) {
  const entry = join(sources, 'node_modules', 'vitest', 'vitest.mjs')
  return answersOf(node(sources, [entry, 'run', ...flags], used(isUsed)))
}

const used = (isUsed) => ({ PLUGIN: isUsed ? 'yes' : 'no' })
const answersOf = (text) => /^answers: (.*)$/m.exec(text)?.[1]

const LINE = 1 + program.split('\n').findIndex((line) => line.includes('throw new Error(shout'))
const ALL = `8 MODULE! B .b 6 4 7 THROWN@program.ts:${LINE} TYPED RELAYED!`
const CAPTURES = 'FUNCTION_CAPTURES'
/** A function that is an argument of a call is refused as one. */
const IN_FRAME = 'TRANSPORT_FUNCTION'
/** Counters are in every function. */
const REWRITTEN = `${CAPTURES} ${CAPTURES} ${IN_FRAME}`
/** The file is not in the bundle; the function's module is the bundle, which a worker runs in vain. */
const FILES = `FUNCTION_MODULE FUNCTION_MODULE ${CAPTURES} ${CAPTURES}`
/** The same where the bundle runs in a worker to its first `await`. */
const FILES_OF_PACKERS = `FUNCTION_MODULE FUNCTION_EXPORT_MISSING ${CAPTURES}`
const WEBPACK = `8 ${CAPTURES} ${IN_FRAME} ${CAPTURES} ${FILES_OF_PACKERS} ${CAPTURES} ${CAPTURES}`
const rspack = (main) => `8 MODULE! ${IN_FRAME} ${CAPTURES} ${FILES_OF_PACKERS} THROWN@${main}:1 TYPED`
/**
 * A plain function, one of the module, one with an import in `map`, one that imports a module of Node, one by
 * the URL of its file, an exported one, one with captured values, one that throws, one for a zone that is a
 * parameter. rspack writes small functions where they are called.
 */
const WITHOUT = {
  node: `8 ${CAPTURES} ${IN_FRAME} .b 6 4 ${CAPTURES} ${CAPTURES} ${CAPTURES}`,
  rolldown: `8 ${CAPTURES} ${IN_FRAME} .b ${FILES} ${CAPTURES}`,
  rollup: `8 ${CAPTURES} ${IN_FRAME} .b ${FILES} ${CAPTURES}`,
  vite: `8 ${CAPTURES} ${IN_FRAME} .b ${FILES} ${CAPTURES}`,
  esbuild: `8 ${CAPTURES} ${IN_FRAME} .b ${FILES} ${CAPTURES}`,
  'esbuild, minified': `8 ${CAPTURES} ${IN_FRAME} .b ${FILES} ${CAPTURES}`,
  'webpack, commonjs': WEBPACK,
  'webpack, module': WEBPACK,
  'webpack, next': WEBPACK,
  'rspack, commonjs': rspack('main.cjs'),
  'rspack, module': rspack('main.js'),
  'rspack, next': rspack('main.cjs'),
  'vitest, forks': `8 ${CAPTURES} ${IN_FRAME} ${CAPTURES} 6 4 ${CAPTURES} ${CAPTURES} ${CAPTURES}`,
  'vitest, threads, istanbul': `${REWRITTEN} ${CAPTURES} 6 4 ${CAPTURES} ${CAPTURES} ${CAPTURES}`,
  'jest, with coverage by Babel': `${REWRITTEN} ${CAPTURES} 6 4 ${CAPTURES} ${CAPTURES} ${CAPTURES}`,
}

for (const [name, run] of Object.entries(runners)) {
  test(`${name}: with the plugin, functions use imports and what is constant`, () => {
    assert.equal(run(true), ALL)
  })
  test(`${name}: without the plugin, functions that capture are refused`, () => {
    // What a sent function sends is refused everywhere.
    assert.equal(run(false), `${WITHOUT[name]} ${CAPTURES}`)
  })
}

/** A bundler's command, with the configuration of the guide. Of webpack and rspack it is another package. */
const COMMANDS = {
  vite: () => [bin('vite', 'bin', 'vite.js'), 'build'],
  rollup: () => [bin('rollup', 'dist', 'bin', 'rollup'), '--config'],
  rolldown: () => [inRoot('node_modules', 'rolldown', 'bin', 'cli.mjs'), '--config', 'rollup.config.js'],
  esbuild: () => ['build.mjs'],
  webpack: () => packer('webpack', 'webpack.config.js'),
  rspack: () => packer('@rspack/core', 'rspack.config.js'),
}
const bin = (...path) => join(TOOLS, 'node_modules', ...path)

function packer(tool, config) {
  const program = `import config from './${config}'
    import packer from '${tool}'
    packer(config, (error, stats) => {
      if (error ?? stats.hasErrors()) throw error ?? new Error(stats.toString())
    })`
  return ['--input-type=module', '--eval', program]
}

for (const [name, command] of Object.entries(COMMANDS)) {
  test(`the recipe for ${name}`, () => {
    const target = join(folder, `recipe-${name}`)
    mkdirSync(join(target, 'src'), { recursive: true })
    const guide = inRoot('docs', 'guide', 'plugin.md')
    for (const { text } of blocksIn(guide, readFileSync(guide, 'utf8'))) {
      const file = /^\/\/ ([\w./]+)\n/.exec(text)?.[1]
      if (file !== undefined) writeFileSync(join(target, file), text)
      if (file !== 'webpack.config.js') continue
      writeFileSync(join(target, 'rspack.config.js'), text.replace('webpack as', 'rspack as'))
    }
    writeFileSync(join(target, 'package.json'), files['package.json'])
    link(target, INSTALLED, join(TOOLS, 'node_modules'))
    node(target, command())
    rmSync(join(target, 'src'), { recursive: true })
    assert.equal(node(target, [join('dist', 'main.js')]), 'HELLO!\n')
  })
}
