/**
 * Stacks of errors that cross threads: the worker's frames, a separator, the frames of who called.
 *
 * Each case compares the functions that a stack names, in order; a separator is written as `-- zone`. The
 * programs at the end check lines: of TypeScript, stripped by Node or by Corespun, and of code with source
 * maps.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { addCaller, hideOwnFrames } from './stacks.ts'
import { zone } from '../index.ts'
import { inZone } from '../api/zones.test.support.ts'

const here = zone.create('stacks', { workers: 2, executor: 'work-stealing', graceMs: 0 })
after(() => here.close())
const index = new URL('../index.js', import.meta.url).href

/** The functions of a stack: names without their object, and separators. */
function framesOf(error: unknown): string[] {
  const lines = ((error as Error).stack ?? '').split('\n').filter((line) => /^ +at /.test(line))
  return lines.map((line) => {
    const zoneName = /^ +at zone "(.+)" \(called from\)$/.exec(line)?.[1]
    if (zoneName !== undefined) return `-- ${zoneName}`
    const name = /^ +at (?:async )?(.+?) \(/.exec(line)?.[1] ?? ''
    return name.split('.').at(-1) as string
  })
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  return assert.fail('must fail')
}

/** The stack of what `body` throws begins with these frames; none of Corespun's own are in it. */
function check(name: string, body: () => Promise<void>, expected: readonly string[]): void {
  test(name, async () => {
    const error = await failure(body())
    assert.deepEqual(framesOf(error).slice(0, expected.length), expected, (error as Error).stack ?? '')
    assert.doesNotMatch((error as Error).stack ?? '', /(zone|bridge|transport)\/\w+\.(js|ts):/)
  })
}

function boom(): never {
  throw new RangeError('boom')
}

check(
  'a function that is awaited',
  async function caller() {
    await here.run(function fails() {
      const deeper = (): never => {
        throw new RangeError('boom')
      }
      deeper()
    })
  },
  ['deeper', 'fails', '-- stacks', 'caller'],
)

check(
  'callers of callers, through promises that are combined',
  async function outer() {
    const inner = async (): Promise<unknown> => await Promise.all([here.run(() => 1), here.execute(boom)])
    await inner().then((value) => value)
  },
  ['boom', '-- stacks', 'all', 'inner', 'outer'],
)

check(
  'an asynchronous function that has waited',
  async function caller() {
    await here.run(async function waits() {
      await new Promise((resolve) => setTimeout(resolve, 1))
      throw new Error('late')
    })
  },
  ['waits', '-- stacks', 'caller'],
)

check(
  'a function of a module',
  async function caller() {
    await here.module<{ readFileSync(path: string): string }>('node:fs').readFileSync('/no/such/file')
  },
  ['openSync', 'readFileSync', '-- stacks', 'caller'],
)

check(
  'a deadline has the stack of its caller alone',
  async function caller() {
    const forever = (): never => {
      for (;;);
    }
    await here.execute(forever, [], { timeoutMs: 20 })
  },
  ['-- stacks', 'caller'],
)

check(
  'and so has the death of a worker',
  async function caller() {
    await here.run(() => process.exit(1))
  },
  ['-- stacks', 'caller'],
)

check(
  'map of an array',
  async function caller() {
    await here.map([1, 2, 3, 4, 5, 6, 7, 8], function fails(item) {
      if (item === 7) throw new Error('seven')
      return item
    })
  },
  ['fails', '-- stacks', 'caller'],
)

test("frames of Node's event loop are not those of a caller", () => {
  const loop = ['process.processTicksAndRejections (node:internal/process/task_queues:95:5)'].concat(
    ['processImmediate', 'listOnTimeout'].map((name) => `process.${name} (node:internal/timers:454:9)`),
  )
  const site = { stack: ['Error', ...loop, 'async caller (file:///caller.js:1:1)'].join('\n    at ') }
  const error = new Error('failed')
  addCaller(error, 'far', site)
  assert.deepEqual(framesOf(error).slice(-2), ['-- far', 'caller'])
  const thrown = new Error('failed')
  thrown.stack = ['Error: failed', 'task (file:///task.js:1:1)', ...loop].join('\n    at ')
  hideOwnFrames(thrown)
  assert.deepEqual(framesOf(thrown), ['task'])
})

check(
  'map of an iterable, at the loop that reads it',
  async function caller() {
    const values = here.map(new Set([1, 2]), function fails() {
      throw new Error('any')
    })
    for await (const _ of values);
  },
  ['fails', '-- stacks', 'caller'],
)

check(
  'a broadcast',
  async function caller() {
    await here.broadcast(boom)
  },
  ['boom', '-- stacks', 'caller'],
)

check(
  'code that is broadcast, blocking',
  async function caller() {
    here.broadcastSync('function broken() { throw new Error("code") } broken()')
  },
  ['broken', '', '-- stacks', 'caller'],
)

check(
  'a task that calls another zone has its frames in the middle',
  async function caller() {
    await inZone({ workers: 1 }, async (other) => {
      await here.run(async function between(there) {
        await there.run(function fails() {
          throw new Error('inner')
        })
      }, other)
    })
  },
  ['fails', '-- test-1', 'between', '-- stacks'],
)

test('a join shows the frames of the worker that took the second side, and its own', async () => {
  const calls = here.module<typeof import('../executors.test.support.ts')>('../executors.test.support.js')
  const error = await failure(calls.failing('second', 50))
  // Whether another worker was quick enough to take it is the machine's business.
  const frames = framesOf(error).filter((frame) => frame !== '-- stacks')
  assert.deepEqual(frames.slice(0, 2), ['perhaps', 'failing'], (error as Error).stack ?? '')
  assert.doesNotMatch((error as Error).stack ?? '', /zone\/(call\/join|worker\/dispatcher)\.js/)
})

test('a call that nobody awaits when it fails has the frames of the worker', async () => {
  const call = here.run(boom)
  call.catch(() => {})
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.deepEqual(framesOf(await failure(call)), ['boom'])
})

test('callStacks takes the stack at the call, for those', async () => {
  await inZone({ workers: 1, callStacks: true }, async (own) => {
    function submit(): Promise<never> {
      return own.run(boom)
    }
    const call = submit()
    call.catch(() => {})
    await own.run(() => 1)
    assert.deepEqual(framesOf(await failure(call)).slice(0, 3), ['boom', `-- ${own.id}`, 'submit'])
  })
})

test('causes and the errors of an AggregateError lose the frames of Corespun too', async () => {
  const error = await failure(
    here.run(() => {
      throw new AggregateError([new Error('a')], 'all', { cause: new Error('b', { cause: new Error('c') }) })
    }),
  )
  const { errors, cause } = error as AggregateError & { cause: Error }
  for (const each of [errors[0] as Error, cause, cause.cause as Error]) {
    assert.equal(framesOf(each).length, 1, each.stack ?? '')
  }
})

test('thrown values other than errors arrive, as do errors that are frozen or have no stack', async () => {
  const thrown = [
    () => {
      throw 'text' // oxlint-disable-line no-throw-literal
    },
    () => {
      throw Object.freeze(new Error('frozen'))
    },
    () => {
      throw Object.assign(new Error('none'), { stack: undefined })
    },
  ]
  const seen = await Promise.all(thrown.map(async (fn) => String(await failure(here.run(fn)))))
  assert.deepEqual(seen, ['text', 'Error: frozen', 'Error: none'])
})

test("a signal's reason is the caller's own and stays as it was", async () => {
  const reason = new Error('enough')
  const stack = reason.stack
  const stop = new AbortController()
  const call = here.execute(() => new Promise(() => {}), [], { signal: stop.signal })
  stop.abort(reason)
  assert.equal(await failure(call), reason)
  assert.equal(reason.stack, stack)
})

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-stacks-')))
after(() => rmSync(folder, { recursive: true }))
const corespun = JSON.stringify(index)

/** Run a program of the folder; what it prints. */
function output(file: string, flags: readonly string[]): string {
  const env = { ...process.env, NODE_OPTIONS: '' }
  return execFileSync(process.execPath, ['--no-warnings', ...flags, join(folder, file)], {
    encoding: 'utf8',
    env,
  })
}

const [major, minor] = process.versions.node.split('.').map(Number) as [number, number]
const strips = major > 22 || (major === 22 && minor >= 18)

test('a task of a TypeScript module shows the line that was written', () => {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, 'task.ts'),
    `interface Padding {
  readonly a: number
}

export function fails(given: Padding): never {
  throw new Error(String(given.a satisfies number))
}
`,
  )
  writeFileSync(
    join(folder, 'typed.mjs'),
    `import { zone } from ${corespun}
const own = zone.create('typed', { workers: 1 })
try { await own.execute('./task.ts', 'fails', [{ a: 1 }]) } catch (error) { console.log(error.stack) }
await own.close()
`,
  )
  // Without the flag Node itself strips, where it can; with it, Corespun does.
  for (const flags of strips ? [[], ['--no-experimental-strip-types']] : [[]]) {
    const text = output('typed.mjs', flags)
    assert.match(text, /at .*fails .*task\.ts:6:9\)\n    at zone "typed" \(called from\)\n.*typed\.mjs:3:/)
  }
})

/** Each line of a program becomes ten lines further down in a file that does not exist. */
function writeMapped(name: string, program: string): void {
  const mappings = `AAUA;${program.replaceAll(/[^\n]+/g, 'AACA').replaceAll('\n', ';')}`
  const map = { version: 3, file: name, sources: [`source-of-${name}.ts`], names: [], mappings }
  writeFileSync(join(folder, name), `${program}//# sourceMappingURL=${name}.map\n`)
  writeFileSync(join(folder, `${name}.map`), JSON.stringify(map))
}

for (const [name, first, exported] of [
  ['mapped.mjs', `import { zone } from ${corespun}`, 'export'],
  ['mapped.cjs', `const { zone } = require(${corespun.replace('file://', '')}); exports.fails = fails`, ''],
] as const) {
  test(`with --enable-source-maps a worker follows the source map of ${name}`, () => {
    const own = JSON.stringify(join(folder, name))
    writeMapped(
      name,
      `${first}
${exported} function fails() {
  throw new Error('export')
}
async function main() {
  const own = zone.create('mapped', { workers: 1 })
  try { await own.run(function inline() { throw new Error('inline') }) } catch (e) { console.log(e.stack) }
  try { await own.execute(${own}, 'fails') } catch (error) { console.log(error.stack) }
  await own.close()
}
if (process.getBuiltinModule('node:worker_threads').isMainThread) main()
`,
    )
    const text = output(name, ['--enable-source-maps'])
    const frame = (fn: string, line: number): string => ` +at .*${fn} .*source-of-${name}\\.ts:${line}:1\\)`
    const pattern = (fn: string, line: number, call: number): RegExp =>
      new RegExp(`${frame(fn, line)}\n +at zone "mapped" \\(called from\\)\n${frame('main', call)}`)
    assert.match(text, pattern('inline', 17, 17))
    assert.match(text, pattern('fails', 13, 18))
  })
}
