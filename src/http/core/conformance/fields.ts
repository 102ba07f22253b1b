/**
 * Header fields: names, values, line ends, Host, and how many there may be (RFC 9112, 5; RFC 9110, 5 and
 * 7.2).
 *
 * The app responds to `/header` with the value of `x-test` in JSON.
 */
import { type Case, closes, controls, each, get, head, stays } from './case.ts'

const H = 'Host: x'

function shows(line: string, value: string | null): Pick<Case, 'send' | 'expect'> {
  return {
    send: head('GET /header HTTP/1.1', H, line),
    expect: stays([200, Buffer.from(JSON.stringify(value)).toString('latin1')]),
  }
}
export const FIELDS: readonly Case[] = [
  { name: 'a field', clause: '9112 5', ...shows('X-Test: v', 'v') },
  { name: 'names are compared without case', clause: '9110 5.1', ...shows('x-TEST: v', 'v') },
  { name: 'no blank behind the colon', clause: '9112 5', ...shows('X-Test:v', 'v') },
  { name: 'blanks and tabs around a value', clause: '9112 5', ...shows('X-Test: \t v \t ', 'v') },
  { name: 'blanks inside a value', clause: '9110 5.5', ...shows('X-Test: a  b\tc', 'a  b\tc') },
  { name: 'an empty value', clause: '9110 5.5', ...shows('X-Test:', '') },
  { name: 'a value of blanks', clause: '9110 5.5', ...shows('X-Test:   ', '') },
  { name: 'bytes beyond ASCII in a value', clause: '9110 5.5', ...shows('X-Test: caf\xe9', 'caf\xe9') },
  { name: 'a repeated field is one list', clause: '9110 5.3', ...shows('X-Test: a\r\nX-Test: b', 'a, b') },
  {
    name: 'a name of every token character',
    clause: '9110 5.6.2',
    ...shows("!#$%&'*+-.^_`|~09azAZ: v", null),
  },
  { name: 'a colon in a value', clause: '9110 5.5', ...shows('X-Test: a:b', 'a:b') },
  {
    name: 'cookies are joined by semicolons',
    clause: '9113 8.2.3',
    send: head('GET /cookie HTTP/1.1', H, 'Cookie: a=1', 'Cookie: b=2'),
    expect: stays([200, 'a=1; b=2']),
  },
  { name: 'a blank before the colon', clause: '9112 5.1', send: get('X-Test : v'), expect: closes(400) },
  { name: 'a tab before the colon', clause: '9112 5.1', send: get('X-Test\t: v'), expect: closes(400) },
  { name: 'a line without a colon', clause: '9112 5', send: get('X-Test'), expect: closes(400) },
  { name: 'an empty name', clause: '9110 5.1', send: get(': v'), expect: closes(400) },
  { name: 'a folded line by a blank', clause: '9112 5.2', send: get('X-Test: a', ' b'), expect: closes(400) },
  { name: 'a folded line by a tab', clause: '9112 5.2', send: get('X-Test: a', '\tb'), expect: closes(400) },
  {
    name: 'a folded first field',
    clause: '9112 2.2',
    send: head('GET / HTTP/1.1', ' Host: x'),
    expect: closes(400),
  },
  {
    name: 'a folded host',
    clause: '9112 5.2',
    send: head('GET / HTTP/1.1', 'Host:', ' x'),
    expect: closes(400),
  },
  { name: 'a folded length', clause: '9112 5.2', send: get('Content-Length:', ' 0'), expect: closes(400) },
  ...each('"(),/;<=>?@[\\]{}', (character, shown) => ({
    name: `${shown} in a name`,
    clause: '9110 5.6.2',
    send: get(`X${character}Y: v`),
    expect: closes(400),
  })),
  ...each(`${controls('\r\n')} \x80\xff`, (character, shown) => ({
    name: `${shown} in a name`,
    clause: '9110 5.6.2',
    send: get(`X${character}Y: v`),
    expect: closes(400),
  })),
  ...each(controls('\t\r\n'), (character, shown) => ({
    name: `${shown} in a value`,
    clause: '9110 5.5',
    send: get(`X: a${character}b`),
    expect: closes(400),
  })),
  { name: 'a bare CR in a value', clause: '9112 2.2', send: get('X: a\rb'), expect: closes(400) },
  { name: 'a bare CR before a field', clause: '9112 2.2', send: get('X: a\rY: b'), expect: closes(400) },
  { name: 'a bare CR in a name', clause: '9112 2.2', send: get('X\rY: b'), expect: closes(400) },
  {
    name: 'a bare LF behind the request line',
    clause: '9112 2.2',
    send: 'GET / HTTP/1.1\nHost: x\r\n\r\n',
    expect: closes(400),
  },
  {
    name: 'a bare LF behind a field',
    clause: '9112 2.2',
    send: 'GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n',
    expect: closes(400),
  },
  {
    name: 'a bare LF at the end of a head',
    clause: '9112 2.2',
    send: 'GET / HTTP/1.1\r\nHost: x\r\n\n',
    expect: closes(400),
  },
  {
    name: 'bare LFs throughout',
    clause: '9112 2.2',
    send: 'GET / HTTP/1.1\nHost: x\n\n',
    expect: closes(400),
  },
  {
    name: 'a CR twice at a line end',
    clause: '9112 2.2',
    send: 'GET / HTTP/1.1\r\nHost: x\r\r\n\r\n',
    expect: closes(400),
  },
  { name: 'no host', clause: '9112 3.2', send: head('GET / HTTP/1.1'), expect: closes(400) },
  { name: 'an empty host', clause: '9110 7.2', send: head('GET / HTTP/1.1', 'Host:'), expect: closes(400) },
  { name: 'two hosts', clause: '9112 3.2', send: head('GET / HTTP/1.1', H, 'Host: y'), expect: closes(400) },
  {
    name: 'the same host twice',
    clause: '9112 3.2',
    send: head('GET / HTTP/1.1', H, H),
    expect: closes(400),
  },
  ...[
    'example.com',
    'example.com:8080',
    '127.0.0.1:1',
    '[::1]',
    '[::1]:80',
    'a_b.c',
    'x:',
    'x:65535',
    'xn--caf-dma.fr',
  ].map((host): Case => ({
    name: `the host ${host}`,
    clause: '9110 7.2',
    send: head('GET / HTTP/1.1', `Host: ${host}`),
    expect: stays([200, 'hello']),
  })),
  ...[
    'a b',
    'a/b',
    'a@b',
    'http://a',
    'a:b',
    'a:1:2',
    'a:123456',
    'a:65536',
    '[::1',
    '::1',
    '[x]',
    'a#b',
    'a?b',
    'a\\b',
    '"a"',
    '<a>',
    'caf\xe9',
  ].map((host): Case => ({
    name: `the host ${host}`,
    clause: '9110 7.2',
    send: head('GET / HTTP/1.1', `Host: ${host}`),
    expect: closes(400),
  })),
  ...['256.256.256.256', '%zz'].map((host): Case => ({
    name: `the host ${host}, which no URL has`,
    clause: '9110 4.2.1',
    send: head('GET /host HTTP/1.1', `Host: ${host}`),
    expect: stays([200, 'invalid']),
  })),
  {
    name: 'a hundred fields',
    clause: '9110 5.4',
    send: get(...Array.from({ length: 99 }, (_, at) => `X-${at}: v`)),
    expect: stays([200, 'hello']),
  },
  {
    name: 'too many fields',
    clause: '9110 5.4',
    send: get(...Array.from({ length: 100 }, (_, at) => `X-${at}: v`)),
    expect: closes(431),
  },
  {
    name: 'a name without end',
    clause: '6585 5',
    send: `GET / HTTP/1.1\r\n${'x'.repeat(40_000)}`,
    expect: closes(431),
  },
  {
    name: 'a value without end',
    clause: '6585 5',
    send: `GET / HTTP/1.1\r\nX: ${'x'.repeat(40_000)}`,
    expect: closes(431),
  },
  {
    name: 'many small fields beyond the limit',
    clause: '6585 5',
    send: get(...Array.from({ length: 90 }, (_, at) => `X-${at}: ${'v'.repeat(300)}`)),
    expect: closes(431),
  },
  {
    name: 'an unknown expectation',
    clause: '9110 10.1.1',
    send: get('Expect: tea'),
    expect: closes(417),
  },
  {
    name: 'an Upgrade is ignored',
    clause: '9110 7.8',
    send: get('Upgrade: websocket', 'Connection: Upgrade'),
    expect: stays([200, 'hello']),
  },
  {
    name: 'an Upgrade to HTTP/2 is ignored',
    clause: '9110 7.8',
    send: get(
      'Upgrade: h2c',
      'Connection: Upgrade, HTTP2-Settings',
      'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
    ),
    expect: stays([200, 'hello']),
  },
]
