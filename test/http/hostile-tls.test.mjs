/**
 * Hostile clients of a server with TLS. The demands on the server are in hostile-check.mjs.
 *
 * The normal client beside them uses TLS as well.
 */
import { makeCertificate } from '../../dist/http/tls/make.js'
import { attacks } from './attacks/tls.mjs'
import { check } from './hostile-check.mjs'

const CERTIFICATE = makeCertificate({ name: 'localhost', hosts: ['localhost'] })

for (const attack of attacks) check(attack, CERTIFICATE)
