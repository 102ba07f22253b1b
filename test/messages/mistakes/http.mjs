/**
 * Mistakes with the HTTP server: options, routes, what handlers return, middleware, streams.
 *
 * What a handler does wrong is thrown as the error handler of the app receives it.
 */
import { generateKeyPairSync } from 'node:crypto'
import { serve, zone } from 'corespun'
import {
  bodyLimit,
  cors,
  createApp,
  developmentTls,
  events,
  files,
  ndjson,
  rateLimit,
  Response as OwnResponse,
  StatusError,
  timeout,
  use,
  withMiddleware,
} from 'corespun/http'

const work = zone.create('http', { workers: 1 })
const other = await serve({ quiet: true, port: 0, routes: { '/': 'x' } })

export const close = () => Promise.all([work.close(), other.close()])

const route = { '/': 'x' }
const app = (routes) => createApp({ routes })
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, QUERY'

/** Sends a request to `/a`, and throws what the error handler received. */
async function handled(value, init, options = {}) {
  let thrown
  const error = (cause) => {
    thrown = cause
    return new Response('failed', { status: 500 })
  }
  const routes = typeof value === 'function' ? { '/a': value } : value
  const response = await createApp({ routes, error, ...options }).inject('/a', init)
  const text = await response.text().catch((cause) => (thrown ??= cause))
  if (thrown !== undefined) throw thrown
  return `${response.status} ${text}`
}

const NO_CONTENT = 'for an empty response return new Response(null, { status: 204 })'
const RETURN = 'must return a Response, a string, bytes, a stream or a JSON value'

/** @type {import('../check.mjs').Mistake[]} */
export const mistakes = [
  {
    mistake: 'nothing to serve',
    make: async () => await serve({ port: 0 }),
    code: 'HTTP_ARGUMENT',
    message: '{{where|serve()}} {{remedy|needs}} {{what|`routes` or `fetch`}}',
    state: 'the option is absent',
  },
  {
    mistake: 'a misspelt option of the server',
    make: async () => await serve({ routs: route }),
    code: 'HTTP_ARGUMENT',
    message: '{{where|serve()}}: unknown option {{what+received|"routs"}}; {{remedy|did you mean "routes"?}}',
  },
  {
    mistake: 'the option of Bun and Deno',
    make: async () => await serve({ routes: route, hostname: 'localhost' }),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|serve()}}: unknown option {{what+received|"hostname"}}; {{remedy|did you mean "host"?}}',
  },
  {
    mistake: 'a misspelt limit',
    make: async () => await serve({ routes: route, limits: { maxBodyBytes: 5 } }),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|serve()}}: unknown option {{what+received|"limits.maxBodyBytes"}}; {{remedy|did you ' +
      'mean "bodyBytesMax"?}}',
  },
  {
    mistake: 'a limit with a unit',
    make: async () => await serve({ routes: route, limits: { bodyBytesMax: '1mb' } }),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|serve()}}: {{what|limits.bodyBytesMax}} {{remedy|must be an integer from 0 to ' +
      '1099511627776}}; ' +
      'received {{received|"1mb"}}',
  },
  {
    mistake: 'a port from an environment variable',
    make: async () => await serve({ routes: route, port: '3000' }),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|serve()}}: {{what|port}} {{remedy|must be an integer from 0 to 65535}}; received ' +
      '{{received|"3000"}}',
  },
  {
    mistake: 'a port instead of the options',
    make: async () => await serve(3000),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|serve()}}: {{what|options}} {{remedy|must be an object, as in serve({ routes, port ' +
      '})}}; received {{received|3000}}',
  },
  {
    mistake: 'a handler instead of the options, as for node:http',
    make: async () => await serve(() => 'x'),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|serve()}}: {{what|options}} {{remedy|must be an object, as in serve({ routes, port })}}; ' +
      'received {{received|an anonymous function}}',
  },
  {
    mistake: 'a port that is taken',
    make: async () => await serve({ routes: route, port: other.port }),
    code: 'HTTP_PORT_TAKEN',
    message:
      '{{what|address already in use}}: {{where+received|127.0.0.1:<n>}}; ' +
      '{{remedy|stop the other server, or pass another port (0 selects a free one)}}',
  },
  {
    mistake: 'an address of another machine',
    make: async () => await serve({ routes: route, host: '192.0.2.1', port: 0 }),
    code: 'HTTP_LISTEN',
    message:
      'cannot {{what|listen}} on {{where+received|192.0.2.1:0}}: <any>EADDRNOTAVAIL<any>; ' +
      '{{remedy|pass a host that is an address of this machine}}',
  },
  {
    mistake: 'a certificate that is not there',
    make: async () => await serve({ routes: route, tls: { cert: 'missing.pem', key: 'missing.key' } }),
    code: 'HTTP_TLS_UNREADABLE',
    message:
      'cannot {{what|read}} {{where+received|tls.cert (<any>missing.pem)}}: ENOENT<any>; ' +
      '{{remedy|pass the path of a file that this user may read, or its PEM text}}',
  },
  {
    mistake: 'a key in place of a certificate',
    make: async () => await serve({ routes: route, tls: { cert: Buffer.from('x'), key: Buffer.from('x') } }),
    code: 'HTTP_TLS_CERTIFICATE',
    message:
      '{{where|tls.cert}} is not a usable {{what|certificate}}: ' +
      '{{received|it contains no PEM CERTIFICATE}}; ' +
      '{{remedy|pass PEM: the certificate of the server, then those that lead to its authority}}',
  },
  {
    mistake: 'the key of another certificate',
    make: async () => {
      const { cert } = await developmentTls()
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const key = privateKey.export({ type: 'pkcs8', format: 'pem' })
      await serve({ routes: route, tls: { cert, key } })
    },
    code: 'HTTP_TLS_KEY',
    message:
      '{{where|tls.key}} is not a usable {{what|private key}}: ' +
      '{{received|it is not the key of the certificate tls.cert (CN=corespun development)}}; ' +
      '{{remedy|pass the PEM key (RSA, ECDSA on P-256 or P-384, Ed25519) that the certificate was made for}}',
  },
  {
    mistake: 'routes beside a zone',
    make: async () => await serve({ zone: work, routes: route }),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|serve()}}: {{what|routes}} cannot be combined with zone: {{remedy|export it from the ' +
      'app module}}; ' +
      'received {{received|a plain object}}',
  },
  {
    mistake: 'a relative path of an app',
    make: async () => await serve({ zone: work, app: './app.js' }),
    code: 'HTTP_ARGUMENT',
    message:
      "{{where|serve()}}: {{what|app}} {{remedy|must be new URL('./app.js', import.meta.url), or " +
      'an absolute path}}; ' +
      'received {{received|"./app.js"}}',
  },
  {
    mistake: 'an app module that exports no app',
    make: async () =>
      await serve({ zone: work, port: 0, app: new URL('./helpers/no-app.mjs', import.meta.url) }),
    code: 'HTTP_APP',
    message:
      'the app {{where|<any>no-app.mjs}}: {{what|default export is not an app}}: {{remedy|export ' +
      '`routes`, `fetch`, a function (request) => Response, or an app for (req, res)}}; ' +
      'it exports {{received|x}}',
  },
  {
    mistake: 'an error handler that is not a function',
    make: () => createApp({ routes: route, error: 'x' }),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|createApp()}}: {{what|error}} {{remedy|must be a function (cause, request)}}; received ' +
      '{{received|"x"}}',
  },
  {
    mistake: 'routes in an array',
    make: () => app([['/a', 'x']]),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|createApp()}}: {{what|routes}} {{remedy|must be an object of patterns}}; received ' +
      '{{received|an array of 1}}',
  },
  {
    mistake: 'a route without its slash',
    make: () => app({ a: () => 'x' }),
    code: 'HTTP_ROUTE',
    message: "invalid {{what|route}} {{where+received|'a'}}: {{remedy|it must begin with '/'}}",
  },
  {
    mistake: 'the method in the pattern, as in other routers',
    make: () => app({ 'GET /a': () => 'x' }),
    code: 'HTTP_ROUTE',
    message:
      "invalid {{what|route}} {{where+received|'GET /a'}}: it must begin with '/'; " +
      "{{remedy|methods are a table: { '/a': { GET: handler } }}}",
  },
  {
    mistake: 'a parameter without a name',
    make: () => app({ '/a/:': () => 'x' }),
    code: 'HTTP_ROUTE',
    message: "invalid {{what|route}} {{where+received|'/a/:'}}: {{remedy|missing parameter name after ':'}}",
  },
  {
    mistake: 'a hyphen in the name of a parameter',
    make: () => app({ '/a/:user-id': () => 'x' }),
    code: 'HTTP_ROUTE',
    message:
      "invalid {{what|route}} {{where|'/a/:user-id'}}: invalid parameter name {{received|'user-id'}}; " +
      '{{remedy|letters, digits and _, not a digit first}}',
  },
  {
    mistake: 'a parameter in braces, as in OpenAPI',
    make: () => app({ '/a/{id}': () => 'x' }),
    code: 'HTTP_ROUTE',
    message:
      "invalid {{what|route}} {{where+received|'/a/{id}'}}: a path has no ? # \\ { } ( ) [ ] +; " +
      '{{remedy|names are written :name, the rest *}}',
  },
  {
    mistake: 'one name for two parameters',
    make: () => app({ '/:id/:id': () => 'x' }),
    code: 'HTTP_ROUTE',
    message:
      "invalid {{what|route}} {{where|'/:id/:id'}}: it names {{received|'id'}} twice; {{remedy|use two " +
      'names}}',
  },
  {
    mistake: 'a star in the middle',
    make: () => app({ '/a/*/b': () => 'x' }),
    code: 'HTTP_ROUTE',
    message:
      "invalid {{what|route}} {{where+received|'/a/*/b'}}: {{remedy|a * can only be its last segment}}",
  },
  {
    mistake: 'two routes for the same requests',
    make: () => app({ '/u/:id': () => 1, '/u/:name': () => 2 }),
    code: 'HTTP_ROUTE_CONFLICT',
    message:
      "the {{what|routes}} {{where+received|'/u/:name' and '/u/:id'}} match the same requests; " +
      '{{remedy|remove one, or put their methods in one table}}',
  },
  {
    mistake: 'a method in lower case',
    make: () => app({ '/a': { get: () => 'x' } }),
    code: 'HTTP_ARGUMENT',
    message:
      "{{where|routes['/a']}} must be {{what|a table of methods}}; " +
      '{{remedy|method names are upper case: GET instead of get}}; received {{received|a plain object}}',
  },
  {
    mistake: 'a method that does not exist',
    make: () => app({ '/a': { GTE: () => 'x' } }),
    code: 'HTTP_ARGUMENT',
    message:
      `{{where|routes['/a']}} must be {{what|a table of methods}} ({{remedy|${METHODS}}}), which ` +
      'GTE is not; ' +
      'received {{received|a plain object}}',
  },
  {
    mistake: 'a handler that is undefined, as of a misspelt import',
    make: () => app({ '/a': undefined }),
    code: 'HTTP_ARGUMENT',
    message:
      "{{where+what|routes['/a']}} {{remedy|must be a handler or a constant}}; received " +
      '{{received|undefined}}',
  },
  {
    mistake: 'a promise as a route',
    make: () => app({ '/a': Promise.resolve('x') }),
    code: 'HTTP_ARGUMENT',
    message:
      "{{where+what|routes['/a']}} must be {{remedy|a handler, an arrow, an app with fetch(), a " +
      'Response, a string, ' +
      `bytes, a JSON value, or these by method (${METHODS})}}; received {{received|a Promise}}`,
  },
  {
    mistake: 'a BigInt in a constant',
    make: () => app({ '/a': { ids: [1n] } }),
    code: 'HTTP_ARGUMENT',
    message:
      "{{where+what|routes['/a']}} {{remedy|must be a JSON-serializable value}}; received " +
      '{{received|a BigInt at ids[0]}}',
  },
  {
    mistake: 'a handler that returns nothing',
    make: async () => await handled(() => {}),
    code: 'HTTP_RESPONSE',
    message:
      `{{what|the handler}} of {{where|GET /a}} ${RETURN}; received {{received|undefined}}; ` +
      `{{remedy|${NO_CONTENT}}}`,
  },
  {
    mistake: 'an asynchronous handler that returns nothing',
    make: async () => await handled(async () => {}),
    code: 'HTTP_RESPONSE',
    message:
      `{{what|the handler}} of {{where|GET /a}} ${RETURN}; received {{received|undefined}}; ` +
      `{{remedy|${NO_CONTENT}}}`,
  },
  {
    mistake: 'a handler that returns a Map',
    make: async () => await handled(() => new Map([[1, 2]])),
    code: 'HTTP_RESPONSE',
    message:
      `{{what|the handler}} of {{where|/a}} {{remedy|${RETURN}}}; received {{received|a Map}}, which has ` +
      'no enumerable properties to serialize',
  },
  {
    mistake: 'a BigInt in a response',
    make: async () => await handled(() => ({ items: [{ id: 1 }, { id: 2n }] })),
    code: 'HTTP_RESPONSE',
    message:
      '{{what|the handler}} of {{where|/a}} must return {{remedy|a JSON-serializable value}}; received ' +
      '{{received|a BigInt at items[1].id}}',
  },
  {
    mistake: 'a cycle in a response',
    make: async () => {
      const node = { next: {} }
      node.next.back = node
      await handled(() => node)
    },
    code: 'HTTP_RESPONSE',
    message:
      '{{what|the handler}} of {{where|/a}} must return {{remedy|a JSON-serializable value}}; received ' +
      '{{received|a circular reference at next.back}}',
  },
  {
    mistake: 'the body that is read twice',
    make: async () =>
      await handled(
        async (request) => {
          await request.text()
          return request.json()
        },
        { method: 'POST', body: '{}' },
      ),
    message: '{{what|Request}}: the body has been {{remedy|read already}}',
    state: 'whether the body was read',
  },
  {
    mistake: 'a header with a line break',
    make: async () => await handled(() => new OwnResponse('x', { headers: { title: 'a\r\nb' } })),
    message: '{{what|Headers}}: {{received|"a\\r\\nb"}} {{remedy|is an invalid value for the header}} title',
  },
  {
    mistake: 'a status that does not exist',
    make: async () => await handled(() => new OwnResponse('x', { status: 999 })),
    message: 'Response: {{what|status}} {{remedy|must be from 200 to 599}}; received {{received|999}}',
  },
  {
    mistake: 'a status in a string for StatusError',
    make: () => new StatusError('404'),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|new StatusError()}}: {{what|status}} {{remedy|must be an integer from 400 to 599}}; ' +
      'received {{received|"404"}}',
  },
  {
    mistake: 'middleware that does not return',
    make: async () =>
      await handled(
        use({ '/a': 'x' }, async function auth(_, next) {
          await next()
        }),
      ),
    code: 'HTTP_RESPONSE',
    message:
      '{{what|middleware 1 (auth)}} of {{where|GET /a}} must return a response, {{remedy|as in `return ' +
      'next()`}}; ' +
      'received {{received|undefined}}',
  },
  {
    mistake: 'a handler without a value inside middleware',
    make: async () => await handled(use({ '/a': () => {} }, cors())),
    code: 'HTTP_RESPONSE',
    message:
      `{{what|the handler}} of {{where|GET /a}} ${RETURN}; received {{received|undefined}}; ` +
      `{{remedy|${NO_CONTENT}}}`,
  },
  {
    mistake: 'a factory of middleware that is not called',
    make: async () => await handled(use({ '/a': 'x' }, cors)),
    code: 'HTTP_RESPONSE',
    message:
      '{{what|middleware 1 (cors)}} of {{where|GET /a}} must return a response; {{remedy|use() takes ' +
      'what a factory ' +
      'returns, as in cors()}}; received {{received|function middleware}}',
  },
  {
    mistake: 'middleware of Express',
    make: () =>
      use({ '/a': 'x' }, function log(req, res, next) {
        next()
      }),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|use()}}: {{what|middleware 1}} {{remedy|must be a function (request, next)}}; ' +
      'received {{received|function log of 3 parameters}}',
  },
  {
    mistake: 'middleware before the routes',
    make: () => use(cors(), { '/a': 'x' }),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|use()}}: {{what|middleware 1}} {{remedy|must be a function (request, next)}}; received ' +
      '{{received|a plain object}}',
  },
  {
    mistake: 'a handler for the routes of use()',
    make: () => use(cors(), () => 'x'),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|use()}}: {{what|routes}} must be {{remedy|an object of patterns; around one handler use ' +
      'withMiddleware(handler, ...middleware)}}; received {{received|function middleware}}',
  },
  {
    mistake: 'middleware before its handler',
    make: () => withMiddleware(cors(), () => 'x'),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|withMiddleware()}}: {{what|the handler}} must be {{remedy|a function (request), before its ' +
      'middleware}}; received {{received|function middleware of 2 parameters}}',
  },
  {
    mistake: 'the option of express-rate-limit',
    make: () => rateLimit({ max: 5 }),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|rateLimit()}}: unknown option {{what+received|"max"}}; ' +
      '{{remedy|the options are requestsMax, windowMs, key, ipv6Bits, name, shared, store, now}}',
  },
  {
    mistake: 'a limit with a unit for bodyLimit',
    make: () => bodyLimit('1mb'),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|bodyLimit()}}: {{what|bodyBytesMax}} {{remedy|must be an integer from 0 to ' +
      '1099511627776}}; received {{received|"1mb"}}',
  },
  {
    mistake: 'timeout without a time',
    make: () => timeout(),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|timeout()}}: {{what|timeoutMs}} {{remedy|must be an integer from 1 to 2147483647}}; ' +
      'received {{received|undefined}}',
  },
  {
    mistake: 'credentials for every origin',
    make: () => cors({ credentials: true }),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|cors()}}: {{what|`credentials: true`}} {{remedy|needs explicit origins}}; received ' +
      '{{received|"*"}}',
  },
  {
    mistake: 'files without a folder',
    make: () => files(),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|files()}}: {{what|folder}} {{remedy|must be a path or a file URL}}; received ' +
      '{{received|undefined}}',
  },
  {
    mistake: 'a folder of files that does not exist',
    make: () => files('/does/not/exist'),
    code: 'HTTP_FILES_FOLDER',
    message:
      '{{where|files()}} cannot serve {{received|/does/not/exist}}: {{what|it does not exist}}; ' +
      '{{remedy|correct the path, or create the folder first}}',
  },
  {
    mistake: 'events from a number',
    make: async () => await handled(() => events(5)),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where+what|the source of events(), ndjson() or chunks()}} {{remedy|must be an iterable, or a ' +
      'function that ' +
      'returns one}}; received {{received|5}}',
  },
  {
    mistake: 'a BigInt in a line',
    make: async () => await handled(() => ndjson([{ id: 1n }])),
    message:
      '{{where|ndjson()}}: {{what|a value}} {{remedy|must be JSON-serializable}}; received ' +
      '{{received|a BigInt at id}}',
  },
  {
    mistake: 'a function in an event',
    make: async () => await handled(() => events([() => 1])),
    message:
      '{{where|events()}}: {{what|data}} {{remedy|must be JSON-serializable}}; received {{received|an ' +
      'anonymous function}}',
  },
  {
    mistake: 'a request for a zone',
    make: async () => await handled((request) => work.run((one) => one.url, request)),
    code: 'HTTP_REQUEST_NOT_TRANSPORTABLE',
    message:
      '{{where|args[0]}} is {{what+received|a request}}, which cannot be sent to another thread: ' +
      '{{remedy|read it first and ' +
      'send the data, as in liftAsync((request) => request.text()).andThen(work.on(zone))}}',
  },
  {
    mistake: 'a request that a sent function captures',
    make: async () => await handled((request) => work.run(() => request.url)),
    code: 'FUNCTION_CAPTURES',
    message:
      'an anonymous function ({{where|<file>:<n>:<n>}}) uses a variable from outside itself, which ' +
      'cannot travel to ' +
      'another thread: {{what+received|request}} (line <n>, column <n>). {{remedy|Pass the value as an ' +
      'argument, or move the function to a module and call <any>}}',
  },
  {
    mistake: 'a content-length that is too large',
    make: async () => {
      const body = () => new Blob(['abc']).stream()
      let thrown
      const error = (cause) => void (thrown = cause)
      const routes = { '/a': () => new Response(body(), { headers: { 'content-length': '10' } }) }
      const server = await serve({ quiet: true, port: 0, routes, error })
      await fetch(`${server.url}/a`)
        .then((response) => response.text())
        .catch(() => {})
      await server.close()
      throw thrown
    },
    code: 'HTTP_RESPONSE_LENGTH',
    message:
      '{{where+what|GET /a}} streamed {{received|3 bytes}}, content-length was 10; response aborted; ' +
      '{{remedy|omit content-length, or correct it}}',
  },
  {
    mistake: 'a time for close without an object around it',
    make: async () => await other.close(5000),
    code: 'HTTP_ARGUMENT',
    message:
      '{{where|server.close()}}: {{what|options}} {{remedy|must be an object}}; received {{received|5000}}',
  },
  {
    mistake: 'an error handler that returns nothing',
    make: async () => {
      const fails = () => {
        throw new Error('x')
      }
      return (await createApp({ routes: { '/a': fails }, error: () => {} }).inject('/a')).status
    },
    observed: 500,
    why: 'an error handler that returns undefined leaves the response to the server: a plain 500',
  },
  {
    mistake: 'a status instead of a response',
    make: () => handled(() => 404),
    observed: '200 404',
    why: 'a number is a JSON value; new Response(null, { status: 404 }) or a StatusError sets the status',
  },
]
