/**
 * Bun's server, for the http table: `bun.js <bun | hono on bun> <port>`, run by Bun itself.
 *
 * Routes are Bun's own, with its constant responses, as its documentation recommends.
 */
import { FOLDER, generated, HELLO, streamed, userOf, work } from './responses.ts'
import { honoApp } from './hono.ts'

declare const Bun: { serve(options: Record<string, unknown>): unknown; file(path: string): Blob }

const [name, port] = [process.argv[2], Number(process.argv[3])]
const address = { port, hostname: '127.0.0.1' }

if (name === 'hono on bun') Bun.serve({ ...address, fetch: honoApp().fetch })
else {
  Bun.serve({
    ...address,
    routes: {
      '/': () => new Response(HELLO),
      '/user/:id': (request: { params: { id: string } }) => Response.json(userOf(request.params.id)),
      '/echo': async (request: Request) => Response.json(await request.json()),
      '/constant': new Response(HELLO),
      '/work': () => new Response(work()),
      '/file.txt': () => new Response(Bun.file(`${FOLDER}/file.txt`)),
      '/generated': () => new Response(generated()),
      '/streamed': () => new Response(streamed()),
    },
  })
}
