/**
 * `npm run release -- 0.2.0`: what is between a checkout and a version in npm's registry.
 *
 *   --dry-run   everything but the last step; then the checkout is as it was
 *   neither     the last step is a commit with the version and the tag v0.2.0, to be pushed
 *   --publish   in that commit: the last step is `npm publish`. .github/workflows/publish.yml runs this
 *
 * Before it: nothing is uncommitted, the packages have an address, CI has passed for this commit or runs,
 * manifests, locks and changelog have the version, and publint, attw and `npm publish --dry-run` accept the
 * packages of all platforms.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { compileCores } from '../cross/main.mjs'
import { pack } from '../pack/main.mjs'
import { inRoot, installCopy, MEMORY, must, npm, ROOT, setUp, Stop } from '../set-up/index.mjs'
import { hasPassed, runTests } from '../test/main.mjs'

const toolFile = (...path) => join(MEMORY, 'release', 'node_modules', ...path)

/**
 * Make a release.
 * @param {string[]} words The version and an option.
 * @param {object} [parts] A test replaces what takes hours.
 * @throws {Stop} With what is missing; the checkout is as it was.
 */
export async function release(words, parts = {}) {
  const { root = ROOT, ci = passCi, cores = compiled, report = console.error } = parts
  const options = { 'dry-run': { type: 'boolean' }, publish: { type: 'boolean' } }
  const { values, positionals } = parseArgs({ args: words, options, allowPositionals: true })
  const version = positionals[0] ?? ''
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    throw new Stop('which version? npm run release -- 0.2.0 [--dry-run | --publish]')
  const git = async (...args) => (await must('A command of git', 'git', args, { cwd: root })).trim()
  await checkCommit(git, `v${version}`, values.publish)
  const changes = changesFor(root, version)
  const changed = changes.map(({ name }) => name).join(', ')
  if (values.publish && changed !== '') throw new Stop(`${changed}: not those of ${version}`)
  await ci(await git('rev-parse', 'HEAD'))
  const write = (which) => changes.forEach((each) => writeFileSync(join(root, each.name), each[which]))
  let isReleased = false
  try {
    write('text')
    const [main, ...platforms] = await pack(join(MEMORY, 'packed'), await cores(report), report)
    const tarballs = [...platforms, main] // The last one names the others at its version.
    await checkTarballs(tarballs)
    await publish(tarballs, version, ['--dry-run'], report)
    if (values.publish) await publish(tarballs, version, ['--provenance'], report)
    isReleased = values['dry-run'] !== true
  } finally {
    if (!isReleased) write('old')
  }
  if (!isReleased) report(`release: ${version} is ready; this was a dry run`)
  else if (!values.publish) {
    await git('commit', '--all', '--message', `Release ${version}`)
    await git('tag', '--annotate', `v${version}`, '--message', version)
    report(`release: git push --follow-tags, then publish a release of v${version}`)
  }
  return 0
}

async function checkCommit(git, tag, isPublishing) {
  const changes = await git('status', '--porcelain')
  if (changes !== '') throw new Stop(`${changes}\nA release is made of a commit: commit this before.`)
  const tagged = await git('tag', '--points-at', 'HEAD', '--list', tag)
  if (isPublishing && tagged === '') throw new Stop(`This commit has no tag ${tag}.`)
  if (!isPublishing && (await git('tag', '--list', tag)) !== '') throw new Stop(`The tag ${tag} exists.`)
  process.env.CORESPUN_REPOSITORY ??= addressIn(await git('remote', '-v'))
  if (!/^https:\/\/[^/]+\/[^/]+\/[^/]+$/.test(process.env.CORESPUN_REPOSITORY))
    throw new Stop(
      'The packages would have no repository, homepage and bugs: set CORESPUN_REPOSITORY to the address of ' +
        'the repository, such as https://github.com/owner/name, or make it the remote "origin".',
    )
}

/** Where the repository is shown. @param {string} remotes As of `git remote -v`. */
export function addressIn(remotes) {
  const address = /^origin\s+(?:https:\/\/|(?:ssh:\/\/)?git@)([^/:\s]+)[/:](\S+?)(?:\.git)?\s/m.exec(remotes)
  return address === null ? '' : `https://${address[1]}/${address[2]}`
}

/** What each file that has the version becomes. */
const VERSIONED = {
  'package.json': (text, version) => text.replace(/^ {2}"version": ".*"/m, `  "version": "${version}"`),
  'package-lock.json': (text, version) => {
    const lock = JSON.parse(text)
    lock.version = lock.packages[''].version = version
    return `${JSON.stringify(lock, undefined, 2)}\n`
  },
  'Cargo.toml': (text, version) => text.replace(/(\[workspace\.package\]\nversion = )".*"/, `$1"${version}"`),
  'Cargo.lock': (text, version) => text.replace(/(name = "corespun-\w+"\nversion = )".*"/g, `$1"${version}"`),
  'README.md': (text) => text.replace(/ This version[^.]* not in npm's registry yet:[^.]*\./, ''),
  'CHANGELOG.md': (text, version) => {
    const heading = new RegExp(`^## (Unreleased: )?${version.replaceAll('.', '\\.')}( \\(.*\\))?$`, 'm')
    if (!heading.test(text)) throw new Stop(`CHANGELOG.md has no heading "## Unreleased: ${version}".`)
    return text.replace(heading, (line, isNew) =>
      isNew ? `## ${version} (${new Date().toISOString().slice(0, 10)})` : line,
    )
  },
}

function changesFor(root, version) {
  const all = Object.entries(VERSIONED).map(([name, change]) => {
    const old = readFileSync(join(root, name), 'utf8')
    return { name, old, text: change(old, version) }
  })
  return all.filter(({ old, text }) => old !== text)
}

async function passCi(commit) {
  if (!hasPassed(commit) && (await runTests(['--all'])) !== 0) throw new Stop('CI does not pass.')
}

/** Of all platforms, with the version that is now in the manifests. */
async function compiled(report) {
  await setUp({ report })
  return compileCores(report)
}

/** Read tarballs as the tools of packages and of types do. @throws {Stop} With what a tool has found. */
export async function checkTarballs(tarballs) {
  await installCopy('publint and attw', inRoot('scripts', 'release'), join(MEMORY, 'release'))
  const node = (tool, ...args) => must(`Reading ${resolve(args[0])}`, process.execPath, [tool, ...args])
  for (const tarball of tarballs) {
    await node(toolFile('publint', 'src', 'cli.js'), tarball, '--strict')
    if (/corespun-\d[^/\\]*$/.test(tarball))
      await node(toolFile('@arethetypeswrong', 'cli', 'dist', 'index.js'), tarball, '--profile', 'esm-only')
  }
}

async function publish(tarballs, version, flags, report) {
  const { program, args } = npm()
  const tag = version.includes('-') ? 'next' : 'latest'
  const all = [...args, 'publish', '--access', 'public', '--tag', tag, ...flags]
  for (const tarball of tarballs) {
    const output = await must('Publishing', program, [...all, tarball])
    report(`release: ${/^\+ .*/m.exec(output)?.[0] ?? tarball} ${flags.join(' ')}`)
  }
}
