/**
 * Which packages of other platforms a lock file lacks, and the entries that it needs for them.
 *
 * Such a package is recognized by its name: `…-<os>-<cpu>[-<abi>]`. It gets no checksum, because the entry
 * that made the lock could not look it up; npm still fetches the exact version on that platform and nothing
 * elsewhere.
 */

const OS = 'android|darwin|freebsd|linux|openbsd|openharmony|netbsd|sunos|win32|aix'
const CPU = 'arm64|arm|ia32|x64|ppc64|riscv64|s390x|loong64|mips64el'
const PLATFORM = new RegExp(`[-/](?:(?<os>${OS})-(?<cpu>${CPU})(?:-(?<abi>[a-z]+))?|(?<wasm>wasm32)-.*)$`)

/**
 * The os, cpu and libc of a platform's package.
 * @param {string} name
 * @returns {{os?: string[], cpu: string[], libc?: string[]} | undefined} Undefined if it has no platform.
 */
export function platformOf(name) {
  const found = PLATFORM.exec(name)?.groups
  if (found === undefined) return undefined
  if (found.wasm !== undefined) return { cpu: ['wasm32'] }
  const libc = found.os === 'linux' ? libcOf(found.abi) : undefined
  return { os: [found.os], cpu: [found.cpu], ...(libc === undefined ? {} : { libc }) }
}

function libcOf(abi = '') {
  if (abi.startsWith('musl')) return ['musl']
  return abi.startsWith('gnu') ? ['glibc'] : undefined
}

/**
 * Optional packages that a lock names and does not describe.
 * @param {Record<string, any>} packages The lock's `packages`.
 * @returns {{path: string, version: string, dev: boolean}[]}
 */
export function missingOptional(packages) {
  return Object.entries(packages).flatMap(([parent, { optionalDependencies = {}, dev = false }]) =>
    Object.entries(optionalDependencies)
      .filter(([name]) => !isDescribed(packages, parent, name))
      .map(([name, version]) => ({ path: `node_modules/${name}`, version, dev })),
  )
}

function isDescribed(packages, parent, name) {
  return `${parent}/node_modules/${name}` in packages || `node_modules/${name}` in packages
}

/**
 * The lock's packages with what was missing, in npm's order.
 * @param {Record<string, any>} packages
 * @throws {Error} If the name of a missing package has no platform: it may not be left out.
 */
export function completed(packages) {
  const missing = missingOptional(packages).map(({ path, version, dev }) => {
    const platform = platformOf(path)
    if (platform === undefined || !/^\d/.test(version))
      throw new Error(`package-lock.json lacks ${path}@${version}`)
    const { os, cpu, libc } = platform
    return [
      path,
      {
        version,
        cpu,
        ...(dev ? { dev } : {}),
        ...(libc ? { libc } : {}),
        optional: true,
        ...(os ? { os } : {}),
      },
    ]
  })
  const all = [...Object.entries(packages), ...missing]
  all.sort(([left], [right]) => left.localeCompare(right, 'en'))
  return { packages: Object.fromEntries(all), added: missing.map(([path]) => path) }
}
