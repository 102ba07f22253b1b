/**
 * The certificate of `corespun serve --dev-tls`: for this machine's own names, signed by itself.
 *
 * It is kept in the user's cache and used until a day before its end, so that a browser has to be asked
 * to accept it once. Nothing but this command uses it.
 */
import { X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type Made, makeCertificate } from './make.ts'

const NAME = 'corespun development'
const HOSTS = ['localhost', '*.localhost', '127.0.0.1', '::1']
const DAY_MS = 86_400_000

/** The pair for development, made unless one lasts for another day. */
export function developmentTls(folder = cacheFolder(), now = Date.now()): Made {
  const path = join(folder, 'dev-tls.pem')
  const kept = read(path)
  if (kept !== undefined && kept.endsMs > now + DAY_MS) return { cert: kept.cert, key: kept.key }
  const made = makeCertificate({ name: NAME, hosts: HOSTS, to: new Date(now + 90 * DAY_MS) })
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const own = `${path}.${process.pid}`
    writeFileSync(own, made.cert + made.key, { mode: 0o600 })
    renameSync(own, path)
  } catch {
    // A folder that cannot be written: this run has a certificate of its own.
  }
  return made
}

function read(path: string): (Made & { readonly endsMs: number }) | undefined {
  try {
    const text = readFileSync(path, 'utf8')
    const at = text.indexOf('-----BEGIN PRIVATE KEY-----')
    const [cert, key] = [text.slice(0, at), text.slice(at)]
    return { cert, key, endsMs: Date.parse(new X509Certificate(cert).validTo) }
  } catch {
    return undefined // none yet, or none that can be used
  }
}

function cacheFolder(): string {
  return join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'corespun')
}
