/**
 * Runs the same test on every core there is.
 *
 * Nothing here knows a core but by its name.
 */
import { existsSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { serve } from './serve.ts'
import type { HttpServer } from './server.ts'
import type { ServeSettings } from './settings.ts'

const hasNative = existsSync(new URL('./native-core.js', import.meta.url))

/** Names of the cores that are tested; SKEIN_HTTP_CORE chooses one. */
export const CORES = (['node', ...(hasNative ? ['native' as const] : [])] as const).filter(
  (name) => (process.env.SKEIN_HTTP_CORE ?? name) === name,
)

/** Start a server on any port of the loopback. */
export type Start = <Pattern extends string>(settings: ServeSettings<Pattern>) => Promise<HttpServer>

/** A test on each core; servers that it started are stopped behind it. */
export function onCores(
  name: string,
  body: (start: Start, core: 'native' | 'node', t: TestContext) => Promise<void>,
): void {
  for (const core of CORES) {
    test(`${name} (${core})`, async (t) => {
      const servers: HttpServer[] = []
      const start: Start = async (settings) => {
        const server = await serve({ host: '127.0.0.1', port: 0, core, error: () => undefined, ...settings })
        servers.push(server)
        return server
      }
      try {
        await body(start, core, t)
      } finally {
        await Promise.all(servers.map((server) => server.stop({ drainMs: 100 })))
      }
    })
  }
}
