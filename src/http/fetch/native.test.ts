/**
 * Node's `Request`, `Response` and `Headers` are loaded by the first that needs one, and nothing shows that
 * they were not there before. Each test is a program of its own, since a process loads them once. On Node 20
 * and 22 they are loaded at once, and the programs do the same.
 *
 * Where `routes of strings` fails on a new Node, see whether its undici still asks for the dispatcher before
 * it defines the classes, and enter its version in native.ts.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** Whether this Node loads them late. */
const IS_LATE = Number.parseInt(process.versions['undici'] ?? '') >= 7

/** What every program begins with: a server that runs, and a request that loads nothing. */
const SERVER = `
  const net = process.getBuiltinModule('node:net')
  const hasLoaded = () => process.moduleLoadList.some((name) => name.includes('deps/undici/undici'))
  const http = await import('corespun/http')
  const print = (...values) => console.log(JSON.stringify(values))
  const rest = async (path, routes) => {
    const server = await http.serve({ quiet: true, port: 0, routes })
    const socket = net.connect(server.port, '127.0.0.1')
    socket.end('GET ' + path + ' HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n')
    let text = ''
    for await (const chunk of socket) text += chunk
    await server.close()
    return text.split('\\r\\n\\r\\n')[1]
  }`

/** Runs a program of an app; what it prints is its result. */
async function result(before: string, program: string): Promise<unknown> {
  const flags = [...process.execArgv.filter((flag) => flag.startsWith('--conditions')), '--input-type=module']
  const { stdout } = await run(process.execPath, [...flags, '-e', `${before}\n${SERVER}\n${program}`])
  return JSON.parse(stdout) as unknown
}

/** Programs, what they print, and what is done before the server is imported. */
type Program = [name: string, program: string, expected: unknown, before?: string]
const PROGRAMS: readonly Program[] = [
  [
    'routes of strings, JSON and responses of the package load none of them',
    `const seen = []
     for (const value of ['a', { b: 1 }, [2], () => new http.Response('d'), async () => new Date(0),
       (request) => request.url + request.headers.get('host')])
       seen.push(await rest('/', { '/': value }))
     print(seen, hasLoaded())`,
    [['a', '{"b":1}', '[2]', 'd', '"1970-01-01T00:00:00.000Z"', 'http://x/x'], !IS_LATE],
  ],
  [
    'the global Response is that of the package from the second request on that reads it',
    `const seen = []
     const server = await http.serve({ quiet: true, port: 0, routes: { '/': 'x' } })
     const natives = [Response]
     await rest('/', { '/': () => (natives.push(Response), Response.json(5)) })
     seen.push(natives[0] === http.Response, natives[1] === http.Response, Response === http.Response)
     await server.close()
     print(...seen, Response === http.Response, Response === natives[0] || !${IS_LATE})`,
    [!IS_LATE, true, true, false, true],
  ],
  [
    'whoever asks for the dispatcher finds that of Node, and replaces it',
    `const name = Symbol.for('undici.globalDispatcher.1')
     const found = typeof globalThis[name].dispatch
     const mine = { dispatch() {} }
     globalThis[name] = mine
     print(found, hasLoaded(), globalThis[name] === mine,
       new http.Response('a') instanceof Response)`,
    ['function', true, true, true],
  ],
  ...[[1], [2], [1, 2]].map((versions): Program => [
    `Node's classes are seen where a program has redefined the dispatcher ${versions.join(' and ')}`,
    `const names = ${JSON.stringify(versions)}.map((each) => Symbol.for('undici.globalDispatcher.' + each))
     const value = { dispatch() {} }
     for (const name of names) Reflect.defineProperty(globalThis, name, { value, configurable: true })
     const native = globalThis.Response
     print(new http.Response('a') instanceof native,
       ${versions.length === 1 || !IS_LATE} || names.every((name) => globalThis[name] === value),
       await rest('/', { '/': () => new native('b') }))`,
    [true, true, 'b'],
  ]),
  ...[
    '(on, properties) => own(on, properties)',
    '(on, all) => (Reflect.ownKeys(all).forEach((key) => Object.defineProperty(on, key, all[key])), on)',
  ].map((wrapper): Program => [
    `Node's classes are seen where a program has replaced Object.defineProperties by ${wrapper}`,
    `const own = Object.defineProperties
     const wrapper = Object.defineProperties = ${wrapper}
     const native = globalThis.Response
     print(new http.Response('a') instanceof native, Object.defineProperties === wrapper,
       await rest('/', { '/': () => new native('b') }))`,
    [true, true, 'b'],
  ]),
  [
    "functions of Object are Node's once the classes are there",
    `globalThis.Response
     print(Object.defineProperties.toString(), Object.defineProperties.name)`,
    ['function defineProperties() { [native code] }', 'defineProperties'],
  ],
  [
    'one that is put there first stays',
    `const name = Symbol.for('undici.globalDispatcher.1')
     const mine = { dispatch() {} }
     globalThis[name] = mine
     print(hasLoaded(), globalThis[name] === mine, new http.Response('a') instanceof Response)`,
    [true, true, true],
  ],
  [
    'a global that is read is of the class of which the objects of the package are',
    `const own = [new http.Response('a'), new http.Headers()]
     let request
     await rest('/', { '/': (given) => ((request = given), 'ok') })
     const names = ['Response', 'Headers', 'Request']
     const are = [own[0] instanceof Response, own[1] instanceof Headers, request instanceof Request]
     const after = names.map((name) => Object.getOwnPropertyDescriptor(globalThis, name))
     print(are, after.map((now) => [now.writable, now.enumerable, typeof now.get]),
       new Response('') instanceof http.Response, new Headers() instanceof http.Headers,
       await rest('/', { '/': () => new http.Response('') instanceof Response }),
       names.map((name) => globalThis[name].name))`,
    [
      [true, true, true],
      [true, true, true].map(() => [true, false, 'undefined']),
      true,
      true,
      'true',
      ['Response', 'Headers', 'Request'],
    ],
  ],
  [
    'so are responses of a fetch that was read, and those of one that was saved before may be returned',
    `const server = await http.serve({ quiet: true, port: 0, routes: { '/': 'up' } })
     const got = await rest('/', { '/': () => saved(server.url) })
     const { constructor } = await fetch(server.url)
     await server.close()
     print(got, new http.Response('a') instanceof constructor)`,
    ['up', true],
    'const saved = fetch',
  ],
  [
    'WebAssembly compiles a response of the package',
    `const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])
     const response = new http.Response(bytes, { headers: { 'content-type': 'application/wasm' } })
     print((await WebAssembly.compileStreaming(response)) instanceof WebAssembly.Module)`,
    [true],
  ],
  [
    'what a program puts where a global was stays there, and a server replaces nothing of it',
    `class Mine {}
     globalThis.Response = Mine
     delete globalThis.Headers
     const during = await rest('/', { '/': () => String(Response === Mine) })
     const made = await new http.Response('a').text()
     print(during, made, hasLoaded(), Response === Mine, 'Headers' in globalThis)`,
    ['true', 'a', true, true, false],
  ],
  [
    'globals that were read or replaced before the import are taken as they are',
    `print(hasLoaded(), new http.Response('a') instanceof Theirs,
       new http.Response('a') instanceof Response, await rest('/', { '/': () => new Response('b') }))`,
    [true, true, true, 'b'],
    'const Theirs = globalThis.Response',
  ],
  [
    'functions of Object that are frozen behind the import stay as they are',
    `Object.freeze(Object)
     const { defineProperties } = Object
     print(await new http.Response('a').text(), new http.Response('a') instanceof Response,
       Object.defineProperties === defineProperties)`,
    ['a', true, true],
  ],
  [
    'where Object is frozen, responses of Node are responses, and so are those of the package a turn later',
    `Object.freeze(Object)
     const thrown = await rest('/', { '/': () => { throw new Response('thrown') } })
     print(thrown, new http.Response('a') instanceof Response)`,
    ['thrown', true],
  ],
  [
    'classes of the package that a program freezes leave fetch as it is',
    `for (const frozen of [http.Response, http.Headers]) Object.freeze(Object.freeze(frozen).prototype)
     const server = await http.serve({ quiet: true, port: 0, routes: { '/': 'up' } })
     print(await fetch(server.url).then((response) => response.text()))
     await server.close()`,
    ['up'],
  ],
  [
    'who asks for the dispatcher behind a replaced global does not make that of the program one of Node',
    `globalThis.Response = class {}
     typeof globalThis[Symbol.for('undici.globalDispatcher.1')]
     print(await new http.Response('a').text())`,
    ['a'],
  ],
  [
    'middleware changes the headers of a redirect of Node, which the first reader of the global makes',
    `let Kept
     const marked = async (_, next) => {
       const response = await next()
       response.headers.set('x-a', 'b')
       return response
     }
     const redirect = () => (Kept ??= Response).redirect('http://a.example')
     const routes = http.use({ '/': redirect, '/thrown': () => { throw redirect() } }, marked)
     print(await rest('/', routes), await rest('/thrown', routes), Kept === http.Response)`,
    ['', '', !IS_LATE],
  ],
  [
    'a global that a program freezes while a server runs stays as it is, and the server ends',
    `const server = await http.serve({ quiet: true, port: 0, routes: { '/': 'up' } })
     Object.defineProperty(globalThis, 'Response', { writable: false, configurable: false })
     const frozen = Response
     await null
     await server.close()
     print(Response === frozen)`,
    [true],
  ],
  [
    'a form is a body, and an object that calls itself one is not',
    `const form = new FormData()
     form.set('a', 'b')
     const named = { get [Symbol.toStringTag]() { return 'Response' }, a: 1 }
     const sent = await rest('/', { '/': () => new Map([[form, 1]]).keys().next().value })
     print(sent.includes('form-data; name="a"'), await rest('/', { '/': () => named }))`,
    [true, '{"a":1}'],
  ],
]
for (const [name, program, expected, before = ''] of PROGRAMS)
  test(name, { concurrency: true }, async () => assert.deepEqual(await result(before, program), expected))
