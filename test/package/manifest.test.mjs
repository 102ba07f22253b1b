/**
 * The published manifests; the tarballs themselves are installed by test/package.
 *
 * Platforms that cannot be built here are checked by their manifest alone.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { SUPPORTED } from '../../dist/native/load.js'
import { PLATFORMS } from '../../scripts/cross/platforms.mjs'
import { inRoot } from '../../scripts/set-up/index.mjs'
import { withoutMarks, withReachableLinks } from '../../scripts/pack/documents.mjs'
import { linksTo, platformManifest, publishedManifest } from '../../scripts/pack/main.mjs'

const manifest = JSON.parse(readFileSync(inRoot('package.json'), 'utf8'))

test("a platform's package installs where its core runs, and nowhere else", () => {
  const cases = [
    ['linux-x64-gnu', { os: ['linux'], cpu: ['x64'], libc: ['glibc'] }],
    ['linux-arm64-musl', { os: ['linux'], cpu: ['arm64'], libc: ['musl'] }],
    ['darwin-arm64', { os: ['darwin'], cpu: ['arm64'], libc: undefined }],
    ['win32-x64', { os: ['win32'], cpu: ['x64'], libc: undefined }],
  ]
  for (const [triple, expected] of cases) {
    const { name, version, main, files, os, cpu, libc } = platformManifest(triple, manifest)
    assert.deepEqual({ os, cpu, libc }, expected)
    assert.deepEqual([name, version], [`@corespun/${triple}`, manifest.version])
    assert.deepEqual([main, files], [`corespun.${triple}.node`, [main, 'THIRD-PARTY-NOTICES.txt']])
  }
})

test('the published manifest keeps what users need and names the platforms at its own version', () => {
  const published = publishedManifest(manifest)
  const names = PLATFORMS.map(({ triple }) => [`@corespun/${triple}`, manifest.version])
  assert.deepEqual(published.optionalDependencies, Object.fromEntries(names))
  for (const field of ['name', 'version', 'bin', 'engines', 'license', 'dependencies', 'type', 'keywords']) {
    assert.deepEqual(published[field], manifest[field], field)
  }
  for (const field of ['scripts', 'devDependencies', 'workspaces']) assert.ok(!(field in published), field)
  assert.deepEqual(Object.keys(published.exports), Object.keys(manifest.exports))
  for (const [door, { types, default: bundled }] of Object.entries(published.exports)) {
    if (door === './package.json') continue
    // dist has no modules when published.
    assert.deepEqual(published.exports[door], { types, default: bundled })
    assert.equal(manifest.exports[door].default, bundled)
  }
})

test('one variable makes all links of all manifests, and the workflow that publishes sets it', () => {
  const address = 'https://github.com/owner/name'
  process.env['CORESPUN_REPOSITORY'] = address
  const made = [publishedManifest(manifest), platformManifest('linux-x64-gnu', manifest)]
  delete process.env['CORESPUN_REPOSITORY']
  for (const { homepage, bugs, repository } of made)
    assert.deepEqual({ homepage, bugs, repository }, linksTo(address))
  assert.equal(publishedManifest(manifest).repository, undefined)
  const workflow = readFileSync(inRoot('.github', 'workflows', 'publish.yml'), 'utf8')
  const variable = 'CORESPUN_REPOSITORY: ${{ github.server_url }}/${{ github.repository }}\n'
  assert.ok(workflow.includes(variable))
  assert.deepEqual(linksTo(''), {})
  assert.deepEqual(linksTo('https://github.com/owner/name'), {
    homepage: 'https://github.com/owner/name#readme',
    bugs: { url: 'https://github.com/owner/name/issues' },
    repository: { type: 'git', url: 'git+https://github.com/owner/name.git' },
  })
})

test('the checkout names no platform package: a lock file cannot hold what was never published', () => {
  assert.equal(manifest.optionalDependencies, undefined)
})

test('the loader looks for the platforms that are packed, and npm refuses the others by name', () => {
  const triples = PLATFORMS.map(({ triple }) => triple)
  assert.deepEqual(SUPPORTED, triples)
  const { os, cpu } = publishedManifest(manifest)
  for (const triple of SUPPORTED) {
    const [platform, arch] = triple.split('-')
    assert.ok(os.includes(platform) && cpu.includes(arch), triple)
  }
  assert.ok(!os.includes('freebsd') && !cpu.includes('riscv64'))
})

test('numbers lose the marks that name their records', () => {
  const row = '| 1.5 s <!-- record: a-node24.json#rows.1.m --> | 2 s <!-- record: b.json#c --> <!-- d --> |'
  assert.equal(withoutMarks(row), '| 1.5 s | 2 s <!-- d --> |')
})

test('a link to a document that is not published leads to the repository, or is its words', () => {
  const unchanged = '[D](d.md) [E](https://e/e.md) [F](#f) `g[h](i)`'
  const text = `[A](../a.md) [B](../design/b.md#c) ${unchanged}![I](../i.svg)`
  const isPublished = (path) => ['docs/a.md', 'docs/guide/d.md'].includes(path)
  const links = (files) => withReachableLinks(text, 'docs/guide/x.md', isPublished, files)
  assert.equal(links(''), `[A](../a.md) B ${unchanged}`)
  const shown = `${unchanged}![I](https://r/v1/docs/i.svg?raw=true)`
  assert.equal(links('https://r/v1'), `[A](../a.md) [B](https://r/v1/docs/design/b.md#c) ${shown}`)
})
