/**
 * Header fields: names, values, line ends, Host, and how many there may be (RFC 9112, 5; RFC 9110, 5 and
 * 7.2).
 *
 * The app responds to `/header` with the value of `x-test` in JSON.
 */
import { type Case, closes, controls, each, get, head, row, stays } from './case.test.support.ts'

const H = 'Host: x'

/** A field line, and the value of `x-test` that the app reads. */
function field(name: string, clause: string, line: string, value: string | null): Case {
  const expect = stays([200, Buffer.from(JSON.stringify(value)).toString('latin1')])
  return row(name, clause, head('GET /header HTTP/1.1', H, line), expect)
}

export const FIELDS: readonly Case[] = [
  field('a field', '9112 5', 'X-Test: v', 'v'),
  field('names are compared without case', '9110 5.1', 'x-TEST: v', 'v'),
  field('no blank behind the colon', '9112 5', 'X-Test:v', 'v'),
  field('blanks and tabs around a value', '9112 5', 'X-Test: \t v \t ', 'v'),
  field('blanks inside a value', '9110 5.5', 'X-Test: a  b\tc', 'a  b\tc'),
  field('an empty value', '9110 5.5', 'X-Test:', ''),
  field('a value of blanks', '9110 5.5', 'X-Test:   ', ''),
  field('bytes beyond ASCII in a value', '9110 5.5', 'X-Test: caf\xe9', 'caf\xe9'),
  field('a repeated field is one list', '9110 5.3', 'X-Test: a\r\nX-Test: b', 'a, b'),
  field('a name of every token character', '9110 5.6.2', "!#$%&'*+-.^_`|~09azAZ: v", null),
  field('a colon in a value', '9110 5.5', 'X-Test: a:b', 'a:b'),
  row(
    'cookies are joined by semicolons',
    '9113 8.2.3',
    head('GET /cookie HTTP/1.1', H, 'Cookie: a=1', 'Cookie: b=2'),
    stays([200, 'a=1; b=2']),
  ),
  row('a blank before the colon', '9112 5.1', get('X-Test : v'), closes(400)),
  row('a tab before the colon', '9112 5.1', get('X-Test\t: v'), closes(400)),
  row('a line without a colon', '9112 5', get('X-Test'), closes(400)),
  row('an empty name', '9110 5.1', get(': v'), closes(400)),
  row('a folded line by a blank', '9112 5.2', get('X-Test: a', ' b'), closes(400)),
  row('a folded line by a tab', '9112 5.2', get('X-Test: a', '\tb'), closes(400)),
  row('a folded first field', '9112 2.2', head('GET / HTTP/1.1', ' Host: x'), closes(400)),
  row('a folded host', '9112 5.2', head('GET / HTTP/1.1', 'Host:', ' x'), closes(400)),
  row('a folded length', '9112 5.2', get('Content-Length:', ' 0'), closes(400)),
  ...each('"(),/;<=>?@[\\]{}', (character, shown) =>
    row(`${shown} in a name`, '9110 5.6.2', get(`X${character}Y: v`), closes(400)),
  ),
  ...each(`${controls('\r\n')} \x80\xff`, (character, shown) =>
    row(`${shown} in a name`, '9110 5.6.2', get(`X${character}Y: v`), closes(400)),
  ),
  ...each(controls('\t\r\n'), (character, shown) =>
    row(`${shown} in a value`, '9110 5.5', get(`X: a${character}b`), closes(400)),
  ),
  row('a bare CR in a value', '9112 2.2', get('X: a\rb'), closes(400)),
  row('a bare CR before a field', '9112 2.2', get('X: a\rY: b'), closes(400)),
  row('a bare CR in a name', '9112 2.2', get('X\rY: b'), closes(400)),
  row('a bare LF behind the request line', '9112 2.2', 'GET / HTTP/1.1\nHost: x\r\n\r\n', closes(400)),
  row('a bare LF behind a field', '9112 2.2', 'GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n', closes(400)),
  row('a bare LF at the end of a head', '9112 2.2', 'GET / HTTP/1.1\r\nHost: x\r\n\n', closes(400)),
  row('bare LFs throughout', '9112 2.2', 'GET / HTTP/1.1\nHost: x\n\n', closes(400)),
  row('a CR twice at a line end', '9112 2.2', 'GET / HTTP/1.1\r\nHost: x\r\r\n\r\n', closes(400)),
  row('no host', '9112 3.2', head('GET / HTTP/1.1'), closes(400)),
  row('an empty host', '9110 7.2', head('GET / HTTP/1.1', 'Host:'), closes(400)),
  row('two hosts', '9112 3.2', head('GET / HTTP/1.1', H, 'Host: y'), closes(400)),
  row('the same host twice', '9112 3.2', head('GET / HTTP/1.1', H, H), closes(400)),
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
  ].map((host) =>
    row(`the host ${host}`, '9110 7.2', head('GET / HTTP/1.1', `Host: ${host}`), stays([200, 'hello'])),
  ),
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
  ].map((host) => row(`the host ${host}`, '9110 7.2', head('GET / HTTP/1.1', `Host: ${host}`), closes(400))),
  ...['256.256.256.256', '%zz'].map((host) =>
    row(
      `the host ${host}, which no URL has`,
      '9110 4.2.1',
      head('GET /host HTTP/1.1', `Host: ${host}`),
      stays([200, 'invalid']),
    ),
  ),
  row(
    'a hundred and twenty-eight fields',
    '9110 5.4',
    get(...Array.from({ length: 127 }, (_, at) => `X-${at}: v`)),
    stays([200, 'hello']),
  ),
  row(
    'too many fields',
    '9110 5.4',
    get(...Array.from({ length: 128 }, (_, at) => `X-${at}: v`)),
    closes(431),
  ),
  row('a name without end', '6585 5', `GET / HTTP/1.1\r\n${'x'.repeat(40_000)}`, closes(431)),
  row('a value without end', '6585 5', `GET / HTTP/1.1\r\nX: ${'x'.repeat(40_000)}`, closes(431)),
  row(
    'many small fields beyond the limit',
    '6585 5',
    get(...Array.from({ length: 90 }, (_, at) => `X-${at}: ${'v'.repeat(300)}`)),
    closes(431),
  ),
  row('an unknown expectation', '9110 10.1.1', get('Expect: tea'), closes(417)),
  row(
    'an Upgrade is ignored',
    '9110 7.8',
    get('Upgrade: websocket', 'Connection: Upgrade'),
    stays([200, 'hello']),
  ),
  row(
    'an Upgrade to HTTP/2 is ignored',
    '9110 7.8',
    get('Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA'),
    stays([200, 'hello']),
  ),
]
