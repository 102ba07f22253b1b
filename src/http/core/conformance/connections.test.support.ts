/**
 * Connections: persistence, closing, pipelining, and responses (RFC 9112, 9; RFC 9110, 6 to 8 and 15).
 *
 * Input after a closing request must not get a response.
 */
import { type Case, closes, get, head, post, row, stays } from './case.test.support.ts'

const OLD = 'GET / HTTP/1.0'
const hello = [200, 'hello'] as const
const H2C = ['Connection: Upgrade', 'Upgrade: h2c']
/** A body that looks like a request: read as one it would get 404. */
const INNER = head('GET /smuggled HTTP/1.1', 'Host: x')
const OUTER = post([`Content-Length: ${INNER.length}`])
export const CONNECTIONS: readonly Case[] = [
  row('HTTP/1.1 keeps a connection', '9112 9.3', [get(), get()], stays(hello, hello)),
  row(
    'CONNECT after a request with a late response',
    '9112 9.3.2',
    head('GET /slow HTTP/1.1', 'Host: x') + head('CONNECT x:80 HTTP/1.1', 'Host: x:80'),
    closes([200, 'slow'], 501),
  ),
  row('close closes', '9112 9.6', get('Connection: close') + get(), closes(hello)),
  row('Close in other letters', '9110 7.6.1', get('Connection: CLOSE') + get(), closes(hello)),
  row('close in a list', '9110 7.6.1', get('Connection: x-a, close') + get(), closes(hello)),
  row(
    'close in a second field',
    '9110 7.6.1',
    get('Connection: x-a', 'Connection: close') + get(),
    closes(hello),
  ),
  row(
    'close goes before keep-alive',
    '9112 9.3',
    get('Connection: keep-alive, close') + get(),
    closes(hello),
  ),
  row(
    'an expectation of no body keeps',
    '9110 10.1.1',
    get('Expect: 100-continue') + get(),
    stays(hello, hello),
  ),
  row(
    'an expectation whose body has come already',
    '9110 10.1.1',
    post(['Content-Length: 3', 'Expect: 100-continue'], 'abc') + get(),
    stays([200, 'abc'], hello),
  ),
  row(
    'Proxy-Connection is not Connection',
    '9110 7.6.1',
    get('Proxy-Connection: close') + get(),
    stays(hello, hello),
  ),
  row('another option keeps', '9110 7.6.1', get('Connection: x-closed') + get(), stays(hello, hello)),
  row('HTTP/1.0 closes', '9112 9.3', head(OLD) + get(), closes(hello)),
  row(
    'HTTP/1.0 is kept when it asks',
    '9112 9.3',
    head(OLD, 'Connection: keep-alive') + head(OLD),
    closes(hello, hello),
  ),
  row(
    'close goes before keep-alive in HTTP/1.0',
    '9112 9.3',
    head(OLD, 'Connection: keep-alive, close') + get(),
    closes(hello),
  ),
  row(
    'close goes before keep-alive in HTTP/1.0, in two fields',
    '9112 9.3',
    [head(OLD, 'Connection: Close', 'Connection: keep-alive'), get()],
    closes(hello),
  ),
  row('three pipelined', '9112 9.3.2', get() + get() + get(), stays(hello, hello, hello)),
  row('fifty pipelined', '9112 9.3.2', get().repeat(50), stays(...Array.from({ length: 50 }, () => hello))),
  row(
    'two hundred pipelined, more than are read ahead',
    '9112 9.3.2',
    get().repeat(200),
    stays(...Array.from({ length: 200 }, () => hello)),
  ),
  row(
    'pipelined, the first slow',
    '9112 9.3.2',
    head('GET /slow HTTP/1.1', 'Host: x') + get(),
    stays([200, 'slow'], hello),
  ),
  row('pipelined, the second malformed', '9112 9.3.2', `${get()}GARBAGE\r\n\r\n`, closes(hello, 400)),
  row(
    'pipelined, the first slow and the second malformed',
    '9112 9.3.2',
    `${head('GET /slow HTTP/1.1', 'Host: x')}GARBAGE\r\n\r\n`,
    closes([200, 'slow'], 400),
  ),
  row(
    'pipelined across pieces',
    '9112 9.3.2',
    [get() + get().slice(0, 10), get().slice(10)],
    stays(hello, hello),
  ),
  row(
    'a constant among others',
    '9112 9.3.2',
    get() + head('GET /constant HTTP/1.1', 'Host: x') + get(),
    stays(hello, [200, 'constant'], hello),
  ),
  row(
    'a slow response before a constant',
    '9112 9.3.2',
    head('GET /slow HTTP/1.1', 'Host: x') + head('GET /constant HTTP/1.1', 'Host: x'),
    stays([200, 'slow'], [200, 'constant']),
  ),
  row(
    'a constant with a query',
    '9112 3.2',
    head('GET /constant?q HTTP/1.1', 'Host: x'),
    stays([200, 'constant']),
  ),
  row('an empty line between requests', '9112 2.2', `${get()}\r\n${get()}`, stays(hello, hello)),
  row(
    'a request behind one that offers an Upgrade',
    '9110 7.8',
    get(...H2C) + get() + get(...H2C) + get(),
    stays(hello, hello, hello, hello),
  ),
  row(
    'a request in two pieces behind an Upgrade',
    '9110 7.8',
    [get(...H2C) + get().slice(0, 9), get().slice(9)],
    stays(hello, hello),
  ),
  row(
    'a request behind an Upgrade with a body',
    '9110 7.8',
    post([...H2C, 'Content-Length: 3'], 'abc') + get(),
    stays([200, 'abc'], hello),
  ),
  row(
    'a request behind an Upgrade with chunks',
    '9110 7.8',
    post([...H2C, 'Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\nX: v\r\n\r\n') + get(),
    stays([200, 'abc'], hello),
  ),
  row(
    'a late body after an Upgrade is not read as a request',
    '9112 11.2',
    [get(...H2C) + OUTER, INNER],
    stays(hello, [200, INNER]),
  ),
  row(
    'nor while the response to the Upgrade is pending',
    '9112 11.2',
    [head('GET /slow HTTP/1.1', 'Host: x', ...H2C) + OUTER.slice(0, -7), OUTER.slice(-7) + INNER, get()],
    stays([200, 'slow'], [200, INNER], hello),
  ),
  row(
    'an Upgrade on a connection that closes',
    '9112 9.6',
    get('Connection: Upgrade, close', 'Upgrade: h2c') + OUTER + INNER,
    closes(hello),
  ),
  row(
    'CONNECT behind an Upgrade',
    '9110 9.3.6',
    get(...H2C) + head('CONNECT x:80 HTTP/1.1', 'Host: x:80') + get(),
    closes(hello, 501),
  ),
  row('garbage behind an Upgrade', '9112 2.2', `${get(...H2C)}GARBAGE\r\n\r\n`, closes(hello, 400)),
  row(
    'a head without end behind an Upgrade',
    '6585 5',
    `${get(...H2C)}GET / HTTP/1.1\r\nX: ${'x'.repeat(40_000)}`,
    closes(hello, 431),
  ),
  row(
    'broken chunks of a request with an Upgrade',
    '9112 7.1',
    [post([...H2C, 'Transfer-Encoding: chunked'], '3\r\nabc\r\n'), 'zz\r\n', get()],
    closes(400),
  ),
  row(
    'a client that ends in the body of a request with an Upgrade',
    '9112 8',
    post([...H2C, 'Content-Length: 30'], 'abc'),
    closes(),
    { ends: true },
  ),
  row(
    'a streamed response is chunked',
    '9112 7.1',
    head('GET /stream HTTP/1.1', 'Host: x') + get(),
    stays([200, 'streamed'], hello),
  ),
  row(
    'a streamed response to HTTP/1.0 ends with the connection',
    '9112 6.3',
    head('GET /stream HTTP/1.0'),
    closes([200, 'streamed']),
  ),
  row(
    'a streamed response to HTTP/1.0 that asked to keep',
    '9112 6.3',
    head('GET /stream HTTP/1.0', 'Connection: keep-alive'),
    closes([200, 'streamed']),
  ),
  row(
    '204 has no body and no length',
    '9110 15.3.5',
    head('GET /status/204 HTTP/1.1', 'Host: x') + get(),
    stays(204, hello),
  ),
  row(
    '304 has no body',
    '9110 15.4.5',
    head('GET /status/304 HTTP/1.1', 'Host: x') + get(),
    stays(304, hello),
  ),
  row(
    '205 has no body',
    '9110 15.3.6',
    head('GET /status/205 HTTP/1.1', 'Host: x') + get(),
    stays([205, ''], hello),
  ),
  row(
    'an error of the app keeps the connection',
    '9110 15.6.1',
    head('GET /throws HTTP/1.1', 'Host: x') + get(),
    stays(500, hello),
  ),
  row('a client that half-closes gets its response', '9112 9.6', get(), closes(hello), { ends: true }),
  row('a client that ends in its second request', '9112 8', get() + get().slice(0, 8), closes(hello), {
    ends: true,
  }),
  row('a head that ends in the middle', '9112 8', 'GET / HT', closes(), { ends: true }),
  row(
    'a request after one with a body',
    '9112 9.3',
    [post(['Content-Length: 3'], 'abc'), get()],
    stays([200, 'abc'], hello),
  ),
  row(
    'bytes behind a closing request are not read',
    '9112 9.6',
    `${get('Connection: close')}GARBAGE`,
    closes(hello),
  ),
]
