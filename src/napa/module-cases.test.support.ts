/**
 * The cases of modules (32), which napajs loads itself, and of timers (7).
 *
 * Functions are sent with an `origin` in a folder of their own, whose modules they require.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as napa from './index.ts'
import { type Case, HOME, WORKER, within } from './cases.test.support.ts'
import type { AnyFunction } from './values.ts'

/** A folder with the modules. Removed at the end of the test. */
export const FOLDER = mkdtempSync(join(tmpdir(), 'corespun-napa-'))
const FILES = {
  'module.cjs': 'exports.wasLoaded = true',
  'data.json': '{ "one": 1 }',
  'cycle-a.cjs': "exports.done = false; exports.done = require('./cycle-b.cjs').done",
  'cycle-b.cjs': "exports.done = require('./cycle-a.cjs').done === false",
  'node_modules/file.js': 'exports.file = true',
  'below/file.js': 'exports.file = true',
}
mkdirSync(join(FOLDER, 'node_modules'))
mkdirSync(join(FOLDER, 'below'))
for (const [name, text] of Object.entries(FILES)) writeFileSync(join(FOLDER, name), text)

const ADDON = 'a C++ add-on of napajs (.napa)'

/** A function of a file in the folder. */
function inFolder(name: string, fn: AnyFunction): Case {
  return within(name, Object.assign(fn, { origin: join(FOLDER, 'program.js') }))
}

const loading: Case[] = [
  inFolder('a JavaScript module', () => {
    require('node:assert').equal(require('./module.cjs').wasLoaded, true)
  }),
  { name: 'a module from a string', needs: "`require(path, source)`: Node's require has one argument" },
  inFolder('a JSON module', () => {
    require('node:assert').deepEqual(require('./data.json'), { one: 1 })
  }),
  { name: 'an add-on', needs: ADDON },
  { name: 'an object wrap of an add-on', needs: ADDON },
  inFolder('a circle', () => {
    const [a, b] = [require('./cycle-a.cjs'), require('./cycle-b.cjs')]
    require('node:assert').deepEqual([a.done, b.done], [true, true])
  }),
  inFolder('a module that does not exist', () => {
    require('node:assert').throws(() => require('./none.cjs'), { code: 'MODULE_NOT_FOUND' })
  }),
  { name: 'require.resolve, also of .napa', needs: ADDON },
]

const processes: Case[] = [
  within('argv', () => {
    require('node:assert').match(process.argv[0], /node/)
  }),
  within('execPath', () => {
    require('node:assert').match(process.execPath, /node/)
  }),
  within('env', () => {
    process.env['CORESPUN_NAPA_TEST'] = 'set'
    require('node:assert').equal(process.env['CORESPUN_NAPA_TEST'], 'set')
  }),
  within(
    'platform',
    (platform: string) => {
      require('node:assert').equal(process.platform, platform)
    },
    [process.platform],
  ),
  { name: 'umask', needs: 'Node forbids process.umask(mask) in threads, which have one mask together' },
  { name: 'chdir', needs: 'Node forbids process.chdir() in threads, which have one folder together' },
  within(
    'pid',
    (pid: number) => {
      require('node:assert').equal(process.pid, pid)
    },
    [process.pid],
  ),
]

const files: Case[] = [
  inFolder('existsSync', () => {
    const { existsSync } = require('node:fs') as typeof import('node:fs')
    require('node:assert').deepEqual(
      [existsSync(`${__dirname}/module.cjs`), existsSync(`${__dirname}/none`)],
      [true, false],
    )
  }),
  inFolder('readFileSync', () => {
    const text = require('node:fs').readFileSync(`${__dirname}/data.json`, 'utf8')
    require('node:assert').deepEqual(JSON.parse(text), { one: 1 })
  }),
  inFolder('mkdirSync', () => {
    const { existsSync, mkdirSync } = require('node:fs') as typeof import('node:fs')
    mkdirSync(`${__dirname}/made`)
    require('node:assert').ok(existsSync(`${__dirname}/made`))
  }),
  inFolder('writeFileSync', () => {
    const { readFileSync, writeFileSync } = require('node:fs') as typeof import('node:fs')
    writeFileSync(`${__dirname}/written`, 'test')
    require('node:assert').equal(readFileSync(`${__dirname}/written`, 'utf8'), 'test')
  }),
  { name: 'readdirSync of a folder made twice', needs: "Node's mkdirSync refuses a folder that exists" },
]

const paths: Case[] = [
  { name: 'normalize with \\ as separator', needs: 'Node: a file name may contain \\ where / separates' },
  within('resolve', () => {
    const { resolve } = require('node:path').posix as typeof import('node:path')
    require('node:assert').deepEqual(
      [resolve('/foo/bar', 'a.txt'), resolve('abc', '/a.txt')],
      ['/foo/bar/a.txt', '/a.txt'],
    )
  }),
  within('join', () => {
    require('node:assert').equal(
      require('node:path').posix.join('/foo', 'bar', 'baz/asdf', 'quux', '..'),
      '/foo/bar/baz/asdf',
    )
  }),
  within('dirname', () => {
    require('node:assert').equal(require('node:path').posix.dirname('/etc/passwd'), '/etc')
  }),
  within('basename', () => {
    require('node:assert').equal(require('node:path').posix.basename('/test//abc.txt', '.txt'), 'abc')
  }),
  within('extname', () => {
    require('node:assert').equal(require('node:path').posix.extname('/test/a.json.txt'), '.txt')
  }),
  within('isAbsolute', () => {
    const { isAbsolute } = require('node:path').posix as typeof import('node:path')
    require('node:assert').deepEqual(['/test/..', '../abc', 'abc'].map(isAbsolute), [true, false, false])
  }),
  within('relative', () => {
    require('node:assert').equal(
      require('node:path').posix.relative('/test/a', '/test1/b/../c'),
      '../../test1/c',
    )
  }),
  within(
    'sep',
    (sep: string) => {
      require('node:assert').equal(require('node:path').sep, sep)
    },
    [join('a', 'b')[1]],
  ),
]

/** In the order of napajs's test/module-test.ts. */
export const MODULE_CASES: readonly Case[] = [
  ...loading,
  ...processes,
  ...files,
  ...paths,
  within(
    'os.type',
    (type: string) => {
      require('node:assert').equal(require('node:os').type(), type)
    },
    [process.getBuiltinModule('node:os').type()],
  ),
  { name: 'async work of an add-on', needs: ADDON },
  { name: 'async work of an add-on in the same thread', needs: ADDON },
]

function timer(name: string, fn: string, arg: number, expected: unknown): Case {
  const run = async (): Promise<void> => {
    const { value } = await napa.zone.get(HOME).execute(WORKER, fn, [arg])
    assert.equal(value, expected)
  }
  return { name, run }
}

/** In the order of napajs's test/timer-test.ts. */
export const TIMER_CASES: readonly Case[] = [
  ...[0, 1, 2].map((group) => timer(`setImmediate, group ${group}`, 'immediates', group, '0,2,3')),
  ...[0, 1, 2].map((group) => timer(`setTimeout, group ${group}`, 'timeouts', 5 + group, '0,2,3')),
  timer('setInterval', 'intervals', 4, 4),
]
