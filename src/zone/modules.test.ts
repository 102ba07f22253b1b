/**
 * Modules and files in workers: exports by name, `module()`, `import`, `import.meta` and `require`.
 *
 * A relative name is that of the file in which the function or the call is written.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FunctionError } from '../transport/index.ts'
import { type Zone, zone } from './index.ts'

const here = zone.create('modules', { workers: 2 })
after(() => here.close())

const MODULE = new URL('../../test/zone/modules/math.mjs', import.meta.url)

test('an export of a module by URL, by path and relative to the caller', async () => {
  for (const name of [MODULE, MODULE.href, fileURLToPath(MODULE), '../../test/zone/modules/math.mjs']) {
    const result = await here.execute(name, 'add', [2, 3])
    assert.equal(result.value, 5)
  }
  assert.equal((await here.execute(MODULE, 'later', [2])).value, 3)
  assert.equal((await here.execute(MODULE, 'default', [2])).value, 4)
  assert.equal((await here.execute('node:path', 'basename', ['/a/b.c'])).value, 'b.c')
})

test('a module, an export or a kind that is not there is an error that names it', async () => {
  const cases: [string | URL, string, string, RegExp][] = [
    [new URL('./none.mjs', MODULE), 'f', 'FUNCTION_MODULE', /none\.mjs/],
    [MODULE, 'none', 'FUNCTION_EXPORT_MISSING', /"none"; its exports: .*add/],
    [MODULE, 'five', 'FUNCTION_EXPORT_KIND', /"five" .* is 5, not a function/],
    ['data:text/javascript,export function f( {', 'f', 'FUNCTION_MODULE', /Unexpected/],
    [
      'data:text/javascript,throw new Error("thrown while it was loaded")',
      'f',
      'FUNCTION_MODULE',
      /thrown while/,
    ],
  ]
  for (const [module, name, code, words] of cases) {
    await assert.rejects(here.execute(module, name), (error: FunctionError) => {
      assert.ok(error instanceof Error)
      assert.equal(error.code, code)
      assert.match(error.message, words)
      return true
    })
  }
})

test('the module of the first task of a worker may register the classes of its arguments', async () => {
  const url = new URL('./classed.test.support.js', import.meta.url)
  const { Amount } = (await import(url.href)) as typeof import('./classed.test.support.ts')
  for (const isolation of ['thread', 'process'] as const) {
    const fresh = zone.create(`classed-${isolation}`, { workers: 1, isolation })
    try {
      const broken = 'data:text/javascript,throw new Error("thrown while it was loaded")'
      await assert.rejects(fresh.execute(broken, 'f', [new Amount(1)]), { code: 'FUNCTION_MODULE' })
      const { centsOf, later } = fresh.module<typeof import('./classed.test.support.ts')>(url)
      // All are sent before the module is imported, so each must have a copy of its frame.
      const sums = Array.from({ length: 20 }, (_, n) => centsOf(new Amount(n), new Amount(1000)))
      const large = centsOf(
        ...(Array.from({ length: 5000 }, () => new Amount(1)) as [InstanceType<typeof Amount>]),
      )
      assert.deepEqual(
        await Promise.all(sums),
        [...sums.keys()].map((n) => n + 1000),
      )
      assert.equal(await large, 5000)
      assert.ok((await later(new Amount(3))) instanceof Amount)
    } finally {
      await fresh.close()
    }
  }
})

test('an export is a value for threads that have not imported its module', async () => {
  const passes = new URL('./passes.test.support.js', import.meta.url)
  const [one, other] = ['passing', 'passed'].map((id) => zone.create(id, { workers: 1 }))
  const called = async (name: string, ...args: unknown[]): Promise<unknown> =>
    (await one.execute(passes, name, args)).value
  try {
    assert.equal(await called('passed', 'passed', 'increment'), 2)
    assert.deepEqual(await called('streamed', 'passed'), [2, 4])
    assert.equal(((await called('returned')) as (value: number) => number)(4), 5)
    const fresh = zone.create('passed-later', { workers: 1 })
    try {
      await assert.rejects(called('passed', 'passed-later', 'counted'), (error: FunctionError) => {
        assert.equal(error.code, 'FUNCTION_MODULE')
        assert.match(
          error.message,
          /passes\.test\.support\.js .*its export "counted" .*import it here before/,
        )
        return true
      })
      await fresh.execute(passes, 'increment', [1])
      assert.equal(await called('passed', 'passed-later', 'counted'), 2)
    } finally {
      await fresh.close()
    }
  } finally {
    await one.close()
    await other.close()
  }
})

test('module() returns typed functions, loads at the first call, and is not a promise', async () => {
  const math = here.module<{
    add(a: number, b: number): number
    later(a: number): Promise<number>
    none(): void
  }>(MODULE)
  assert.equal(await math, math)
  assert.equal(math.add, math.add)
  assert.equal(await math.add(1, 2), 3)
  assert.equal(await math.later(1), 2)
  await assert.rejects(math.none(), { code: 'FUNCTION_EXPORT_MISSING' })
  const missing = here.module<{ f(): void }>('./not-there.mjs')
  await assert.rejects(missing.f(), { code: 'FUNCTION_MODULE' })
  assert.equal((math as Record<symbol, unknown>)[Symbol.iterator], undefined)
})

test('import() and import.meta work inside, relative to the file of the function', async () => {
  const url = await here.run(() => import.meta.url)
  assert.equal(url, import.meta.url)
  const keys = await here.run(async () => Object.keys(await import('./ground/settings.js')))
  assert.ok(keys.includes('parseSettings'))
  assert.equal(await here.run(() => import.meta.resolve('./x.js')), new URL('./x.js', import.meta.url).href)
})

test('require in broadcast code is relative to the file that broadcasts it, in any order', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-require-'))
  try {
    const loads = ['a', 'b'].map((name) => {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'config.cjs'), `module.exports = 'config of ${name}'`)
      const code =
        `var now_${name} = require("./config.cjs"); var later_${name} = () => require("./config.cjs");` +
        `var path_${name} = () => require.resolve("./config.cjs")`
      writeFileSync(
        join(folder, name, 'load.cjs'),
        `exports.load = (z) => z.broadcast(${JSON.stringify(code)})`,
      )
      return createRequire(import.meta.url)(join(folder, name, 'load.cjs')) as {
        load(z: Zone): Promise<void>
      }
    })
    for (const order of [loads, [...loads].reverse()]) {
      const own = zone.create('requires', { workers: 1 })
      for (const each of order) await each.load(own)
      const found = await own.run(() => {
        const there = globalThis as unknown as Record<string, unknown> & Record<string, () => string>
        return ['a', 'b'].map((name) => [
          there[`now_${name}`],
          there[`later_${name}`]?.(),
          there[`path_${name}`]?.().endsWith(`/${name}/config.cjs`),
        ])
      })
      assert.deepEqual(found, [
        ['config of a', 'config of a', true],
        ['config of b', 'config of b', true],
      ])
      await own.close()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})
