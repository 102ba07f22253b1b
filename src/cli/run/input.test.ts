/**
 * Inputs in a folder made for it: what names and patterns expand to, and what arrives from files and streams.
 * Names with brackets, hidden files, links and empty folders are where such code goes wrong.
 */
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import type { CliError } from '../errors.ts'
import { expand, openSource, slashed, type SourcePlan } from './input.ts'

const start = process.cwd()
const folder = mkdtempSync(join(tmpdir(), 'corespun-cli-'))
const files: Readonly<Record<string, string>> = {
  'b.txt': 'b1\nb2\n',
  'a.txt': 'a1\r\na2',
  'sub/c.txt': '',
  'sub/.hidden.txt': 'x',
  'sub/deep/d.js': 'd',
  'odd[1].txt': 'odd',
  'odd(2)/e.txt': 'e',
}

before(() => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  symlinkSync(join(folder, 'sub'), join(folder, 'link'))
  symlinkSync('..', join(folder, 'sub/up'))
  process.chdir(folder)
})
after(() => {
  process.chdir(start)
  rmSync(folder, { recursive: true })
})

const noComplaint = (error: CliError): void => assert.fail(error)

interface Expansion {
  readonly inputs: string[]
  readonly ignored?: string[]
  readonly paths: string[]
}

const expansions: readonly Expansion[] = [
  { inputs: ['b.txt', 'a.txt'], paths: ['b.txt', 'a.txt'] },
  { inputs: ['a.txt', 'a.txt'], paths: ['a.txt'] },
  { inputs: ['*.txt'], paths: ['a.txt', 'b.txt', 'odd[1].txt'] },
  { inputs: ['b.txt', '*.txt'], paths: ['b.txt', 'a.txt', 'odd[1].txt'] },
  { inputs: ['./a.*'], paths: ['a.txt'] },
  { inputs: ['sub'], paths: ['sub/c.txt', 'sub/deep/d.js'] },
  { inputs: ['sub/'], paths: ['sub/c.txt', 'sub/deep/d.js'] },
  { inputs: ['sub/**/*.js', 'sub'], paths: ['sub/deep/d.js', 'sub/c.txt'] },
  { inputs: ['sub'], ignored: ['**/*.js'], paths: ['sub/c.txt'] },
  { inputs: ['link'], paths: ['link/c.txt', 'link/deep/d.js'] },
  { inputs: ['./link/'], paths: ['link/c.txt', 'link/deep/d.js'] },
  { inputs: ['link'], ignored: ['link/deep/**'], paths: ['link/c.txt'] },
  { inputs: ['link/**/*.js'], paths: ['link/deep/d.js'] },
  { inputs: ['link/**'], ignored: ['**/*.js'], paths: ['link/c.txt'] },
  { inputs: ['link/deep'], paths: ['link/deep/d.js'] },
  { inputs: ['sub/up/sub/*.txt'], paths: ['sub/up/sub/c.txt'] },
  { inputs: ['sub/up/odd(2)'], paths: ['sub/up/odd(2)/e.txt'] },
  { inputs: [join(folder, 'link')], paths: [join(folder, 'link/c.txt'), join(folder, 'link/deep/d.js')] },
  { inputs: ['odd[1].txt'], paths: ['odd[1].txt'] },
  { inputs: ['odd(2)'], paths: ['odd(2)/e.txt'] },
  { inputs: ['missing.txt'], paths: ['missing.txt'] },
  { inputs: ['{a,b}.txt'], paths: ['a.txt', 'b.txt'] },
  { inputs: [join(folder, 'a.*')], paths: [join(folder, 'a.txt')] },
  { inputs: ['-'], paths: ['-'] },
]
for (const { inputs, ignored = [], paths } of expansions) {
  test(`${inputs.join(' ').replace(folder, '<folder>')} ignoring [${ignored.join()}]`, async () => {
    assert.deepEqual(await expand(inputs, ignored, noComplaint), paths)
  })
}

test('backslashes separate folders on Windows, and escape what a name may contain', () => {
  const written = String.raw`C:\src\*.ts`
  assert.equal(slashed(written, 'win32'), 'C:/src/*.ts')
  assert.equal(slashed(String.raw`a\b\[1\]\c?.txt`, 'win32'), String.raw`a/b\[1\]/c?.txt`)
  assert.equal(slashed(written, 'linux'), written)
})

test('links are not followed into folders that are not named', async () => {
  assert((await expand(['**/*.js'], [], noComplaint)).every((path) => !path.startsWith('link')))
})

test('a pattern or a folder without a file is an error that names it', async () => {
  mkdirSync('empty')
  for (const input of ['*.none', 'empty']) {
    const error = { code: 'CLI_INPUT_NOT_FOUND', message: `${input}: matches no file` }
    await assert.rejects(expand([input], [], noComplaint), error)
  }
})

/** As a user who may not read everything; root may, until it is somebody else. */
async function asNobody<Value>(work: () => Promise<Value>): Promise<Value> {
  const isRoot = process.geteuid?.() === 0
  if (isRoot) process.seteuid?.(65_534)
  try {
    return await work()
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}

/** Whether somebody else gets as far as this folder: the temporary folder may lie in a private one. */
async function isReachable(path: string): Promise<boolean> {
  return asNobody(() => stat(path)).then(
    () => true,
    () => false,
  )
}

const onPosix = { skip: process.getuid === undefined && 'permissions are others here' }

test('a folder that cannot be read is reported once, and the rest is found', onPosix, async (t) => {
  chmodSync(folder, 0o755)
  if (!(await isReachable(folder))) return t.skip('a folder above the temporary one is private')
  mkdirSync('tree/closed/inner', { recursive: true })
  writeFileSync('tree/closed/x.txt', '')
  writeFileSync('tree/open.txt', '')
  chmodSync('tree', 0o755) // whatever the umask
  chmodSync('tree/closed', 0)
  const reported: string[] = []
  const complain = (error: CliError): void => void reported.push(error.message)
  try {
    const inputs = ['tree', 'tree/**/*.txt']
    assert.deepEqual(await asNobody(() => expand(inputs, [], complain)), ['tree/open.txt'])
    assert.deepEqual(reported, ['tree/closed: cannot be read: permission denied'])
    const absolute = join(folder, 'tree')
    assert.deepEqual(await asNobody(() => expand([absolute], [], complain)), [join(absolute, 'open.txt')])
    assert.equal(reported[1], `${absolute}/closed: cannot be read: permission denied`)
    assert.deepEqual(await asNobody(() => expand(['tree'], ['**/closed/**'], noComplaint)), ['tree/open.txt'])
  } finally {
    chmodSync('tree/closed', 0o755)
    rmSync('tree', { recursive: true })
  }
})

test('links to files are found, dangling ones too, so that reading them reports an error', async () => {
  mkdirSync('links')
  symlinkSync('nowhere', 'links/dangling.txt')
  symlinkSync('../sub', 'links/folder')
  symlinkSync('../a.txt', 'links/file.txt')
  try {
    for (const input of ['links', 'links/*.txt']) {
      const found = ['links/dangling.txt', 'links/file.txt']
      assert.deepEqual(await expand([input], [], noComplaint), found)
    }
    const { items, complaints } = await all({ items: 'paths', inputs: ['links'] })
    assert.deepEqual(items, ['CLI_INPUT_UNREADABLE', 'links/file.txt'])
    assert.deepEqual(complaints, ['links/dangling.txt: cannot be read: no such file or directory'])
  } finally {
    rmSync('links', { recursive: true })
  }
})

/** Everything a source yields: texts, and codes of errors; and the complaints. */
async function all(plan: Partial<SourcePlan>, signal = new AbortController().signal) {
  const complaints: CliError[] = []
  const stdin = Readable.from([])
  const complain = (error: CliError): void => void complaints.push(error)
  const nothing = { inputs: [], ignored: [], skipCount: 0 }
  const usual = { ...nothing, items: 'lines', lineCharsMax: 100, stdin, complain } as const
  const source = await openSource({ ...usual, ...plan })
  const items: string[] = []
  for await (const batch of source.batches(signal)) {
    for (const item of batch) items.push(typeof item === 'string' ? item : item.code)
  }
  return { items, complaints: complaints.map((error) => error.message), source }
}

test('paths: the total is known, and a path that cannot be read is an error and a complaint', async () => {
  const { items, complaints, source } = await all({ items: 'paths', inputs: ['a.txt', 'nope', 'b.txt'] })
  assert.deepEqual(items, ['a.txt', 'CLI_INPUT_UNREADABLE', 'b.txt'])
  assert.deepEqual(complaints, ['nope: cannot be read: no such file or directory'])
  assert.equal(source.total, 3)
})

test('lines: one input after the other, a complaint about a missing one, the fraction read', async () => {
  const { items, complaints, source } = await all({ inputs: ['b.txt', 'nope', 'a.txt'] })
  assert.deepEqual(items, ['b1', 'b2', 'a1', 'a2'])
  assert.deepEqual(complaints, ['nope: cannot be read: no such file or directory'])
  assert.equal(source.total, undefined)
  assert.equal(source.fraction(), undefined)
  assert.equal((await all({ inputs: ['b.txt', 'a.txt'] })).source.fraction(), 1)
})

test('skipped items are neither read nor complained about, across inputs and batches', async () => {
  const paths = await all({ items: 'paths', inputs: ['nope', 'a.txt', 'b.txt'], skipCount: 2 })
  assert.deepEqual([paths.items, paths.complaints, paths.source.total], [['b.txt'], [], 1])
  const lines = await all({ inputs: ['b.txt', 'a.txt'], skipCount: 3 })
  assert.deepEqual(lines.items, ['a2'])
})

test('lines of a file and of standard input, one after the other', async () => {
  const { items, complaints } = await all({ inputs: ['a.txt', '-'], stdin: Readable.from(['x\n', 'y']) })
  assert.deepEqual([items, complaints], [['a1', 'a2', 'x', 'y'], []])
})

test('a letter in two pieces is one letter', async () => {
  const bytes = Buffer.from('é😀\nü')
  const pieces = [...bytes].map((byte) => Buffer.of(byte))
  const { items } = await all({ inputs: ['-'], stdin: Readable.from(pieces) })
  assert.deepEqual(items, ['é😀', 'ü'])
})

test('bytes that are not text become the replacement character', async () => {
  const { items } = await all({ inputs: ['-'], stdin: Readable.from([Buffer.of(0xff, 0x00, 0x41, 0x0a)]) })
  assert.deepEqual(items, ['\uFFFD\0A'])
})

test('an abort ends a source that waits for input, without an error', async () => {
  const stdin = new PassThrough()
  stdin.write('a\n')
  const stop = new AbortController()
  const whole = all({ inputs: ['-'], stdin }, stop.signal)
  setImmediate(() => stop.abort())
  const { items, complaints } = await whole
  assert.deepEqual(complaints, [])
  assert(items.length <= 1)
})

test('standard input that breaks is a complaint', async () => {
  const stdin = Readable.from(
    (function* () {
      yield 'a\n'
      throw Object.assign(new Error('EISDIR'), { code: 'EISDIR' })
    })(),
  )
  const { items, complaints } = await all({ inputs: ['-'], stdin })
  assert.deepEqual(items, ['a'])
  assert.deepEqual(complaints, ['standard input: cannot be read: it is a directory'])
})
