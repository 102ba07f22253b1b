/**
 * The door of every command: `node scripts/run.mjs <command> [words]`, which package.json has by name.
 *
 *   build                   only the set-up, with the core as users get it. Also npm's `prepack`, so a
 *                           tarball is never packed from a stale dist; it speaks on standard error
 *   start [words]           serves examples/service on all cores; words go to `corespun serve`
 *   test                    what must hold before a change is done: the steps check, rust and suite
 *   test suite zone         only test files with "zone" in their path, slow ones too, all of each
 *   test slow nodes         two steps
 *   test --all [--list]     what CI runs: all steps but those that the table leaves out; the table
 *   check [types tidy]      everything that can be checked without running the code, or these of it
 *   check-long [miri fuzz]  what takes hours (.github/workflows/long.yml), or steps with one of these words
 *                           in their name; `--list` prints them
 *   tidy [src/zone]         only scripts/tidy, of these files, in a second: it needs nothing installed
 *   format [src/zone]       oxfmt   for these files, or all; rustfmt
 *   package [folder]        the tarballs as users get them, in .set-up/packed or that folder; prints their
 *                           paths, the package first. `--all` has the cores of all platforms, and is what is
 *                           published; without it the core is that of this machine
 *   release 0.2.0 [option]  a version, from its commit to the registry (scripts/release): `--dry-run` first
 *   docs                    guides and API reference as HTML pages in site/
 */
import { onSupportedNode } from './set-up/node-version.mjs'

const COMMANDS = {
  build: async () => 0,
  start: async (words) => (await import('./start/main.mjs')).serveExample(words),
  test: async (words) => (await import('./test/main.mjs')).runTests(words),
  check: async (words) => (await import('./check/main.mjs')).runChecks(words),
  'check-long': async (words) => (await import('./long/main.mjs')).runLong(words),
  tidy: async (words) => console.log(await (await import('./tidy/main.mjs')).tidy(words)),
  format: async (words) => (await import('./check/main.mjs')).formatted(words),
  package: async (words) => (await import('./pack/main.mjs')).packAsAsked(words),
  release: async (words) => (await import('./release/main.mjs')).release(words),
  docs: async () => (await import('./docs/main.mjs')).writeDocs(),
}
/** Used while code is being written, which may not compile; so is `test --list`. */
const WITHOUT_SET_UP = ['tidy', 'format']
/** Their core is compiled in half the time, and is slower. All others have what users get. */
const IN_DEVELOPMENT = ['start', 'test', 'check']

onSupportedNode(async function () {
  const [command, ...words] = process.argv.slice(2)
  const { setUp, Stop } = await import('./set-up/index.mjs')
  if (!Object.hasOwn(COMMANDS, command)) throw new Stop(`expected ${Object.keys(COMMANDS).join(', ')}`)
  if (IN_DEVELOPMENT.includes(command) && !words.includes('--all'))
    process.env.CORESPUN_PROFILE ??= 'development'
  const isList = command === 'test' && words.includes('--list')
  if (!isList && !WITHOUT_SET_UP.includes(command)) await setUp()
  return COMMANDS[command](words)
})
