/**
 * The same express app on node:http and on Corespun.
 *
 * Made as express's own documentation makes it; no middleware but its parser of JSON.
 */
import express from 'express'
import { HELLO, userOf } from './responses.ts'

export function expressApp(): express.Express {
  const app = express()
  app.get('/', (_request, response) => response.type('text').send(HELLO))
  app.get('/user/:id', (request, response) => response.json(userOf(request.params.id)))
  app.post('/echo', express.json(), (request, response) => response.json(request.body))
  return app
}
