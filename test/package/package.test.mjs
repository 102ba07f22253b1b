/**
 * The package as users get it: the tarballs, installed into an empty project outside the checkout.
 *
 * What is asked of it: `import` and `require` work with one core between them, the core is found as the
 * platform's package, types resolve, the command runs, nothing of the checkout leaks in, and a missing
 * platform is named. A plain `npm pack` must make a tarball that works as well.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { pack } from '../../scripts/pack/main.mjs'
import { filesBelow, inRoot, npm, ROOT, tsc } from '../../scripts/set-up/index.mjs'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-package-')))
const project = join(folder, 'project')
after(() => rmSync(folder, { recursive: true, force: true }))

const PACKAGES_MAX = 2
/** On Windows the core has no HTTP server. */
const hasHttp = process.platform !== 'win32'
const INSTALLED_BYTES_MAX = 6e6

/** Paths of the tarballs: the package, then one per platform. */
let tarballs = []
/** What packing has reported of each. */
const reported = []

before(async () => {
  tarballs = await pack(join(folder, 'packed'), undefined, (line) => reported.push(line))
  install(project, tarballs)
})

/** An empty project with these tarballs. */
function install(target, files, ...flags) {
  const { program, args } = npm()
  cpSync(inRoot('test', 'package', 'project'), target, { recursive: true })
  const all = [...args, 'install', '--prefer-offline', '--no-audit', '--no-fund', ...flags, ...files]
  const { status, stdout, stderr } = spawnSync(program, all, { cwd: target, encoding: 'utf8' })
  assert.equal(status, 0, stdout + stderr)
}

/** Run node in a project; nothing of the checkout's environment reaches it. */
function node(target, ...args) {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(CORESPUN_|NODE_|npm_)/.test(name)),
  )
  return spawnSync(process.execPath, args, { cwd: target, encoding: 'utf8', env })
}

function prints(target, file, expected) {
  const { status, stdout, stderr } = node(target, file)
  assert.equal(status, 0, stderr)
  assert.equal(stdout, expected)
}

test('the tarball has what users need and nothing else', () => {
  const installed = join(project, 'node_modules', 'corespun')
  const files = filesBelow(installed).map((path) => path.slice(installed.length + 1))
  for (const name of ['package.json', 'README.md', 'LICENSE', 'lib/index.js', 'lib/index.d.ts'])
    assert.ok(files.includes(name), name)
  const expected = [
    /^lib\/(.*\.(js|d\.ts)|(swc|acorn|busboy|glob)\.c?js\.br|(swc|rolldown|acorn|busboy|glob)\.LICENSE)$/,
    /^([A-Z]+(\.md)?|package\.json)$/,
  ]
  const odd = files.filter((name) => !expected.some((pattern) => pattern.test(name)))
  assert.deepEqual(odd, [])
  assert.deepEqual(
    files.filter((name) => name.includes('.test.')),
    [],
  )
  const manifest = readFileSync(join(installed, 'package.json'), 'utf8')
  assert.ok(!manifest.includes('devDependencies') && !manifest.includes('"scripts"'), manifest)
  const leaking = files.filter((name) => readFileSync(join(installed, name), 'utf8').includes(ROOT))
  assert.deepEqual(leaking, [])
})

test('each package has the licences of the software of others that is in it', () => {
  const scope = join(project, 'node_modules', '@corespun')
  const platforms = readdirSync(scope)
  assert.equal(platforms.length, 1)
  const text = readFileSync(join(scope, platforms[0], 'THIRD-PARTY-NOTICES.txt'), 'utf8')
  const locked = [
    ...readFileSync(inRoot('Cargo.lock'), 'utf8').matchAll(/^name = "(.*)"\nversion = "(.*)"/gm),
  ]
  const names = new Set(locked.map(([, name, version]) => `${name} ${version}`))
  const listed = [...text.matchAll(/^- (\S+ \S+): (.+)$/gm)]
  assert.ok(listed.length > 10, text.slice(0, 1000))
  for (const [, name, license] of listed) {
    assert.ok(names.has(name), `${name} is not locked`)
    assert.notEqual(license, '')
    assert.ok(
      text.split('-'.repeat(80)).some((part) => part.split('\n').includes(name)),
      `${name}: no text`,
    )
  }
  for (const crate of ['napi-sys', 'parking_lot', 'crossbeam-deque', ...(hasHttp ? ['mio', 'httparse'] : [])])
    assert.ok(
      listed.some(([, name]) => name.startsWith(`${crate} `)),
      crate,
    )
  assert.ok(!/^- (corespun|loom|autocfg)/m.test(text), 'what is ours, or not in the core, is not listed')
  const lib = join(project, 'node_modules', 'corespun', 'lib')
  for (const name of ['swc', 'rolldown', 'acorn', 'busboy', 'glob'])
    assert.match(readFileSync(join(lib, `${name}.LICENSE`), 'utf8'), /licen[cs]e/i)
})

test('every relative link of the documents leads to a file of the tarball', () => {
  const installed = join(project, 'node_modules', 'corespun')
  const documents = filesBelow(installed, (path) => path.endsWith('.md'))
  const links = documents.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/\]\(([^)\s#]+)[^)]*\)/g)]
      .filter(([, target]) => !/^[a-z]+:/.test(target))
      .map(([, target]) => ({ path, target })),
  )
  const dead = links.filter(({ path, target }) => !existsSync(join(dirname(path), target)))
  assert.deepEqual(dead, [])
  assert.ok(documents.length > 0)
})

test('what guides name below node_modules/corespun is installed', () => {
  const guides = filesBelow(inRoot('docs', 'guide'), (path) => path.endsWith('.md'))
  const named = guides.flatMap(
    (path) => readFileSync(path, 'utf8').match(/node_modules\/corespun\/[\w./-]+/g) ?? [],
  )
  assert.deepEqual(
    named.filter((path) => !existsSync(join(project, path))),
    [],
  )
  assert.ok(named.length > 0)
})

test('the command runs a function of the project', () => {
  const lines = "({ path, lines: readFileSync(path, 'utf8').split('\\n').length })"
  writeFileSync(
    join(project, 'lines.mjs'),
    `import { readFileSync } from 'node:fs'\nexport const lines = (path) => ${lines}\n`,
  )
  const ran = node(
    project,
    join('node_modules', 'corespun', 'lib', 'cli', 'main.js'),
    'run',
    'lines.mjs',
    'lines.mjs',
  )
  assert.equal(ran.status, 0, ran.stderr)
  assert.equal(ran.stdout, '{"path":"lines.mjs","lines":3}\n')
})

test('an install is at most 2 packages and 6 MB', () => {
  const modules = join(project, 'node_modules')
  const { packages } = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8'))
  assert.ok(Object.keys(packages).length <= PACKAGES_MAX, Object.keys(packages).join())
  const names = readdirSync(modules, { recursive: true, encoding: 'utf8' })
  const bytes = names.reduce((sum, name) => sum + lstatSync(join(modules, name)).size, 0)
  assert.ok(bytes <= INSTALLED_BYTES_MAX, `${bytes} bytes`)
})

test('docs/design/packages.md has the sizes of the package and of the core, within 10 %', () => {
  const page = readFileSync(inRoot('docs', 'design', 'packages.md'), 'utf8')
  for (const line of reported) {
    const [, name, ...sizes] = /^pack: (\S+), (\d+) kB, unpacked (\d+) kB$/.exec(line)
    const row = page.split('\n').find((each) => each.startsWith(`| \`${name}\``))
    const cells = [...row.matchAll(/\| ([\d,]+) kB/g)].map(([, text]) => Number(text.replace(',', '')))
    assert.equal(cells.length, 2, row)
    for (const [index, size] of sizes.entries())
      assert.ok(Math.abs(Number(size) / cells[index] - 1) <= 0.1, `${row} and ${line}`)
  }
  assert.equal(reported.length, 2)
})

test('a Node that does not strip types loads TypeScript', () => {
  writeFileSync(join(project, 'typed.ts'), 'export const typed: number = 42\n')
  writeFileSync(
    join(project, 'typed.mjs'),
    "import 'corespun/typescript'\nconsole.log((await import('./typed.ts')).typed)\n",
  )
  const strips = Boolean(process.features.typescript)
  const flags = strips ? ['--no-experimental-strip-types'] : []
  const { status, stdout, stderr } = node(project, ...flags, 'typed.mjs')
  assert.equal(status, 0, stderr)
  assert.equal(stdout, '42\n')
})

/** TypeScript's own libraries are not what is tested, and take two thirds of the time of a check. */
const CHECKED = ['--skipDefaultLibCheck', '--pretty', 'false']
const PEERS = { './effect': 'effect', './telemetry': '@opentelemetry/api' }

/** The doors that need no optional peer. */
function doorsOf() {
  const { exports } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'))
  return Object.keys(exports).filter((name) => !name.endsWith('.json') && !(name in PEERS))
}

for (const [door, peer] of Object.entries(PEERS))
  test(`${door} without its optional peer fails with the name of that`, () => {
    writeFileSync(join(project, 'peer.mjs'), `import 'corespun/${door.slice(2)}'\n`)
    const { status, stderr } = node(project, 'peer.mjs')
    assert.notEqual(status, 0)
    assert.ok(stderr.includes(`Cannot find package '${peer}'`), stderr)
  })

test('every door of the package opens by import and by require', () => {
  const doors = doorsOf()
  const names = doors.map((name) => name.replace(/^\./, 'corespun'))
  const program = `
    import { createRequire } from 'node:module'
    const require = createRequire(import.meta.url)
    for (const name of ${JSON.stringify(names)}) {
      const imported = await import(name)
      const required = require(name)
      const other = Object.keys(imported).filter((key) => imported[key] !== required[key])
      if (other.length > 0) throw new Error(name + ': ' + other)
    }
    console.log(require('corespun/package.json').version)`
  writeFileSync(join(project, 'doors.mjs'), program)
  prints(project, 'doors.mjs', `${JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).version}\n`)
})

test('import runs a task', () => prints(project, 'import.mjs', 'import 42\n'))

test('require runs a task', () => prints(project, 'require.cjs', 'require 42\n'))

test('import and require share one core, and it is the one of the platform package', () => {
  const { status, stdout, stderr } = node(project, 'one.mjs')
  assert.equal(status, 0, stderr)
  assert.match(
    stdout,
    /^same core, same classes\n.*node_modules\/@corespun\/[\w-]+\/corespun\.[\w-]+\.node\n$/,
  )
})

test('types resolve by import and by require, with library checks on', () => {
  const types = inRoot('node_modules', '@types')
  const flags = ['--typeRoots', types, ...CHECKED, '-p', project]
  const good = node(project, tsc(), ...flags)
  assert.equal(good.status, 0, good.stdout)
  const wrong = "import { zone } from 'corespun'\nexport const wrong: number = zone.create('a')\n"
  writeFileSync(join(project, 'wrong.ts'), wrong)
  const bad = node(project, tsc(), ...flags)
  assert.match(bad.stdout, /wrong\.ts\(2,14\): error TS2322/)
  writeFileSync(join(project, 'wrong.ts'), "import { Fiber } from 'corespun'\nexport const wrong = Fiber\n")
  const valueOfType = node(project, tsc(), ...flags)
  rmSync(join(project, 'wrong.ts'))
  assert.match(valueOfType.stdout, /wrong\.ts\(2,22\): error TS1362/)
})

test('types resolve in a project that chose no library, and so has the types of the DOM', () => {
  const flags = ['--strict', '--noEmit', '--target', 'es2022', '--types', 'node', ...CHECKED]
  const roots = ['--typeRoots', inRoot('node_modules', '@types')]
  const files = ['types.ts', 'types.cts', 'doors.ts']
  for (const module of [
    ['--module', 'nodenext'],
    ['--module', 'node20'],
    ['--module', 'esnext', '--moduleResolution', 'bundler'],
  ]) {
    // `import x = require()` is of modules that Node runs.
    const given = module.includes('bundler') ? files.filter((name) => !name.endsWith('.cts')) : files
    const { status, stdout } = node(project, tsc(), '--ignoreConfig', ...flags, ...roots, ...module, ...given)
    assert.equal(status, 0, stdout)
  }
})

test('the types of each door bring what they need: no library chosen, and no types of Node', () => {
  const doors = doorsOf()
  const files = doors.map((name) => `alone${name.replace(/\W/g, '-')}.ts`)
  for (const [index, name] of doors.entries())
    writeFileSync(join(project, files[index]), `export type * from '${name.replace('.', 'corespun')}'\n`)
  const flags = ['--ignoreConfig', '--strict', '--noEmit', '--module', 'nodenext', ...CHECKED]
  for (const file of files) {
    // By itself: what another door asks for would count for this one.
    const { status, stdout } = node(project, tsc(), ...flags, '--target', 'es2023', file)
    assert.equal(status, 0, stdout)
  }
  for (const file of files) rmSync(join(project, file))
})

test('the command is installed', () => {
  const { program, args } = npm()
  const command =
    program === process.execPath ? [...args.slice(0, -1), args.at(-1), 'exec', '--'] : [...args, 'exec', '--']
  const { status, stdout, stderr } = spawnSync(program, [...command, 'corespun', '--help'], {
    cwd: project,
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  assert.match(stdout, /run <module>/)
})

test('without the package of the platform, loading fails with its name', () => {
  const target = join(folder, 'without')
  install(target, tarballs.slice(0, 1), '--omit=optional')
  const { status, stderr } = node(target, 'import.mjs')
  assert.notEqual(status, 0)
  assert.match(stderr, new RegExp(`NATIVE_PLATFORM_MISSING`))
  assert.match(
    stderr,
    new RegExp(`no native core for ${process.platform} ${process.arch}.*@corespun/${process.platform}-`),
  )
})

test('an install on another system is refused by npm, which lists the supported ones', () => {
  const target = join(folder, 'elsewhere')
  const { program, args } = npm()
  cpSync(inRoot('test', 'package', 'project'), target, { recursive: true })
  const flags = ['install', '--prefer-offline', tarballs[0]]
  const disguise = join(folder, 'freebsd.cjs')
  writeFileSync(disguise, "Object.defineProperty(process, 'platform', { value: 'freebsd' })\n")
  const env = { ...process.env, NODE_OPTIONS: `--require ${disguise}` }
  const { status, stderr } = spawnSync(program, [...args, ...flags], { cwd: target, encoding: 'utf8', env })
  assert.notEqual(status, 0)
  assert.match(stderr, /EBADPLATFORM/)
  assert.match(stderr, /\{"os":"linux,darwin,win32"[^}]*"cpu":"x64,arm64"/)
})

test('a plain `npm pack` of the checkout makes a tarball that works by itself', () => {
  const { program, args } = npm()
  const flags = ['pack', '--ignore-scripts', '--pack-destination', folder]
  const { status, stdout, stderr } = spawnSync(program, [...args, ...flags], { cwd: ROOT, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  const target = join(folder, 'plain')
  install(target, [join(folder, stdout.trim().split('\n').at(-1))])
  const installed = join(target, 'node_modules', 'corespun')
  assert.ok(!existsSync(join(installed, 'src')))
  prints(target, 'import.mjs', 'import 42\n')
})
