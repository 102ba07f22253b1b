/**
 * The kinds of modules, as docs/guide/tools.md lists them: each runs, or its error contains what the table
 * recommends, wherever Corespun loads it: `corespun run`, a task, a `setup`, an app, a host of a fleet.
 *
 * The project is one of `npm init -y`, so its package.json has "type": "commonjs".
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { inRoot } from '../../scripts/set-up/index.mjs'
import { corespun, skipOf } from './corespun.mjs'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-kinds-')))
after(() => rmSync(folder, { recursive: true, force: true }))

const TYPED = `import { sep } from 'node:path'
export const twice = (x: string): string => x + x + sep.slice(1)
export const setup = (): string => twice('a')
export const app = { routes: { '/': (): string => twice('a') } }
`
const PLAIN = TYPED.replaceAll(/: string|\(\): string/g, (type) => type.replace(': string', ''))
const COMMON = PLAIN.replace(/import .*/, "const { sep } = require('node:path')").replaceAll(
  /export const (\w+) =/g,
  'const $1 = exports.$1 =',
)
const EXPORTS =
  "export const setup = () => twice('a')\nexport const app = { routes: { '/': () => twice('a') } }\n"
const importing = (name) => `import { twice } from '${name}'\nexport { twice }\n${EXPORTS}`
const typed = (before) => `${before}\n${TYPED}`

/** By the first cell of a row of the table: the file of the module, and its text. */
const KINDS = {
  '`.mts`': ['tasks.mts', TYPED],
  '`.mjs`': ['tasks.mjs', PLAIN],
  '`.cts` with `require` and `exports`': ['tasks.cts', COMMON.replace('(x)', '(x: string)')],
  '`.cjs`, `.js` with `require` and `exports`': ['common.js', COMMON],
  '`.cjs` that a compiler has made of an ES module': [
    'compiled.cjs',
    `Object.defineProperty(exports, '__esModule', { value: true })\n${COMMON}exports.routes = app.routes\n`,
  ],
  '`.ts` in a folder with `"type": "module"`': ['modules/tasks.ts', TYPED],
  '`.ts` with `import` and `export`': ['tasks.ts', TYPED],
  '`.js` with `import` and `export`': ['tasks.js', PLAIN],
  '`.cts` with `import` and `export`': ['esm.cts', TYPED],
  '`.tsx`, `.jsx`': ['tasks.tsx', typed('export const Page = () => <p/>')],
  'an enum': ['enum.mts', typed('enum Size { small, large }')],
  'a parameter property': ['property.mts', typed('export class Job { constructor(readonly id: string) {} }')],
  'a namespace with values': ['namespace.mts', typed('namespace Sizes { export const small = 1 }')],
  'a decorator': ['decorator.mts', typed('const sealed = (on: unknown) => on\n@sealed\nexport class Job {}')],
  "an import of './tasks.js' where the file is tasks.ts": ['named.mts', importing('./modules/tasks.js')],
  'an import without an extension': ['bare.mts', importing('./modules/tasks')],
  'an import of a folder': ['index.mts', importing('./modules')],
  'a path of tsconfig.json': ['alias.mts', importing('@lib/tasks.ts')],
  'a type that is imported as a value': ['type.mts', typed("import { Size } from './modules/size.ts'")],
  'TypeScript in node_modules': ['packed.mts', importing('packed')],
}
const FILES = {
  'package.json': '{ "name": "project", "type": "commonjs" }',
  'tsconfig.json': '{ "compilerOptions": { "paths": { "@lib/*": ["./modules/*"] } } } // as editors make it',
  'modules/package.json': '{ "type": "module" }',
  'modules/index.ts': "export { twice } from './tasks.ts'\n",
  'modules/size.ts': 'export type Size = number\n',
  'node_modules/packed/package.json': '{ "type": "module", "exports": "./index.ts" }',
  'node_modules/packed/index.ts': TYPED,
  'all.mjs': `import { connect, host } from 'corespun/fleet'
import { serve } from 'corespun/http'
import { zone } from 'corespun/zone'
import 'corespun/typescript'

const ways = {
  task: (url, cpu) => cpu.execute(url, 'twice', ['a']).then(({ value }) => value),
  async setup(url) {
    const own = zone.create('own', { workers: 1, setup: url })
    const state = async () => (await import('corespun/zone')).workerState()
    return own.run(state).finally(() => own.close())
  },
  async app(url, cpu) {
    const server = await serve({ zone: cpu, app: url, port: 0, quiet: true })
    return fetch(server.url).then((response) => response.text()).finally(() => server.close())
  },
  async host(url, cpu) {
    const fleet = await connect('memory:')
    const hosting = await host(fleet, { name: 'tasks', module: url, zone: cpu })
    return fleet.zone('tasks').run('twice', ['a']).finally(() => hosting.close().then(() => fleet.close()))
  },
}
const cpu = zone.create('cpu', { workers: 1 })
const ends = {}
for (const file of process.argv.slice(2)) {
  const url = new URL(file, import.meta.url).href
  ends[file] = {}
  for (const [name, way] of Object.entries(ways))
    ends[file][name] = await way(url, cpu).catch(({ code, message }) => ({ code, message }))
}
console.log(JSON.stringify(ends))
await cpu.close()
`,
}

const guide = readFileSync(inRoot('docs', 'guide', 'modules.md'), 'utf8')
const rows = [...guide.matchAll(/^\| (.+?) \| (runs|is refused) \|(.*?) ?\|$/gm)]

let ends = {}
before(() => {
  for (const [name, text] of [...Object.entries(FILES), ...Object.values(KINDS)]) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  symlinkSync(inRoot(), join(folder, 'node_modules', 'corespun'))
  const files = rows.filter((_, row) => !skipOf(row)).map(([, kind]) => `./${KINDS[kind][0]}`)
  const options = { cwd: folder, encoding: 'utf8' }
  ends = JSON.parse(execFileSync(process.execPath, ['--no-warnings', 'all.mjs', ...files], options))
})

test('the table has a row for each kind', () => {
  assert.deepEqual(rows.map(([, kind]) => kind).sort(), Object.keys(KINDS).sort())
})

for (const [row, [, kind, result, remedy]] of rows.entries()) {
  test(`${kind} ${result}`, { skip: skipOf(row) }, async () => {
    const [file] = KINDS[kind]
    const check = (end, way, expected) => {
      if (result === 'runs') return assert.deepEqual(end, expected, way)
      const message = end.message ?? end.err
      for (const part of remedy.replaceAll('`', '').split(' … '))
        assert.ok(message.includes(part), `${way}: ${message} has no ${part}`)
      assert.ok(message.includes(file.split('/').at(-1)), `${way}: ${message} has not the file`)
    }
    for (const [way, end] of Object.entries(ends[`./${file}`])) {
      check(end, way, 'aa')
      if (result !== 'runs') assert.equal(end.code, way === 'app' ? 'HTTP_APP' : CODES[way], way)
    }
    const { code, out, err } = await corespun(['run', `./${file}#twice`], 'a\n', { cwd: folder })
    check(result === 'runs' ? { code, out } : { err }, 'run', { code: 0, out: '"aa"\n' })
  })
}

const CODES = { task: 'FUNCTION_MODULE', setup: 'SETUP_FAILED', host: 'FUNCTION_MODULE' }

test('corespun host refuses a module that does not load, before it connects', async () => {
  const words = ['host', './tasks.ts', '--nats', 'nats://127.0.0.1:1']
  const { code, out, err } = await corespun(words, '', { cwd: folder })
  assert.deepEqual([code, out], [2, ''])
  assert.match(err, /^corespun: \.\/tasks\.ts: failed to load: .*; tasks\.ts is CommonJS, .* tasks\.mts$/m)
})

const ONLY = 'const at: number = 1\nexports.size = (x: string): number => x.length + at\n'
const ESM = `${ONLY.replace('exports.size', 'export const size')}export default { routes: {} }\n`
const MADE = `Object.defineProperty(exports, '__esModule', { value: true })\n${ONLY}`
for (const [name, text, ...expected] of [
  ['the only function of a CommonJS module', ONLY, 0, '4\n', /^/],
  ['the default of one that a compiler has made', `${MADE}exports.default = () => 7\n`, 0, '7\n', /^/],
  ['not what is beside a default', ESM, 2, '', /not a function but an object; use \S+#size$/m],
  [
    'neither of two',
    `${ONLY}exports.other = exports.size\n`,
    2,
    '',
    /not a function but .*; use \S+#other or /,
  ],
])
  test(`corespun run without the name of an export takes ${name}`, async () => {
    const file = text === ESM ? './unnamed.mts' : './unnamed.cts'
    writeFileSync(join(folder, file), text)
    const { code, out, err } = await corespun(['run', file], 'abc\n', { cwd: folder })
    assert.deepEqual([code, out], expected.slice(0, 2))
    assert.match(err, expected[2])
  })
