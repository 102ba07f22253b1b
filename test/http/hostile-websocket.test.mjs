/**
 * Hostile clients of WebSockets. The demands on the server are in hostile-check.mjs.
 *
 * The normal client beside them sends requests.
 */
import { attacks } from './attacks/websocket.mjs'
import { check } from './hostile-check.mjs'

for (const attack of attacks) check({ ...attack, name: `WebSocket: ${attack.name}` })
