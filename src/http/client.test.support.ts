/**
 * The client of WebSockets for tests of other modules.
 *
 * They import no folder of this one.
 */
export { RawClient } from './websocket/client.test.support.ts'
