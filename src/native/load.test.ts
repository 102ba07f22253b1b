/**
 * The loader against made-up platforms and folders, then against this one.
 *
 * Nothing here needs a compiled core except the last test, which reports when it is missing.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import type { Binding } from './binding.ts'
import { type Host, NativeError } from './errors.ts'
import { currentHost, loadBinding, type LoadContext, SUPPORTED, tripleOf } from './load.ts'

const GNU: Host = { platform: 'linux', arch: 'x64', libc: 'glibc' }

interface Scene {
  host?: Host
  override?: string
  /** Path to the result of loading it; an Error is thrown. */
  files?: Record<string, unknown>
  /** Request to path. */
  packages?: Record<string, string>
  isCheckout?: boolean
  runtime?: string
}

function contextOf(scene: Scene): LoadContext {
  const { host = GNU, override = '', files = {}, packages = {}, isCheckout = false, runtime } = scene
  return {
    host,
    version: '1.2.3',
    override,
    runtime,
    folder: '/dist/native/',
    isCheckout,
    exists: (path) => path in files,
    resolve: (request) => packages[request],
    load(path) {
      const found = files[path] ?? new Error(`${path}: cannot open shared object file`)
      if (found instanceof Error) throw found
      return found
    },
  }
}

const core = (version = '1.2.3') => ({ version: () => version })

/** Which file is loaded, by identity of what it holds. */
function finds(scene: Scene, path: string): void {
  assert.equal(loadBinding(contextOf(scene)), scene.files?.[path])
}

function refuses(scene: Scene, code: string, words: RegExp): NativeError {
  let caught: unknown
  try {
    loadBinding(contextOf(scene))
  } catch (error) {
    caught = error
  }
  assert.ok(caught instanceof NativeError)
  assert.equal(caught.code, code)
  assert.match(caught.message, words)
  return caught
}

const OWN = '/dist/native/corespun.linux-x64-gnu.node'
const INSTALLED = '/m/@corespun/linux-x64-gnu/corespun.linux-x64-gnu.node'
const PACKAGES = { '@corespun/linux-x64-gnu/corespun.linux-x64-gnu.node': INSTALLED }

test('the named file goes before the checkout, the checkout before the package', () => {
  const files = { '/x.node': core(), [OWN]: core(), [INSTALLED]: core() }
  finds({ files, packages: PACKAGES, override: '/x.node' }, '/x.node')
  finds({ files, packages: PACKAGES }, OWN)
  finds({ files: { [INSTALLED]: files[INSTALLED] }, packages: PACKAGES }, INSTALLED)
})

test('a file that is there and broken is an error with the cause, not a reason to try the next', () => {
  const broken = new Error('invalid ELF header')
  const files = { [OWN]: broken, [INSTALLED]: core() }
  const error = refuses(
    { files, packages: PACKAGES },
    'NATIVE_LOAD_FAILED',
    /linux-x64-gnu\.node: invalid ELF/,
  )
  assert.equal(error.cause, broken)
  refuses({ files, override: '/missing.node' }, 'NATIVE_LOAD_FAILED', /\/missing\.node/)
})

test('in another runtime the error of a core that does not load names it, and what works', () => {
  const files = { [OWN]: new Error(`${OWN}: undefined symbol: uv_prepare_init\n  path: ${OWN}`) }
  const words =
    /uv_prepare_init; it needs functions of Node that Deno 2\.9\.6 lacks\. Without it the function serve/
  const { message } = refuses({ files, runtime: 'Deno 2.9.6' }, 'NATIVE_LOAD_FAILED', words)
  assert.equal(message.split(OWN).length, 2, 'the path occurs once')
})

test('a core of another version, or of none, is refused by name', () => {
  refuses(
    { files: { [OWN]: core('1.2.4') } },
    'NATIVE_VERSION_MISMATCH',
    /corespun 1\.2\.3 .*version 1\.2\.4/,
  )
  refuses({ files: { [OWN]: {} } }, 'NATIVE_VERSION_MISMATCH', /version unknown/)
})

test('a missing platform is named with the package that would have it, or with those that have one', () => {
  const hosts: [Host, string, RegExp][] = [
    [GNU, '@corespun/linux-x64-gnu', /linux x64 glibc/],
    [{ platform: 'linux', arch: 'arm64', libc: 'musl' }, '@corespun/linux-arm64-musl', /linux arm64 musl/],
    [{ platform: 'darwin', arch: 'arm64', libc: '' }, '@corespun/darwin-arm64', /darwin arm64:/],
    [{ platform: 'win32', arch: 'x64', libc: '' }, '@corespun/win32-x64', /win32 x64:/],
    [{ platform: 'win32', arch: 'arm64', libc: '' }, '@corespun/win32-arm64', /win32 arm64:/],
    [{ platform: 'freebsd', arch: 'x64', libc: '' }, '@corespun/freebsd-x64', /freebsd x64:/],
    [
      { platform: 'linux', arch: 'riscv64', libc: 'glibc' },
      '@corespun/linux-riscv64-gnu',
      /linux riscv64 glibc:/,
    ],
  ]
  for (const [host, name, words] of hosts) {
    const error = refuses({ host }, 'NATIVE_PLATFORM_MISSING', words)
    const isSupported = SUPPORTED.includes(tripleOf(host))
    assert.deepEqual(error.facts, { ...host, package: name, isCheckout: false, isSupported })
    if (isSupported) assert.match(error.message, new RegExp(`package ${name}.* --omit=optional.* bundler`))
    else {
      assert.match(
        error.message,
        /for Linux .*glibc 2\.28 .*musl.*macOS 11 .*Windows on x64\. Elsewhere the function serve of/,
      )
      assert.doesNotMatch(error.message, /Install|package/, 'no advice that cannot help')
      // The core has code for Linux on every processor; on another system it does not compile.
      assert.equal(/compile a checkout/.test(error.message), host.platform === 'linux')
    }
  }
})

test('the error of a checkout without its core explains how to compile it', () => {
  const { message } = refuses({ isCheckout: true }, 'NATIVE_PLATFORM_MISSING', /npm run build.*npm start/)
  assert.doesNotMatch(message, /@corespun\/linux-x64-gnu/)
})

test('the platform of this process is detected', () => {
  const host = currentHost()
  assert.equal(host.platform, process.platform)
  assert.equal(host.libc !== '', process.platform === 'linux')
  if (process.platform !== 'linux') return
  const report = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } }
  assert.equal(host.libc, report.header.glibcVersionRuntime === undefined ? 'musl' : 'glibc')
})

test('the core of this checkout loads, and once more with functions of its own', (context) => {
  const folder = fileURLToPath(new URL('./', import.meta.url))
  const built = existsSync(folder) && readdirSync(folder).includes(`corespun.${tripleOf(currentHost())}.node`)
  if (!built) return context.skip('no native core has been compiled')
  const [one, other] = [loadBinding(), loadBinding()] as [Binding, Binding]
  assert.equal(one.version(), other.version())
  assert.notEqual(one.submit, other.submit)
  assert.equal(one.otherInstance(), undefined, 'both are of one library')
})

test('the table of the functions of the core keeps fast properties', async (context) => {
  const { native } = await import('./index.ts').catch(() => ({ native: undefined }))
  if (native === undefined) return context.skip('no native core has been compiled')
  setFlagsFromString('--allow-natives-syntax')
  const isFast = new Function('object', 'return %HasFastProperties(object)') as (object: object) => boolean
  setFlagsFromString('--no-allow-natives-syntax')
  // The check itself can fail: a property that was deleted from the middle makes a dictionary.
  const slow: { a?: number; b: number; c: number } = { a: 1, b: 2, c: 3 }
  delete slow.a
  assert.equal(isFast(slow), false)
  assert.ok(isFast(native), `${Object.keys(native).length} functions are in dictionary mode`)
})
