/**
 * Connections: persistence, closing, pipelining, and responses (RFC 9112, 9; RFC 9110, 6 to 8 and 15).
 *
 * Input after a closing request must not get a response.
 */
import { type Case, closes, get, head, post, stays } from './case.ts'

const OLD = 'GET / HTTP/1.0'
const hello = [200, 'hello'] as const
const H2C = ['Connection: Upgrade', 'Upgrade: h2c']
/** A body that looks like a request: read as one it would get 404. */
const INNER = head('GET /smuggled HTTP/1.1', 'Host: x')
const OUTER = post([`Content-Length: ${INNER.length}`])
export const CONNECTIONS: readonly Case[] = [
  {
    name: 'HTTP/1.1 keeps a connection',
    clause: '9112 9.3',
    send: [get(), get()],
    expect: stays(hello, hello),
  },
  {
    name: 'CONNECT after a request with a late response',
    clause: '9112 9.3.2',
    send: head('GET /slow HTTP/1.1', 'Host: x') + head('CONNECT x:80 HTTP/1.1', 'Host: x:80'),
    expect: closes([200, 'slow'], 501),
  },
  { name: 'close closes', clause: '9112 9.6', send: get('Connection: close') + get(), expect: closes(hello) },
  {
    name: 'Close in other letters',
    clause: '9110 7.6.1',
    send: get('Connection: CLOSE') + get(),
    expect: closes(hello),
  },
  {
    name: 'close in a list',
    clause: '9110 7.6.1',
    send: get('Connection: x-a, close') + get(),
    expect: closes(hello),
  },
  {
    name: 'close in a second field',
    clause: '9110 7.6.1',
    send: get('Connection: x-a', 'Connection: close') + get(),
    expect: closes(hello),
  },
  {
    name: 'close goes before keep-alive',
    clause: '9112 9.3',
    send: get('Connection: keep-alive, close') + get(),
    expect: closes(hello),
  },
  {
    name: 'an expectation of no body keeps',
    clause: '9110 10.1.1',
    send: get('Expect: 100-continue') + get(),
    expect: stays(hello, hello),
  },
  {
    name: 'an expectation whose body has come already',
    clause: '9110 10.1.1',
    send: post(['Content-Length: 3', 'Expect: 100-continue'], 'abc') + get(),
    expect: stays([200, 'abc'], hello),
  },
  {
    name: 'Proxy-Connection is not Connection',
    clause: '9110 7.6.1',
    send: get('Proxy-Connection: close') + get(),
    expect: stays(hello, hello),
  },
  {
    name: 'another option keeps',
    clause: '9110 7.6.1',
    send: get('Connection: x-closed') + get(),
    expect: stays(hello, hello),
  },
  { name: 'HTTP/1.0 closes', clause: '9112 9.3', send: head(OLD) + get(), expect: closes(hello) },
  {
    name: 'HTTP/1.0 is kept when it asks',
    clause: '9112 9.3',
    send: head(OLD, 'Connection: keep-alive') + head(OLD),
    expect: closes(hello, hello),
  },
  {
    name: 'close goes before keep-alive in HTTP/1.0',
    clause: '9112 9.3',
    send: head(OLD, 'Connection: keep-alive, close') + get(),
    expect: closes(hello),
  },
  {
    name: 'close goes before keep-alive in HTTP/1.0, in two fields',
    clause: '9112 9.3',
    send: [head(OLD, 'Connection: Close', 'Connection: keep-alive'), get()],
    expect: closes(hello),
  },
  {
    name: 'three pipelined',
    clause: '9112 9.3.2',
    send: get() + get() + get(),
    expect: stays(hello, hello, hello),
  },
  {
    name: 'fifty pipelined',
    clause: '9112 9.3.2',
    send: get().repeat(50),
    expect: stays(...Array.from({ length: 50 }, () => hello)),
  },
  {
    name: 'two hundred pipelined, more than are read ahead',
    clause: '9112 9.3.2',
    send: get().repeat(200),
    expect: stays(...Array.from({ length: 200 }, () => hello)),
  },
  {
    name: 'pipelined, the first slow',
    clause: '9112 9.3.2',
    send: head('GET /slow HTTP/1.1', 'Host: x') + get(),
    expect: stays([200, 'slow'], hello),
  },
  {
    name: 'pipelined, the second malformed',
    clause: '9112 9.3.2',
    send: `${get()}GARBAGE\r\n\r\n`,
    expect: closes(hello, 400),
  },
  {
    name: 'pipelined, the first slow and the second malformed',
    clause: '9112 9.3.2',
    send: `${head('GET /slow HTTP/1.1', 'Host: x')}GARBAGE\r\n\r\n`,
    expect: closes([200, 'slow'], 400),
  },
  {
    name: 'pipelined across pieces',
    clause: '9112 9.3.2',
    send: [get() + get().slice(0, 10), get().slice(10)],
    expect: stays(hello, hello),
  },
  {
    name: 'a constant among others',
    clause: '9112 9.3.2',
    send: get() + head('GET /constant HTTP/1.1', 'Host: x') + get(),
    expect: stays(hello, [200, 'constant'], hello),
  },
  {
    name: 'a slow response before a constant',
    clause: '9112 9.3.2',
    send: head('GET /slow HTTP/1.1', 'Host: x') + head('GET /constant HTTP/1.1', 'Host: x'),
    expect: stays([200, 'slow'], [200, 'constant']),
  },
  {
    name: 'a constant with a query',
    clause: '9112 3.2',
    send: head('GET /constant?q HTTP/1.1', 'Host: x'),
    expect: stays([200, 'constant']),
  },
  {
    name: 'an empty line between requests',
    clause: '9112 2.2',
    send: `${get()}\r\n${get()}`,
    expect: stays(hello, hello),
  },
  {
    name: 'a request behind one that offers an Upgrade',
    clause: '9110 7.8',
    send: get(...H2C) + get() + get(...H2C) + get(),
    expect: stays(hello, hello, hello, hello),
  },
  {
    name: 'a request in two pieces behind an Upgrade',
    clause: '9110 7.8',
    send: [get(...H2C) + get().slice(0, 9), get().slice(9)],
    expect: stays(hello, hello),
  },
  {
    name: 'a request behind an Upgrade with a body',
    clause: '9110 7.8',
    send: post([...H2C, 'Content-Length: 3'], 'abc') + get(),
    expect: stays([200, 'abc'], hello),
  },
  {
    name: 'a request behind an Upgrade with chunks',
    clause: '9110 7.8',
    send: post([...H2C, 'Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\nX: v\r\n\r\n') + get(),
    expect: stays([200, 'abc'], hello),
  },
  {
    name: 'a late body after an Upgrade is not read as a request',
    clause: '9112 11.2',
    send: [get(...H2C) + OUTER, INNER],
    expect: stays(hello, [200, INNER]),
  },
  {
    name: 'nor while the response to the Upgrade is pending',
    clause: '9112 11.2',
    send: [
      head('GET /slow HTTP/1.1', 'Host: x', ...H2C) + OUTER.slice(0, -7),
      OUTER.slice(-7) + INNER,
      get(),
    ],
    expect: stays([200, 'slow'], [200, INNER], hello),
  },
  {
    name: 'an Upgrade on a connection that closes',
    clause: '9112 9.6',
    send: get('Connection: Upgrade, close', 'Upgrade: h2c') + OUTER + INNER,
    expect: closes(hello),
  },
  {
    name: 'CONNECT behind an Upgrade',
    clause: '9110 9.3.6',
    send: get(...H2C) + head('CONNECT x:80 HTTP/1.1', 'Host: x:80') + get(),
    expect: closes(hello, 501),
  },
  {
    name: 'garbage behind an Upgrade',
    clause: '9112 2.2',
    send: `${get(...H2C)}GARBAGE\r\n\r\n`,
    expect: closes(hello, 400),
  },
  {
    name: 'a head without end behind an Upgrade',
    clause: '6585 5',
    send: `${get(...H2C)}GET / HTTP/1.1\r\nX: ${'x'.repeat(40_000)}`,
    expect: closes(hello, 431),
  },
  {
    name: 'broken chunks of a request with an Upgrade',
    clause: '9112 7.1',
    send: [post([...H2C, 'Transfer-Encoding: chunked'], '3\r\nabc\r\n'), 'zz\r\n', get()],
    expect: closes(400),
  },
  {
    name: 'a client that ends in the body of a request with an Upgrade',
    clause: '9112 8',
    send: post([...H2C, 'Content-Length: 30'], 'abc'),
    ends: true,
    expect: closes(),
  },
  {
    name: 'a streamed response is chunked',
    clause: '9112 7.1',
    send: head('GET /stream HTTP/1.1', 'Host: x') + get(),
    expect: stays([200, 'streamed'], hello),
  },
  {
    name: 'a streamed response to HTTP/1.0 ends with the connection',
    clause: '9112 6.3',
    send: head('GET /stream HTTP/1.0'),
    expect: closes([200, 'streamed']),
  },
  {
    name: 'a streamed response to HTTP/1.0 that asked to keep',
    clause: '9112 6.3',
    send: head('GET /stream HTTP/1.0', 'Connection: keep-alive'),
    expect: closes([200, 'streamed']),
  },
  {
    name: '204 has no body and no length',
    clause: '9110 15.3.5',
    send: head('GET /status/204 HTTP/1.1', 'Host: x') + get(),
    expect: stays(204, hello),
  },
  {
    name: '304 has no body',
    clause: '9110 15.4.5',
    send: head('GET /status/304 HTTP/1.1', 'Host: x') + get(),
    expect: stays(304, hello),
  },
  {
    name: '205 has no body',
    clause: '9110 15.3.6',
    send: head('GET /status/205 HTTP/1.1', 'Host: x') + get(),
    expect: stays([205, ''], hello),
  },
  {
    name: 'an error of the app keeps the connection',
    clause: '9110 15.6.1',
    send: head('GET /throws HTTP/1.1', 'Host: x') + get(),
    expect: stays(500, hello),
  },
  {
    name: 'a client that half-closes gets its response',
    clause: '9112 9.6',
    send: get(),
    ends: true,
    expect: closes(hello),
  },
  {
    name: 'a client that ends in its second request',
    clause: '9112 8',
    send: get() + get().slice(0, 8),
    ends: true,
    expect: closes(hello),
  },
  {
    name: 'a head that ends in the middle',
    clause: '9112 8',
    send: 'GET / HT',
    ends: true,
    expect: closes(),
  },
  {
    name: 'a request after one with a body',
    clause: '9112 9.3',
    send: [post(['Content-Length: 3'], 'abc'), get()],
    expect: stays([200, 'abc'], hello),
  },
  {
    name: 'bytes behind a closing request are not read',
    clause: '9112 9.6',
    send: `${get('Connection: close')}GARBAGE`,
    expect: closes(hello),
  },
]
