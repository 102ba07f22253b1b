/**
 * The entry for HttpArena: all cores at 8080, with TLS also HTTP/1.1 alone at 8081 and HTTP/2 at 8443.
 *
 * The certificate is mounted for the profiles that need it. Dockerfile runs this file as it is.
 */
import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import { serve } from 'corespun/http'
import { zone } from 'corespun/zone'

const workers = zone.create('arena', {})
const settings = {
  zone: workers,
  app: new URL(`app${extname(import.meta.url)}`, import.meta.url),
  host: '0.0.0.0',
  quiet: true,
  limits: { bodyBytesMax: 64 * 2 ** 20 },
}
await serve({ ...settings, port: 8080 })
const [cert, key] = ['/certs/server.crt', '/certs/server.key']
if (existsSync(cert) && existsSync(key)) {
  await serve({ ...settings, port: 8081, tls: { cert, key, alpn: ['http/1.1'] } })
  await serve({ ...settings, port: 8443, tls: { cert, key } })
}
