/**
 * `corespun run` as its users meet it: each way to name items, each case of a function, each error line.
 * What is checked is all a shell sees: both streams, whole, and the exit code.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { folder, numbers, corespun, program, skipOf, start, until } from './corespun.mjs'

const items = 'modules/items.mjs'
const chars = `${items}#chars`
const double = 'modules/double.ts'
const doubleChars = readFileSync(new URL(double, import.meta.url), 'utf8')
  .split('\n')
  .slice(0, -1)
  .map((line) => `${line.length}\n`)
  .join('')

/** Each: the words, what goes in, the lines that come out, the exit code, and standard error. */
const runs = [
  { name: 'lines', words: [items, '-'], input: 'a\nb\n', out: '{"got":"a"}\n{"got":"b"}\n' },
  { name: 'no input named: standard input', words: [items], input: 'a\n', out: '{"got":"a"}\n' },
  { name: 'CRLF, and no end at the end', words: [items], input: 'a\r\nb', out: '{"got":"a"}\n{"got":"b"}\n' },
  { name: 'a blank line is an item', words: [items], input: '\n', out: '{"got":""}\n' },
  {
    name: 'the lines after the first two',
    words: [items, '--skip', '2'],
    input: 'a\nb\nc\n',
    out: '{"got":"c"}\n',
  },
  { name: 'as many items skipped as there are', words: [items, '--skip', '2'], input: 'a\nb\n', out: '' },
  {
    name: 'more items skipped than there are',
    words: [items, '--skip', '9'],
    input: 'a\nb\n',
    out: '',
    err: 'corespun: --skip 9: there are only 2 items\n',
    code: 1,
  },
  {
    name: 'more paths skipped than there are',
    words: [items, 'modules/*.ts', '--skip', '3'],
    out: '',
    err: 'corespun: --skip 3: there are only 2 items\n',
    code: 2,
  },
  {
    name: 'other paths skipped than were done',
    words: [items, 'modules/*.ts', '--skip', '1:00000000'],
    out: '',
    err:
      'corespun: --skip 1: the first files are not those that were done: files were added, removed or ' +
      'renamed; put them back, name the files that are left, or run all of them again\n',
    code: 2,
  },
  {
    name: 'paths after the first, with their numbers',
    words: [items, 'modules/*.ts', '--skip', '1', '-n'],
    out: '{"item":2,"value":{"got":"modules/typed.ts"}}\n',
  },
  { name: 'no items', words: [items], input: '', out: '' },
  { name: 'letters', words: [items], input: 'é😀\n', out: '{"got":"é😀"}\n' },
  { name: 'bytes that are not text', words: [chars], input: Buffer.of(0xff, 0, 10, 7), out: '2\n1\n' },
  {
    name: 'NDJSON, with a line that is not JSON',
    words: [items, '--ndjson', '-'],
    input: '{"a":[1]}\n\n nul \n"s"\n',
    out: /^\{"got":\{"a":\[1\]\}\}\n\{"item":2,"error":\{.*CLI_LINE_NOT_JSON.*\}\}\n\{"got":"s"\}\n$/,
    err: 'corespun: 1 of 3 items failed\n',
    code: 1,
  },
  {
    name: 'paths, in the order given',
    words: [items, 'modules/typed.ts', 'modules/double.ts'],
    out: '{"got":"modules/typed.ts"}\n{"got":"modules/double.ts"}\n',
  },
  {
    name: 'a pattern, sorted',
    words: [items, 'modules/*.ts'],
    out: '{"got":"modules/double.ts"}\n{"got":"modules/typed.ts"}\n',
  },
  {
    name: 'a folder without some',
    words: [chars, 'modules', '--ignore', '**/*.mjs'],
    out: '18\n17\n23\n17\n16\n',
  },
  { name: 'lines of files', words: [chars, '--lines', double], out: doubleChars },
  { name: 'a nested export', words: [`${items}#nested.inside`], input: 'x\n', out: '"in x"\n' },
  { name: 'a module of Node', words: ['node:path#basename'], input: '/a/b.c\n', out: '"b.c"\n' },
  { name: 'CommonJS', words: ['modules/common.cjs#upper'], input: 'x\n', out: '"X"\n' },
  {
    name: 'TypeScript, whose only function needs no name',
    words: ['modules/typed.ts'],
    input: '4\n',
    out: '{"name":"4","twice":8}\n',
  },
  { name: 'undefined is null', words: [`${items}#nothing`], input: 'x\n', out: 'null\n' },
  {
    name: 'the order of the input',
    words: [`${items}#laterFirst`, '-w', '2'],
    input: '1\n2\n3\n',
    out: '"1"\n"2"\n"3"\n',
  },
  { name: 'many threads', words: [`${items}#chars`, '-w', '12'], input: numbers(3), out: '1\n1\n1\n' },
  {
    name: 'unordered: nothing waits for the slow one',
    words: [`${items}#laterFirst`, '-w', '2', '-un'],
    input: '1\n2\n',
    out: '{"item":2,"value":"2"}\n{"item":1,"value":"1"}\n',
  },
  {
    name: 'concurrency: asynchronous items overlap in one worker',
    words: [`${items}#laterFirst`, '-w', '1', '-c', '2', '-u'],
    input: '1\n2\n',
    out: '"2"\n"1"\n',
  },
  {
    name: 'what the function prints is not among the results',
    words: [`${items}#talk`],
    input: 'x\n',
    out: '"x"\n',
    err: 'console x\nstdout x\n',
  },
  {
    name: 'failures among results',
    words: [`${items}#failOdd`],
    input: '1\n2\n3\n',
    out:
      '{"item":1,"error":{"name":"RangeError","code":"ODD","message":"odd 1"}}\n"2"\n' +
      '{"item":3,"error":{"name":"RangeError","code":"ODD","message":"odd 3"}}\n',
    err: 'corespun: 2 of 3 items failed\n',
    code: 1,
  },
  {
    name: 'stacks when asked for',
    words: [`${items}#failOdd`, '--stacks'],
    input: '1\n',
    out: /"stack":"RangeError: odd 1\\n {4}at failOdd \(file:[^"]*items\.mjs:\d+:\d+\)/,
    err: 'corespun: 1 of 1 item failed\n',
    code: 1,
  },
  {
    name: 'fail-fast: the failure is the last line',
    words: [`${items}#failThird`, '--fail-fast'],
    input: numbers(1000),
    out: '"1"\n"2"\n{"item":3,"error":{"name":"Error","message":"third"}}\n',
    err: 'corespun: stopped at item 3, which failed\n',
    code: 1,
  },
  {
    name: 'fail-fast: a line that is too long, behind items that wait for a worker',
    words: [`${items}#slow`, '--line-max', '5', '--fail-fast', '-w', '1'],
    input: `${numbers(200)}${'x'.repeat(20)}\n7\n`,
    out: /^("\d+"\n){200}\{"item":201,"error":\{.*"code":"CLI_LINE_TOO_LONG".*\n$/,
    err: 'corespun: stopped at item 201, which failed\n',
    code: 1,
  },
  {
    name: 'fail-fast: a file that cannot be read',
    words: [items, 'modules/double.ts', 'modules/typed.ts', 'nope.txt', 'modules/double.ts', '--fail-fast'],
    out: /^(\{"got":"modules\/\w+\.ts"\}\n){2}\{"item":3,"path":"nope\.txt".*CLI_INPUT_UNREADABLE.*\n$/,
    err:
      'corespun: nope.txt: cannot be read: no such file or directory\n' +
      'corespun: stopped at item 3, which failed\n',
    code: 1,
  },
  {
    name: 'what JSON cannot write',
    words: [`${items}#big`],
    input: 'x\n',
    out: /^\{"item":1,"error":\{.*"code":"CLI_RESULT_NOT_JSON","message":"[^"]*BigInt"\}\}\n$/,
    err: 'corespun: 1 of 1 item failed\n',
    code: 1,
  },
  {
    name: 'an unreadable file: a record, one line on standard error, and the rest continues',
    words: [items, 'nope.txt', 'modules/double.ts'],
    out: /^\{"item":1,"path":"nope\.txt","error":\{.*CLI_INPUT_UNREADABLE.*\n\{"got":"modules\/dou.*\n$/,
    err: 'corespun: nope.txt: cannot be read: no such file or directory\ncorespun: 1 of 2 items failed\n',
    code: 1,
  },
  {
    name: 'a name of two lines is reported in one',
    words: [items, 'no\nsuch'],
    out: /^\{"item":1,"path":"no\\nsuch","error":\{.*CLI_INPUT_UNREADABLE.*\n$/,
    err: 'corespun: no such: cannot be read: no such file or directory\ncorespun: 1 of 1 item failed\n',
    code: 1,
  },
  {
    name: 'an unreadable file of lines',
    words: [chars, '--lines', 'nope.txt', double],
    out: doubleChars,
    err: 'corespun: nope.txt: cannot be read: no such file or directory\n',
    code: 1,
  },
  {
    name: 'an item that runs too long, and the ones behind it',
    words: [`${items}#hangOn2`, '--timeout', '400', '-w', '2'],
    input: numbers(20),
    out: /^"1"\n\{"item":2,"error":\{.*"message":"ran longer than 400 ms.*\n"3"\n[^]*\n"20"\n$/,
    err: 'corespun: 1 of 20 items failed\n',
    code: 1,
  },
  {
    name: 'an item that waits too long',
    words: [`${items}#waitOn2`, '--timeout', '400ms', '-w', '1'],
    input: '1\n2\n3\n',
    out: /^"1"\n\{"item":2,"error":\{.*"code":"CLI_ITEM_TIMEOUT".*\n"3"\n$/,
    err: 'corespun: 1 of 3 items failed\n',
    code: 1,
  },
  {
    name: 'an item that waits too long, and the ones that wait beside it in its worker',
    words: [`${items}#waitLongOn2`, '--timeout', '600', '-w', '1', '-c', '10'],
    input: numbers(40),
    out: /^"1"\n\{"item":2,"error":\{.*"code":"CLI_ITEM_TIMEOUT".*\n("\d+"\n){38}$/,
    err: 'corespun: 1 of 40 items failed\n',
    code: 1,
  },
  {
    name: 'an item that ends its worker, and the ones behind it',
    words: [`${items}#exitOn2`, '-w', '1'],
    input: '1\n2\n3\n',
    out: /^"1"\n\{"item":2,"error":\{.*DIED.*\n"3"\n$/,
    err: 'corespun: 1 of 3 items failed\n',
    code: 1,
  },
  {
    name: 'a line that is too long is skipped, not the next',
    words: [chars, '--line-max', '10'],
    input: `${'x'.repeat(200_000)}\nabc\n`,
    out: /^\{"item":1,"error":\{.*"code":"CLI_LINE_TOO_LONG".*\n3\n$/,
    err: 'corespun: 1 of 2 items failed\n',
    code: 1,
  },
]
for (const [row, { name, words, input = '', out, err = '', code = 0 }] of runs.entries()) {
  test(name, { timeout: 60_000, skip: skipOf(row) }, async () => {
    const ended = await corespun(['run', ...words], input)
    if (out instanceof RegExp) assert.match(ended.out, out)
    else assert.equal(ended.out, out)
    assert.deepEqual({ err: ended.err, code: ended.code }, { err, code })
  })
}

/** Each: the words and the one line on standard error; the exit code is 2 and nothing comes out. */
const refusals = [
  {
    words: ['run', 'nope.mjs', '-'],
    err: 'nope.mjs: no such module, neither a file here nor an installed package',
  },
  {
    words: ['run', `${items}#nope`, '-'],
    err: /^modules\/items\.mjs: has no export "nope"; use modules\/items\.mjs#\w+ or .*$/,
  },
  { words: ['run', `${items}#seven`, '-'], err: /export "seven" is not a function but a number$/ },
  {
    words: ['run', 'modules/common.cjs', '-'],
    err: /not a function but an object; use modules\/common\.cjs#upper$/,
  },
  { words: ['run', `${items}#nested`, '-'], err: /export "nested" is not a function but an object$/ },
  {
    words: ['run', 'modules/no-function.mjs', '-'],
    err: 'modules/no-function.mjs: has no default export; it exports no function at all',
  },
  {
    words: ['run', 'modules/throws.mjs', '-'],
    err: /^modules\/throws\.mjs: failed to load: TypeError: not today \(.*modules\/throws\.mjs:5:7\)$/,
  },
  {
    words: ['run', 'modules/broken.mjs', '-'],
    err: /^modules\/broken\.mjs: failed to load: SyntaxError: .+ \(.*broken\.mjs:\d+\)$/,
  },
  { words: ['run', items, '*.no\nne'], err: '*.no ne: matches no file' },
  { words: ['run', items, '*.none'], err: '*.none: matches no file' },
  { words: ['run', items, '--wrong'], err: "Unknown option '--wrong' (corespun run --help shows how)" },
  { words: ['run'], err: 'name the module whose function to run (corespun run --help shows how)' },
  {
    words: ['help', 'srve'],
    err: "unknown command 'srve'; did you mean serve? (corespun --help shows how)",
  },
  {
    words: ['frobnicate'],
    err: /^unknown command 'frobnicate' \(expected run, serve, host, .+ or profile\)/,
  },
]
for (const [row, { words, err }] of refusals.entries()) {
  test(`refused: corespun ${words.join(' ')}`, { timeout: 60_000, skip: skipOf(row) }, async () => {
    const ended = await corespun(words)
    assert.match(ended.err, /^corespun: [^\n]+\n$/, 'one line')
    const line = ended.err.slice('corespun: '.length, -1)
    if (err instanceof RegExp) assert.match(line, err)
    else assert.equal(line, err)
    assert.deepEqual({ out: ended.out, code: ended.code }, { out: '', code: 2 })
  })
}

test('standard input that is a directory is reported', { timeout: 60_000 }, async () => {
  const directory = openSync(folder)
  try {
    const ended = await corespun(['run', items, '-'], '', { stdio: [directory, 'pipe', 'pipe'] })
    const err = 'corespun: standard input: cannot be read: it is a directory\n'
    assert.deepEqual(ended, { code: 1, signal: null, out: '', err })
  } finally {
    closeSync(directory)
  }
})

// The notice comes after ten seconds, on one Node only.
const loading = { timeout: 60_000, skip: skipOf(1) }
test('a module that keeps loading is reported, and Ctrl-C stops it', loading, async () => {
  const started = start(['run', 'modules/never-loads.mjs', '-', '--timeout', '1s'])
  const notice =
    'corespun: still loading modules/never-loads.mjs: its code, or an await at its top level, ' +
    'has not ended; press Ctrl-C to stop\n'
  await until(started.child.stderr, () => started.err === notice)
  started.child.kill('SIGINT')
  const err = 'corespun: interrupted before the first item\n'
  assert.deepEqual(await started.ended, { code: 130, signal: null, out: '', err })
})

test('a line of 20 million characters goes through when allowed', { timeout: 60_000 }, async () => {
  const words = ['run', chars, '--line-max', '30000000', '-w', '1']
  const ended = await corespun(words, `${'x'.repeat(20_000_000)}\nabc`)
  assert.deepEqual(ended, { code: 0, signal: null, out: '20000000\n3\n', err: '' })
})

test('fifty thousand items: each once, in order', { timeout: 60_000 }, async () => {
  const ended = await corespun(['run', chars, '-n', '-w', '3'], numbers(50_000))
  const lines = ended.out.trimEnd().split('\n')
  const { code, err } = ended
  assert.deepEqual({ code, err, count: lines.length }, { code: 0, err: '', count: 50_000 })
  for (const [index, line] of lines.entries()) {
    assert.equal(line, `{"item":${index + 1},"value":${String(index + 1).length}}`)
  }
})

test('help and version go to standard output', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.equal((await corespun(['--version'])).out, `${version}\n`)
  for (const words of [['--help'], ['help', 'run'], ['run', '--help']]) {
    const ended = await corespun(words)
    assert.match(ended.out, /^corespun.*\n\nUsage: corespun /)
    assert.deepEqual({ err: ended.err, code: ended.code }, { err: '', code: 0 })
  }
  const bare = await corespun([])
  assert.match(bare.err, /Usage: corespun /)
  assert.equal(bare.code, 2)
})

test('a current folder that was removed is one line', { timeout: 60_000 }, async () => {
  const removed = mkdtempSync(join(tmpdir(), 'corespun-cli-'))
  const words = [
    '-c',
    'cd "$1" && rmdir "$1" && exec "$2" "$3" run node:path#basename a',
    'sh',
    removed,
    process.execPath,
    program,
  ]
  const child = spawn('sh', words, { stdio: ['ignore', 'ignore', 'pipe'] })
  let err = ''
  child.stderr.on('data', (text) => (err += text))
  const [code] = await once(child, 'close')
  assert.deepEqual(
    [code, err],
    [2, 'corespun: the current folder: cannot be read: no such file or directory\n'],
  )
})
