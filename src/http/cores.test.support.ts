/**
 * Runs a test on a server: on the native core, or on the adapter for node:http too.
 *
 * What belongs to the app (routes, requests, responses, errors) is tested on both. What a connection accepts,
 * waits for and refuses belongs to the native core; for the adapter it is whatever node:http does. On Windows
 * there is the adapter alone.
 */
import { test, type TestContext } from 'node:test'
import { serve } from './serve.ts'
import type { HttpServer } from './server.ts'
import type { ServeOptions } from './app/settings.ts'

type CoreName = 'native' | 'node'

/** Starts a server on any port of the loopback. */
export type Start = <Pattern extends string>(settings: ServeOptions<Pattern>) => Promise<HttpServer>

type Body = (start: Start, core: CoreName, t: TestContext) => Promise<void>

/** A test on each core; servers that it started are stopped after it. CORESPUN_HTTP_CORE chooses one core. */
export function onCores(name: string, body: Body): void {
  for (const core of ['native', 'node'] as const) {
    if ((process.env.CORESPUN_HTTP_CORE ?? core) === core) on(core, name, body)
  }
}

/** A test on the native core; servers that it started are stopped after it. */
export function onServer(name: string, body: Body): void {
  on('native', name, body)
}

function on(core: CoreName, name: string, body: Body): void {
  test(`${name} (${core})`, { skip: core === 'native' && process.platform === 'win32' }, async (t) => {
    const servers: HttpServer[] = []
    const start: Start = async (settings) => {
      const server = await serve({
        quiet: true,
        host: '127.0.0.1',
        port: 0,
        core,
        error: () => undefined,
        ...settings,
      })
      servers.push(server)
      return server
    }
    try {
      await body(start, core, t)
    } finally {
      await Promise.all(servers.map((server) => server.close({ timeoutMs: 100 })))
    }
  })
}
