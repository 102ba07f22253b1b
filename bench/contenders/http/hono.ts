/**
 * The same hono app for every server that runs one.
 *
 * Made as hono's own documentation makes it; no middleware.
 */
import { Hono } from 'hono'
import { HELLO, streamed, userOf, work } from './responses.ts'

export function honoApp(): Hono {
  const app = new Hono()
  app.get('/', (c) => c.text(HELLO))
  app.get('/user/:id', (c) => c.json(userOf(c.req.param('id'))))
  app.post('/echo', async (c) => c.json(await c.req.json()))
  app.get('/constant', (c) => c.text(HELLO))
  app.get('/work', (c) => c.text(work()))
  app.get('/streamed', (c) => c.body(streamed()))
  return app
}
