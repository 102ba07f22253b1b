/**
 * Why the native core did not load.
 *
 * Each sentence names the missing file or package: the last line of a log shows what to install.
 */
import { CorespunError, type Sentences } from '../base/index.ts'

/** Where this process runs, in the words of npm. */
export interface Host {
  /** `process.platform`. */
  readonly platform: string
  /** `process.arch`. */
  readonly arch: string
  /** The C library on Linux; '' elsewhere. */
  readonly libc: 'glibc' | 'musl' | ''
}

/** The codes of {@link NativeError} with the facts of each. */
export interface NativeCodes {
  /** No core for this platform was installed; `package` would have it. A checkout compiles its own. */
  NATIVE_PLATFORM_MISSING: Host & {
    readonly package: string
    readonly isCheckout: boolean
    /** A core for this platform is published. */
    readonly isSupported: boolean
  }
  /** A core was found at `path` and the system refused to load it; see `cause`. */
  NATIVE_LOAD_FAILED: {
    readonly path: string
    readonly reason: string
    /** The runtime, such as `Deno 2.9.6`, if it is not Node. */
    readonly runtime: string | undefined
  }
  /** A bundler has moved the modules of the package: `file` is not its package.json. */
  NATIVE_BUNDLED: { readonly file: string }
  /** The native core has no HTTP server on this platform or runtime. */
  NATIVE_HTTP_MISSING: { readonly platform: string }
  /** The program has detached the memory through which this thread calls the core. */
  NATIVE_DETACHED: object
  /** Another evaluation of the package, or another copy, uses stores or locks in this thread. */
  NATIVE_SECOND_COPY: object
  /** The core at `path` belongs to another version of Corespun. */
  NATIVE_VERSION_MISMATCH: { readonly path: string; readonly expected: string; readonly found: string }
}

/** Where published cores run. */
const PLATFORMS =
  'Linux on x64 and arm64 (glibc 2.28 or newer, or musl), macOS 11 or newer on x64 and arm64, ' +
  'and Windows on x64'
/** What needs no core. */
const WITHOUT =
  'the function serve of corespun/http runs on node:http, and fibers and arrows run without zones'

const SENTENCES: Sentences<NativeCodes> = {
  NATIVE_PLATFORM_MISSING: (facts) =>
    `corespun has no native core for ${platformOf(facts)}: ` +
    (facts.isCheckout
      ? 'this checkout has not compiled it. Run `npm run build`, or `npm start`, in the checkout.'
      : facts.isSupported
        ? `the package ${facts.package}, which contains it, is not installed. ` +
          'Install on this platform, without --omit=optional, and leave corespun external in a bundler.'
        : `it is published for ${PLATFORMS}. Elsewhere ${WITHOUT}` +
          // A system without a file of its own in crates/*/platform.rs does not compile.
          (facts.platform === 'linux'
            ? '; or compile a checkout and name its .node file in CORESPUN_NATIVE_PATH.'
            : '.')),
  NATIVE_LOAD_FAILED: (facts) =>
    `corespun could not load its native core ${facts.path}: ${facts.reason}; ` +
    (facts.runtime !== undefined
      ? `it needs functions of Node that ${facts.runtime} lacks. Without it ${WITHOUT}; ` +
        'run the rest with Node'
      : facts.reason.includes('loading addons is disabled')
        ? 'start node with --allow-addons, and without --no-addons'
        : `it needs ${PLATFORMS}, and an intact installation. Without it ${WITHOUT}`),
  NATIVE_BUNDLED: ({ file }) =>
    'the modules of corespun are in a bundle, without the files that they load: ' +
    `${file || 'its package.json'} is not that of the package; ` +
    'leave corespun external (esbuild --external:corespun, rollup and vite ' +
    "external: ['corespun'], webpack externals), and install it where the bundle runs",
  NATIVE_HTTP_MISSING: (facts) =>
    `the native core has no HTTP server on ${facts.platform}; leave \`core\` out, or set it to 'node'`,
  NATIVE_DETACHED: () =>
    'the program has detached the memory that this thread shares with the native core: ' +
    'it replaces a method of Uint8Array or Buffer and transfers the buffers that it sees; ' +
    'transfer only buffers that the program has made',
  NATIVE_SECOND_COPY: () =>
    'another copy of corespun, or another evaluation of it, uses stores or locks in this thread, and ' +
    'only one can: install one copy, and run each test file in a process or a thread of its own',
  NATIVE_VERSION_MISMATCH: (facts) =>
    `corespun ${facts.expected} found a native core of version ${facts.found} at ${facts.path}: ` +
    'remove node_modules and install again, so that both come from one release.',
}

function platformOf(host: Host): string {
  return [host.platform, host.arch, host.libc].filter((part) => part !== '').join(' ')
}

/** The native core could not be loaded. */
export class NativeError<Code extends keyof NativeCodes = keyof NativeCodes> extends CorespunError<
  NativeCodes,
  Code
> {
  /** @internal */
  static readonly sentences = SENTENCES
}
