/**
 * An express app on Corespun's server, as it is, beside a route that has moved and a WebSocket.
 *
 * `corespun serve` takes a module that exports the app; here it is part of a program that ends by itself.
 */
import assert from 'node:assert/strict'
import { nodeHandler, serve } from 'corespun/http'
import express from 'express'

const app = express()
app.use(express.json({ limit: '1mb' }))
app.get('/user/:id', (req, res) => res.json({ id: req.params.id, secure: req.secure }))
app.post('/sum', (req, res) => res.send(String(req.body.reduce((sum, one) => sum + one, 0))))
app.get('/count', async (req, res) => {
  for (let count = 1; count <= 3; count += 1) res.write(`${count}\n`)
  res.end()
})

const server = await serve({
  port: 0,
  quiet: true,
  routes: {
    '/health': 'ok',
    '/live': { websocket: { message: (socket, text) => void socket.send(`echo: ${text}`) } },
  },
  fetch: nodeHandler(app),
})

const get = async (path, init) => (await fetch(server.url + path, init)).text()
assert.equal(await get('/health'), 'ok')
assert.equal(await get('/user/7'), '{"id":"7","secure":false}')
const headers = { 'content-type': 'application/json' }
assert.equal(await get('/sum', { method: 'POST', headers, body: '[1,2,3]' }), '6')
assert.equal(await get('/count'), '1\n2\n3\n')
assert.equal((await fetch(`${server.url}/nowhere`)).status, 404)
await server.close()
