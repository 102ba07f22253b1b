/**
 * A release up to its last step, in a repository that has the files with the version.
 *
 * Two parts are not real: CI, which would run this test, has passed, and of the cores there is the one of
 * this machine. So the tarballs are those of the checkout, at its version; publint, attw and
 * `npm publish --dry-run` read them.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { addressIn, checkTarballs, release } from '../../scripts/release/main.mjs'
import { inRoot, must, npm } from '../../scripts/set-up/index.mjs'

const folder = mkdtempSync(join(tmpdir(), 'corespun-release-'))
after(() => rmSync(folder, { recursive: true }))
const FILES = ['package.json', 'package-lock.json', 'Cargo.toml', 'Cargo.lock', 'README.md', 'CHANGELOG.md']
const ADDRESS = 'https://github.com/owner/name'
const USER = ['-c', 'user.name=A', '-c', 'user.email=a@a']

function git(root, ...args) {
  const { status, stdout, stderr } = spawnSync('git', [...USER, ...args], { cwd: root, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout.trim()
}

/** A repository whose changelog has an unreleased 9.8.7. */
function repository(name) {
  const root = join(folder, name)
  mkdirSync(root)
  for (const file of FILES) copyFileSync(inRoot(file), join(root, file))
  const changelog = readFileSync(inRoot('CHANGELOG.md'), 'utf8')
  writeFileSync(join(root, 'CHANGELOG.md'), changelog.replace(/^## .*$/m, '## Unreleased: 9.8.7'))
  git(root, 'init', '--quiet')
  for (const [key, value] of [
    ['user.name', 'A'],
    ['user.email', 'a@a'],
  ])
    git(root, 'config', key, value)
  git(root, 'add', '.')
  git(root, 'commit', '--quiet', '--message', 'all')
  return root
}

/** Release in a repository. @returns {Promise<string[]>} What is reported. */
async function released(root, words, address = ADDRESS) {
  const lines = []
  delete process.env['CORESPUN_REPOSITORY']
  if (address !== undefined) process.env['CORESPUN_REPOSITORY'] = address
  try {
    const parts = {
      root,
      ci: async () => {},
      cores: async () => undefined,
      report: (line) => lines.push(line),
    }
    assert.equal(await release(words, parts), 0)
  } finally {
    delete process.env['CORESPUN_REPOSITORY']
  }
  return lines
}

test('a dry run packs, reads and offers the packages, and leaves the repository as it was', async () => {
  const root = repository('dry')
  const lines = await released(root, ['9.8.7', '--dry-run'])
  const published = lines.flatMap(
    (line) => /^release: \+ (\S+)@\S+ (.*)$/.exec(line)?.slice(1, 3).join() ?? [],
  )
  assert.match(published.join(' '), /^@corespun\/[\w-]+,--dry-run corespun,--dry-run$/)
  assert.equal(lines.at(-1), 'release: 9.8.7 is ready; this was a dry run')
  assert.deepEqual([git(root, 'status', '--porcelain'), git(root, 'tag')], ['', ''])
})

test('a release is a commit with the version in every manifest and lock, and a tag', async () => {
  const root = repository('real')
  const lines = await released(root, ['9.8.7'])
  assert.match(lines.at(-1), /git push --follow-tags/)
  assert.deepEqual(
    [git(root, 'status', '--porcelain'), git(root, 'tag', '--points-at', 'HEAD')],
    ['', 'v9.8.7'],
  )
  const texts = FILES.map((name) => readFileSync(join(root, name), 'utf8'))
  const [manifest, lock, cargo, cargoLock, readme, changelog] = texts
  const locked = JSON.parse(lock)
  assert.equal(JSON.parse(manifest).version, '9.8.7')
  assert.deepEqual([locked.version, locked.packages[''].version], ['9.8.7', '9.8.7'])
  assert.match(cargo, /^version = "9\.8\.7"$/m)
  assert.equal(cargoLock.match(/name = "corespun-\w+"\nversion = "9\.8\.7"/g).length, 5)
  assert.ok(!readme.includes('not in npm'))
  assert.match(changelog, /^## 9\.8\.7 \(\d{4}-\d\d-\d\d\)$/m)
  const changed = git(root, 'diff', '--stat', 'HEAD~1').split('\n').length - 1
  assert.equal(changed, FILES.length)
  await assert.rejects(released(root, ['9.8.7']), /^Stop: The tag v9\.8\.7 exists\./)
})

test('what is missing is one sentence, and nothing is written', async () => {
  const root = repository('not')
  const refused = async (words, sentence, address) => {
    await assert.rejects(released(root, words, address), { name: 'Stop', message: sentence })
  }
  await refused([], /^which version\?/)
  await refused(['0.2'], /^which version\?/)
  await refused(['9.8.7', '--publish'], /^This commit has no tag v9\.8\.7\.$/)
  await refused(['9.8.6', '--dry-run'], /^CHANGELOG\.md has no heading "## Unreleased: 9\.8\.6"\.$/)
  await refused(['9.8.7', '--dry-run'], /no repository, homepage and bugs: set CORESPUN_REPOSITORY/, '')
  git(root, 'tag', 'v9.8.7')
  await refused(['9.8.7', '--publish'], /^package\.json, .*CHANGELOG\.md: not those of 9\.8\.7$/)
  assert.equal(git(root, 'status', '--porcelain'), '')
  writeFileSync(join(root, 'README.md'), '')
  await refused(['9.8.7', '--dry-run'], /README\.md\nA release is made of a commit/)
})

test('the address of the remote is that of the packages', () => {
  const shown = (url) =>
    addressIn(`other\thttps://a/b/c (fetch)\norigin\t${url} (fetch)\norigin\t${url} (push)`)
  for (const url of ['https://github.com/owner/name', 'https://github.com/owner/name.git'])
    assert.equal(shown(url), ADDRESS)
  for (const url of ['git@github.com:owner/name.git', 'ssh://git@github.com/owner/name.git'])
    assert.equal(shown(url), ADDRESS)
  for (const url of ['/srv/name', '../name', 'file:///srv/name']) assert.equal(shown(url), '')
})

test('a package with a door to nowhere, or with false types, is found', async () => {
  const tarballOf = async (name, door, files) => {
    const root = join(folder, name)
    mkdirSync(root)
    const manifest = { name: 'corespun', version: '1.0.0', type: 'module', exports: { '.': door } }
    writeFileSync(join(root, 'package.json'), JSON.stringify(manifest))
    for (const [path, text] of Object.entries(files)) writeFileSync(join(root, path), text)
    const { program, args } = npm()
    await must('Packing', program, [...args, 'pack', '--pack-destination', root], { cwd: root })
    return join(root, 'corespun-1.0.0.tgz')
  }
  const code = { 'a.js': 'export const a = 1\n' }
  const types = { 'a.d.ts': 'export declare const a: number\n' }
  const good = { types: './a.d.ts', default: './a.js' }
  await checkTarballs([await tarballOf('good', good, { ...code, ...types })])
  const nowhere = await tarballOf('nowhere', { ...good, default: './b.js' }, { ...code, ...types })
  await assert.rejects(checkTarballs([nowhere]), /b\.js/)
  const commonjs = { 'a.d.cts': types['a.d.ts'] }
  const masked = await tarballOf('masked', { ...good, types: './a.d.cts' }, { ...code, ...commonjs })
  await assert.rejects(checkTarballs([masked]), /Masquerading as CJS/)
})
