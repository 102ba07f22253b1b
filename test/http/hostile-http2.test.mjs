/**
 * Hostile clients that speak HTTP/2. The demands on the server are in hostile-check.mjs.
 *
 * The normal client beside them uses HTTP/1.1.
 */
import { attacks } from './attacks/http2.mjs'
import { check } from './hostile-check.mjs'

for (const attack of attacks) check({ ...attack, name: `HTTP/2: ${attack.name}` })
