/**
 * Tarballs for users: the package `corespun` without a compiled core, and one package per platform with it.
 *
 * What is packed is staged in folders of its own, because the published manifest differs from the checkout's:
 * it names the platform packages as optional dependencies. In the checkout it must not, since a lock file
 * cannot hold a package that has never been published. The package names all platforms; packed are those
 * whose core lies in a folder: of this machine, or with `--all` of each platform (scripts/cross).
 *
 * (A plain `npm pack` in the checkout works too: its tarball carries the core of this platform inside.)
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { compileCores } from '../cross/main.mjs'
import { notices, partsOf } from '../cross/notices.mjs'
import { noticesFile, PLATFORMS } from '../cross/platforms.mjs'
import { compile, filesBelow, inRoot, MEMORY, must, npm, releasedCore, ROOT } from '../set-up/index.mjs'
import { withoutMarks, withReachableLinks } from './documents.mjs'

/**
 * The address of the public repository, such as `https://github.com/owner/name`, which a release sets.
 * Without it manifests have no links; npm accepts provenance only with them.
 */
const repository = () => process.env['CORESPUN_REPOSITORY'] ?? ''
/** Fields of the manifest that only a checkout needs. */
const CHECKOUT_ONLY = ['scripts', 'devDependencies', 'overrides', 'workspaces', 'files', 'scarfSettings']
/** The conditions of exports under which a checkout is loaded from dist or joined. */
const OF_CHECKOUT = /^corespun-/
/** Other documents, and the examples, are for those who have the repository, or read the site. */
const DOCUMENTS = ['README.md', 'LICENSE']
/** What users load of lib; the core is in the package of the platform. */
const BUNDLE = /\.js$|\.d\.ts$|\b(swc|rolldown|acorn|busboy|glob)\.[\w.]+$/

/** In a platform's package: the licences of what is compiled into its core. */
const NOTICES = 'THIRD-PARTY-NOTICES.txt'

/** `npm run package`. */
export async function packAsAsked(words) {
  const options = { all: { type: 'boolean' } }
  const { values, positionals } = parseArgs({ args: words, options, allowPositionals: true })
  const [folder = join(MEMORY, 'packed')] = positionals.map((path) => resolve(ROOT, path))
  const cores = values.all ? await compileCores(console.error) : undefined
  for (const path of await pack(folder, cores, console.error)) console.log(path)
  return 0
}

/**
 * Pack everything into a folder.
 * @param {string} folder Made when missing.
 * @param {string} [cores] Has the cores of the platforms to pack; by default that of this machine.
 * @param {(line: string) => void} [report] Receives the size of each package.
 * @returns {Promise<string[]>} Paths of the tarballs, the package's first.
 */
export async function pack(folder, cores, report = () => {}) {
  mkdirSync(folder, { recursive: true })
  // The formatter leaves out what git ignores, as all below MEMORY.
  const stages = mkdtempSync(join(tmpdir(), 'corespun-stage-'))
  try {
    return await packIn(stages, folder, cores ?? (await releasedCore()), report)
  } finally {
    rmSync(stages, { recursive: true, force: true })
  }
}

async function packIn(stages, folder, cores, report) {
  const manifest = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'))
  const triples = readdirSync(cores).flatMap((name) => /^corespun\.(.+)\.node$/.exec(name)?.[1] ?? [])
  const platforms = triples.map((triple) => platformManifest(triple, manifest))
  const staged = [stagePackage(stages, manifest)]
  for (const platform of platforms) staged.push(await stagePlatform(stages, platform, cores))
  const paths = []
  for (const stage of staged) paths.push(await packStage(stage, folder, report))
  return paths
}

/**
 * The fields of a manifest that lead to the repository.
 * @param {string} address That of the repository, or ''.
 */
export function linksTo(address) {
  if (address === '') return {}
  return {
    homepage: `${address}#readme`,
    bugs: { url: `${address}/issues` },
    repository: { type: 'git', url: `git+${address}.git` },
  }
}

/**
 * The manifest of a platform's package: npm installs it only where its core runs.
 * @param {string} triple Such as `linux-x64-gnu`.
 * @param {{version: string, license: string, engines: object}} manifest The package's own.
 */
export function platformManifest(triple, { version, license, engines }) {
  const [platform, arch, abi] = triple.split('-')
  const libc = { gnu: ['glibc'], musl: ['musl'] }[abi]
  const file = `corespun.${triple}.node`
  return {
    name: `@corespun/${triple}`,
    version,
    ...linksTo(repository()),
    description: `The native core of corespun for ${triple}; installed by corespun itself`,
    license,
    engines,
    os: [platform],
    cpu: [arch],
    ...(libc === undefined ? {} : { libc }),
    type: 'commonjs',
    main: file,
    files: [file, NOTICES],
  }
}

/**
 * The package's manifest as it is published: it names all platforms. An install elsewhere ends with npm's
 * EBADPLATFORM, which lists those that are supported; `npm install --force` makes a warning of it.
 * @param {Record<string, any>} manifest The checkout's.
 */
export function publishedManifest(manifest) {
  const withoutOwn = (name, value) => (OF_CHECKOUT.test(name) ? undefined : value)
  const copied = JSON.parse(JSON.stringify(manifest, withoutOwn))
  const kept = Object.entries(copied).filter(([field]) => !CHECKOUT_ONLY.includes(field))
  const platforms = PLATFORMS.map(({ triple }) => platformManifest(triple, manifest))
  const [os, cpu] = ['os', 'cpu'].map((field) => [...new Set(platforms.flatMap((each) => each[field]))])
  const optionalDependencies = Object.fromEntries(platforms.map(({ name, version }) => [name, version]))
  return { ...Object.fromEntries(kept), ...linksTo(repository()), os, cpu, optionalDependencies }
}

function stagePackage(stages, manifest) {
  const stage = join(stages, manifest.name)
  const bundle = filesBelow(inRoot('lib'), (path) => BUNDLE.test(path))
  for (const path of bundle) cpSync(path, join(stage, relative(ROOT, path)))
  const files = repository() === '' ? '' : `${repository()}/blob/v${manifest.version}`
  for (const name of DOCUMENTS) {
    const text = withoutMarks(readFileSync(inRoot(name), 'utf8'))
    const isPublished = (path) => DOCUMENTS.includes(path)
    write(join(stage, name), withReachableLinks(text, name, isPublished, files))
  }
  writeJson(join(stage, 'package.json'), publishedManifest(manifest))
  return stage
}

async function stagePlatform(stages, manifest, cores) {
  const stage = join(stages, manifest.name)
  cpSync(join(cores, manifest.main), join(stage, manifest.main))
  const licences = join(cores, noticesFile(manifest.name.split('/')[1]))
  // A core of this machine has them not beside it, and those of its crates alone: std came compiled.
  const text = existsSync(licences) ? readFileSync(licences) : notices(partsOf(await compile()))
  writeFileSync(join(stage, NOTICES), text)
  cpSync(inRoot('LICENSE'), join(stage, 'LICENSE'))
  writeJson(join(stage, 'package.json'), manifest)
  return stage
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function writeJson(path, value) {
  write(path, `${JSON.stringify(value, undefined, 2)}\n`)
}

async function packStage(stage, folder, report) {
  const { program, args } = npm()
  const flags = ['pack', '--json', '--pack-destination', folder]
  await must(`Packing ${basename(stage)}`, program, [...args, ...flags], { cwd: stage })
  const { name, version } = JSON.parse(readFileSync(join(stage, 'package.json'), 'utf8'))
  const tarball = join(folder, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`)
  report(`pack: ${name}, ${kilobytes([tarball])}, unpacked ${kilobytes(filesBelow(stage))}`)
  return tarball
}

function kilobytes(paths) {
  const bytes = paths.reduce((sum, path) => sum + statSync(path).size, 0)
  return `${(bytes / 1000).toFixed(0)} kB`
}
