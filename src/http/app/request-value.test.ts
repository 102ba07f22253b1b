/**
 * Values of a request: set by middleware, read by handlers and by middleware around it.
 *
 * One request never sees the value of another.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApp, type Middleware, requestValue, route, use } from '../index.ts'

const user = requestValue<string>('user')
const authenticate: Middleware = (request, next) => {
  const name = request.headers.get('x-user')
  if (name !== null) user.set(request, name)
  return next()
}
const seen: (string | undefined)[] = []
const audit: Middleware = async (request, next) => {
  const response = await next()
  seen.push(user.find(request))
  return response
}

test('handlers and outer middleware see the value of their request alone', async () => {
  const errors: unknown[] = []
  const routes = {
    '/me': (request: Request) => user.get(request),
    '/contract': route({}, async ({ request }) => Promise.resolve(user.get(request))),
  }
  const app = createApp({
    routes: use(routes, audit, authenticate),
    error: (error) => void errors.push(error),
  })
  const names = ['Ada', 'Grace', 'Mary']
  const texts = await Promise.all(
    names.flatMap((name) =>
      ['/me', '/contract'].map(async (path) =>
        (await app.inject(path, { headers: { 'x-user': name } })).text(),
      ),
    ),
  )
  assert.deepEqual(
    texts,
    names.flatMap((name) => [name, name]),
  )
  assert.deepEqual(seen.sort(), texts)
  assert.equal((await app.inject('/me')).status, 500)
  assert.match(`${errors[0]}`, /no value of user for this request/)
  assert.throws(() => requestValue(7 as never), { code: 'HTTP_ARGUMENT' })
})
