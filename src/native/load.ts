/**
 * Finds and loads the .node file of this process.
 *
 * In order: the file that CORESPUN_NATIVE_PATH names; dist/native of the checkout, where `npm run build` puts
 * it; the package of this platform (`@corespun/linux-x64-gnu`, ...), where an install puts it. The first that
 * exists is the one that is used: a broken one is an error, never a reason to try the next, because then two
 * processes of one program could run on different cores. Nothing is compiled or downloaded here.
 */
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs'
import { resolve, toNamespacedPath } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messageOf, otherRuntime } from '../base/index.ts'
import { type Host, NativeError } from './errors.ts'

/** Platforms that a core is published for; scripts/cross/platforms.mjs compiles them. */
export const SUPPORTED: readonly string[] = [
  'linux-x64-gnu',
  'linux-arm64-gnu',
  'linux-x64-musl',
  'linux-arm64-musl',
  'darwin-x64',
  'darwin-arm64',
  'win32-x64',
]

/** What loading depends on; tests replace it. */
export interface LoadContext {
  readonly host: Host
  /** The version of the JavaScript side. */
  readonly version: string
  /** CORESPUN_NATIVE_PATH; '' when not set. */
  readonly override: string
  /** The runtime, if it is not Node. */
  readonly runtime: string | undefined
  /** Folder of the checkout's own core. */
  readonly folder: string
  /** Whether this is a checkout, which compiles its own core, or an installed package. */
  readonly isCheckout: boolean
  exists(path: string): boolean
  /** Path of a file inside an installed package; `undefined` when it is not installed. */
  resolve(request: string): string | undefined
  load(path: string): unknown
}

/**
 * Load the core of this process.
 * @throws {NativeError} `NATIVE_BUNDLED`, `NATIVE_PLATFORM_MISSING`, `NATIVE_LOAD_FAILED` or
 * `NATIVE_VERSION_MISMATCH`.
 */
export function loadBinding(context: LoadContext = currentContext()): unknown {
  const path = findCore(context)
  const binding = loadFrom(path, context)
  const found = versionOf(binding)
  if (found !== context.version) {
    throw new NativeError('NATIVE_VERSION_MISMATCH', { path, expected: context.version, found })
  }
  return binding
}

/** The platform in names of files and packages: `linux-x64-gnu`, `darwin-arm64`. */
export function tripleOf(host: Host): string {
  const ending = host.platform !== 'linux' ? '' : host.libc === 'musl' ? '-musl' : '-gnu'
  return `${host.platform}-${host.arch}${ending}`
}

/** The platform of this process. */
export function currentHost(): Host {
  const { platform, arch } = process
  return { platform, arch, libc: platform === 'linux' ? currentLibc() : '' }
}

/** An executable names the loader of its C library behind its first headers. */
const HEAD_BYTES = 4096

/** Read from the head of Node's file; `process.report`, the fallback, takes three to eight milliseconds. */
function currentLibc(): 'glibc' | 'musl' {
  try {
    const loader = /\/ld-(musl|linux)[^/\0]*\.so/.exec(headOf(process.execPath))
    if (loader !== null) return loader[1] === 'musl' ? 'musl' : 'glibc'
  } catch {
    // The program may not read the file: use the report.
  }
  const report = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } }
  return report.header.glibcVersionRuntime === undefined ? 'musl' : 'glibc'
}

function headOf(path: string): string {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.alloc(HEAD_BYTES)
    return head.toString('latin1', 0, readSync(file, head))
  } finally {
    closeSync(file)
  }
}

function findCore(context: LoadContext): string {
  if (context.override !== '') return context.override
  const triple = tripleOf(context.host)
  const file = `corespun.${triple}.node`
  const own = context.folder + file
  if (context.exists(own)) return own
  const installed = context.resolve(`@corespun/${triple}/${file}`)
  if (installed !== undefined) return installed
  const { host, isCheckout } = context
  throw new NativeError('NATIVE_PLATFORM_MISSING', {
    ...host,
    package: `@corespun/${triple}`,
    isCheckout,
    isSupported: SUPPORTED.includes(triple),
  })
}

function loadFrom(path: string, context: LoadContext): unknown {
  try {
    return context.load(path)
  } catch (cause) {
    // The message has the path.
    const reason = messageOf(cause).replace(`\n  path: ${path}`, '').replace(`${path}: `, '')
    const facts = { path, reason, runtime: context.runtime }
    throw new NativeError('NATIVE_LOAD_FAILED', facts, { cause })
  }
}

/** The core has a function `version`; without one its version is unknown. */
function versionOf(binding: unknown): string {
  const version = (binding as { version?: unknown } | null | undefined)?.version
  return typeof version === 'function' ? String((version as () => unknown)()) : 'unknown'
}

/**
 * Load the library at `path`, and make the functions of one bridge. A test runner evaluates the package once
 * more in the same thread for each file; every evaluation gets functions, and so a bridge, of its own.
 * @throws {Error} of the dynamic linker.
 */
export function loadLibrary(path: string): unknown {
  // Not `require`: the first one of a thread starts Node's CommonJS loader, which takes milliseconds.
  const module = { exports: {} }
  process.dlopen(module, toNamespacedPath(resolve(path)))
  return module.exports
}

function currentContext(): LoadContext {
  return {
    host: currentHost(),
    version: ownVersion(),
    override: process.env['CORESPUN_NATIVE_PATH'] ?? '',
    runtime: otherRuntime(),
    folder: fileURLToPath(new URL('./', import.meta.url)),
    isCheckout: existsSync(new URL('../../Cargo.toml', import.meta.url)),
    exists: existsSync,
    resolve: (request) => installedBeside(request) ?? resolveOrNot(request),
    load: loadLibrary,
  }
}

/** @throws {NativeError} `NATIVE_BUNDLED` when this is not the package any more. */
function ownVersion(): string {
  let file = ''
  try {
    file = fileURLToPath(new URL('../../package.json', import.meta.url))
    // Read as text, for the same reason as the library.
    const { name, version } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
    if (name === 'corespun' && version !== undefined) return version
  } catch {
    // No such file, or no URL: modules were made CommonJS.
  }
  throw new NativeError('NATIVE_BUNDLED', { file })
}

/** Where npm, pnpm and Yarn put a package's dependencies; looked up without Node's CommonJS loader. */
function installedBeside(request: string): string | undefined {
  const folders = ['../../node_modules/', '../../../']
  const paths = folders.map((folder) => fileURLToPath(new URL(folder + request, import.meta.url)))
  return paths.find((path) => existsSync(path))
}

function resolveOrNot(request: string): string | undefined {
  try {
    return process
      .getBuiltinModule('node:module')
      .createRequire(import.meta.url)
      .resolve(request)
  } catch {
    return undefined
  }
}
