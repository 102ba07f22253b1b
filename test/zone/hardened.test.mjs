/**
 * Zones where the program, or Node, has locked the language's own objects, or replaced their methods.
 *
 * Each test is a program of its own. It prints what its calls ended with and exits with 0: an error in a
 * callback of the core would end it with 1.
 */
import { test } from 'node:test'
import { skipOf } from '../../dist/base/part.test.support.js'
import { check } from './run.mjs'

const side = { concurrency: 2 }

/** Calls whose errors are made by a task, in a callback of the caller's thread, by the owner, at the call. */
const CALLS = `
  const shown = (error) => error.code ?? error.name + ' ' + error.message
  const of = (promise) => promise.catch(shown)
  console.log(await of(z.run((n) => n + 1, 41)))
  console.log(await of(z.run(() => { throw new RangeError('of a task') })))
  console.log(await of(z.execute(() => new Promise(() => {}), [], { timeoutMs: 1 })))
  console.log(await of(z.execute('./not-there.mjs', 'f')))
  console.log(await of(z.run(() => process.exit(7))))
  console.log(await of(z.run((n) => n + 1, 1)))
  await z.close()
`
const OUT = '42\nRangeError of a task\nTASK_TIMEOUT\nFUNCTION_MODULE\nWORKER_DIED\n2'

const ACCESSOR = `{ configurable: true, get() { throw 'mine' }, set() { throw 'mine' } }`

/** What the program does before its calls, and Node's flags. @type {[string, string, string[]?][]} */
const HARDENED = [
  ['a frozen Error', 'Object.freeze(Error)'],
  ['a locked stack limit', `Object.defineProperty(Error, 'stackTraceLimit', { value: 10, writable: false })`],
  ['an Error without a stack limit', 'delete Error.stackTraceLimit; Object.preventExtensions(Error)'],
  ['--frozen-intrinsics', '', ['--frozen-intrinsics']],
  ['a stack limit that throws', `Object.defineProperty(Error, 'stackTraceLimit', ${ACCESSOR})`],
  ['a prepareStackTrace that throws', `Error.prepareStackTrace = () => { throw new Error('mine') }`],
  [
    'a prepareStackTrace that cannot be read',
    `Object.defineProperty(Error, 'prepareStackTrace', ${ACCESSOR})`,
  ],
  [
    'a prepareStackTrace that can be neither read nor replaced',
    `Object.defineProperty(Error, 'prepareStackTrace', { ...${ACCESSOR}, configurable: false })`,
  ],
]
for (const [row, [name, lock, flags = []]] of HARDENED.entries()) {
  test(`calls end with their own errors under ${name}`, { ...side, skip: skipOf(row) }, () =>
    check(`const z = zone.create('z', { workers: 1, graceMs: 100 }); ${lock}\n${CALLS}`, {
      out: OUT,
      flags: ['--no-warnings', ...flags],
    }),
  )
}

test('a task whose thread has made stacks throw fails with its own error', side, () =>
  check(
    `const z = zone.create('z', { workers: 1 })
     const shown = (error) => error.name + ' ' + error.message
     console.log(await z.run(() => {
       Error.prepareStackTrace = () => { throw new Error('mine') }
       throw new RangeError('of a task')
     }).catch(shown))
     const late = z.execute(() => new Promise(() => {}), [], { timeoutMs: 1 })
     console.log(await late.catch((error) => error.code))
     console.log(await z.broadcast(() => { throw new TypeError('of a broadcast') }).catch(shown))
     await z.close()`,
    { out: 'RangeError of a task\nTASK_TIMEOUT\nTypeError of a broadcast' },
  ),
)

test('the module of a caller is found without stacks as objects', side, () =>
  check(
    `import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
     import { join } from 'node:path'
     import { tmpdir } from 'node:os'
     const folder = mkdtempSync(join(tmpdir(), 'corespun-'))
     writeFileSync(join(folder, 'work.mjs'), 'export const twice = (n) => n * 2')
     const caller = "export const call = (z) => z.execute('./work.mjs', 'twice', [21])"
     writeFileSync(join(folder, 'caller.mjs'), caller)
     const z = zone.create('z', { workers: 1 })
     const { call } = await import(join(folder, 'caller.mjs'))
     Object.freeze(Error)
     console.log((await call(z)).value)
     await z.close()
     rmSync(folder, { recursive: true })`,
    { out: '42' },
  ),
)

test('results arrive where Array.prototype.push throws, and a call that needs it fails alone', side, () =>
  check(
    `import { writeSync } from 'node:fs'
     const z = zone.create('z', { workers: 1 })
     const add = (n) => n + 1
     await z.run(add, 1)
     Array.prototype.push = () => { throw new TypeError('no push') }
     writeSync(1, await z.run(add, 41) + '\\n')
     writeSync(1, await z.run((n) => n + 2, 1).catch((error) => error.message) + '\\n')
     writeSync(1, await z.run(add, 42) + '\\n')
     await z.close()`,
    { out: /^42\nthe source of .* cannot be read: .*replaced: no push\n43$/ },
  ),
)
