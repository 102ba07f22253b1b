/**
 * `node server.js <contender>`: imports a server, serves one route on a free port and prints the URL.
 *
 * Servers are imported on demand, so that each process loads one.
 */
const TEXT = 'hello'

const SERVERS: Readonly<Record<string, () => Promise<string>>> = {
  'corespun/http': async () => {
    const { serve } = await import('corespun/http')
    return (await serve({ port: 0, quiet: true, routes: { '/': () => TEXT } })).url
  },
  'node:http': async () => {
    const { createServer } = await import('node:http')
    const server = createServer((_, response) => void response.end(TEXT))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as { port: number }).port}`
  },
  fastify: async () => {
    const { fastify } = await import('fastify')
    return fastify()
      .get('/', () => TEXT)
      .listen({ port: 0, host: '127.0.0.1' })
  },
}

console.log(await SERVERS[process.argv[2]]())
