/**
 * The entries of a completed lock for packages that npm left out.
 *
 * The names are spelled as real packages spell them: each project has its own way to name a platform.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { completed, platformOf } from './complete.mjs'

test('a name contains its platform', () => {
  const cases = [
    ['@a/b-linux-x64-gnu', { os: ['linux'], cpu: ['x64'], libc: ['glibc'] }],
    ['@a/b-linux-x64-musl', { os: ['linux'], cpu: ['x64'], libc: ['musl'] }],
    ['@a/b-linux-arm-gnueabihf', { os: ['linux'], cpu: ['arm'], libc: ['glibc'] }],
    ['@a/b-linux-arm-musleabihf', { os: ['linux'], cpu: ['arm'], libc: ['musl'] }],
    ['@a/b-darwin-arm64', { os: ['darwin'], cpu: ['arm64'] }],
    ['@a/b-win32-ia32-msvc', { os: ['win32'], cpu: ['ia32'] }],
    ['@a/win32-arm64', { os: ['win32'], cpu: ['arm64'] }],
    ['@a/b-android-arm-eabi', { os: ['android'], cpu: ['arm'] }],
    ['@a/b-openharmony-arm64', { os: ['openharmony'], cpu: ['arm64'] }],
    ['@a/b-wasm32-wasi', { cpu: ['wasm32'] }],
    ['fsevents', undefined],
  ]
  for (const [name, expected] of cases) assert.deepEqual(platformOf(name), expected, name)
})

test('only what is missing is added, at the version its parent names', () => {
  const packages = {
    'node_modules/a': {
      dev: true,
      optionalDependencies: { 'a-darwin-x64': '1.2.3', 'a-linux-x64-gnu': '1.2.3' },
    },
    'node_modules/a-linux-x64-gnu': { version: '1.2.3', integrity: 'x' },
  }
  const { packages: all, added } = completed(packages)
  assert.deepEqual(added, ['node_modules/a-darwin-x64'])
  const expected = { version: '1.2.3', cpu: ['x64'], dev: true, optional: true, os: ['darwin'] }
  assert.deepEqual(all['node_modules/a-darwin-x64'], expected)
  assert.equal(all['node_modules/a-linux-x64-gnu'], packages['node_modules/a-linux-x64-gnu'])
  assert.deepEqual(completed(all).added, [])
})

test('a missing package that belongs to no platform is an error', () => {
  const packages = { 'node_modules/a': { optionalDependencies: { fsevents: '1.0.0' } } }
  assert.throws(() => completed(packages), /lacks node_modules\/fsevents@1\.0\.0/)
})
