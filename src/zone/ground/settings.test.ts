/**
 * The door: every setting and argument with values at, inside and beyond its bounds.
 *
 * The oracle is the table: what is taken is found again in `settings`, what is not names the setting and
 * shows what was received. No worker starts here.
 */
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { argumentsOf, exportOf, optionsOf } from '../api/arguments.ts'
import { ZoneError } from '../errors.ts'
import { type ZoneOptions, parseId, parseSettings } from './settings.ts'

/** What `body` throws must be a ZONE_ARGUMENT about `name` that shows `received`. */
function refuses(body: () => unknown, name: string, received: string): void {
  assert.throws(body, (error) => {
    assert.ok(error instanceof ZoneError && error.code === 'ZONE_ARGUMENT', String(error))
    const facts = error.facts as {
      name: string
      received: string
      expected: string
      verb?: string
    }
    assert.deepEqual([facts.name, facts.received], [name, received])
    const wrong = `${name} ${facts.verb ?? 'must be'} ${facts.expected}; received ${received}`
    const unknown = `${name.replace(/[\w.]+$/, 'unknown option "$&"')}; ${facts.expected}`
    assert.equal(error.message, 'unknown' in facts ? unknown : wrong)
    return true
  })
}

/** Bounds of each number: least, most. */
const NUMBERS: [keyof ZoneOptions, number, number][] = [
  ['workers', 1, 1024],
  ['tasksMax', 1, 2 ** 31 - 1],
  ['tasksPerTenantMax', 1, 2 ** 31 - 1],
  ['queueBytesMax', 0, 2 ** 40],
  ['tasksPerWorkerMax', 1, 65_536],
  ['spinUs', 0, 1000],
  ['nice', 0, 19],
  ['graceMs', 0, 2 ** 31 - 1],
  ['closeMs', 0, 2 ** 31 - 1],
  ['hookMs', 1, 2 ** 31 - 1],
  ['heapMbMax', 4, 2 ** 20],
]

for (const [name, least, most] of NUMBERS) {
  test(`${name} is an integer from ${least} to ${most}; anything else is refused by name`, () => {
    for (const right of [least, most]) assert.equal(parseSettings({ [name]: right })[name], right)
    const wrong: [unknown, string][] = [
      [least - 1, String(least - 1)],
      [most + 1, String(most + 1)],
      [least + 0.5, String(least + 0.5)],
      [NaN, 'NaN'],
      [Infinity, 'Infinity'],
      ['5', '"5"'],
      [null, 'null'],
      [5n, '5n'],
      [true, 'true'],
      ...(name === 'workers' ? [] : ([[{}, 'a plain object']] as [unknown, string][])),
      [Symbol('five'), 'Symbol(five)'],
      [function five() {}, 'function five'],
    ]
    for (const [value, shown] of wrong)
      refuses(() => parseSettings({ [name]: value }), `zone.create(): ${name}`, shown)
  })
}

const OTHERS: [string, unknown[], [unknown, string][]][] = [
  [
    'executor',
    ['fixed', undefined],
    [
      ['stealing', '"stealing"'],
      [null, 'null'],
      [1, '1'],
    ],
  ],
  [
    'execArgv',
    [[], ['--no-warnings'], undefined],
    [
      ['--no-warnings', '"--no-warnings"'],
      [[1], 'an array of 1'],
      [null, 'null'],
      [{}, 'a plain object'],
    ],
  ],
  [
    'env',
    [{}, { A: '1' }, undefined],
    [
      [{ A: 1 }, 'a plain object'],
      [null, 'null'],
      ['A=1', '"A=1"'],
      [{ A: undefined }, 'a plain object'],
    ],
  ],
]

for (const [name, right, wrong] of OTHERS) {
  test(`${name} is taken and refused by the same rules`, () => {
    for (const value of right) {
      const parsed = parseSettings({ [name]: value }) as unknown as Record<string, unknown>
      assert.deepEqual(parsed[name], value ?? (name === 'executor' ? 'fixed' : null))
    }
    for (const [value, shown] of wrong)
      refuses(() => parseSettings({ [name]: value }), `zone.create(): ${name}`, shown)
  })
}

test('what is absent, or undefined, has the documented default', () => {
  const expected = {
    executor: 'fixed',
    workers: availableParallelism(),
    tasksMax: 1_000_000,
    tasksPerTenantMax: null,
    queueBytesMax: 1024 ** 3,
    tasksPerWorkerMax: 1,
    waitingPerWorkerMax: 1024,
    spinUs: 50,
    nice: 0,
    graceMs: 1000,
    closeMs: 30_000,
    setup: null,
    teardown: null,
    hookMs: 30_000,
    heapMbMax: null,
    isolation: 'thread',
    memoryMbMax: null,
    callStacks: false,
    execArgv: null,
    env: null,
    weak: false,
  }
  const fixed = { taskBytesMax: 256 * 1024 ** 2, broadcastsMax: 10_000, callDepthMax: 4096 }
  const grows = { workersMax: availableParallelism(), idleMs: 60_000 }
  const never = { workerTasksMax: null, workerHeapMbMax: null }
  const all = { ...expected, ...fixed, ...grows, ...never, aheadMax: 4096, aheadBytesMax: 1_048_576 }
  assert.deepEqual(parseSettings({}), all)
  assert.deepEqual(
    parseSettings(Object.fromEntries(Object.keys(expected).map((name) => [name, undefined]))),
    all,
  )
})

test('one task may have 256 MiB of the queue, or a quarter of it, at most 1 GiB', () => {
  const MEBI = 1024 ** 2
  for (const [queueBytesMax, taskBytesMax] of [
    [0, 0],
    [10_000, 10_000],
    [256 * MEBI, 256 * MEBI],
    [1024 * MEBI, 256 * MEBI],
    [1024 * MEBI + 5, 256 * MEBI + 1],
    [4096 * MEBI, 1024 * MEBI],
    [2 ** 40, 1024 * MEBI],
  ])
    assert.equal(parseSettings({ queueBytesMax }).taskBytesMax, taskBytesMax)
})

test('each executor has its own workers', () => {
  const cores = availableParallelism()
  // Where a quota is below the number of cores, Node 20 does not read it.
  const allowed = parseSettings({ workers: { min: 1 } }).workersMax
  assert.ok(allowed >= 1 && allowed <= cores, String(allowed))
  const rows: [ZoneOptions, number, number][] = [
    [{ executor: 'work-stealing' }, cores, cores],
    [{ executor: 'work-stealing', workers: { min: 3 } }, 3, 3],
    [{ executor: 'blocking' }, 1, 64],
    [{ executor: 'blocking', workers: { min: 3, max: 3 } }, 3, 3],
    [{ executor: 'blocking', workers: 3 }, 3, 64],
    [{ executor: 'cached' }, 0, 64],
    [{ executor: 'cached', workers: 100 }, 100, 100],
    [{ executor: 'cached', workers: { idleMs: 5 } }, 0, 64],
    [{ workers: 3 }, 3, 3],
    [{ workers: {} }, allowed, allowed],
    [{ workers: { tasks: 5 } }, allowed, allowed],
    [{ workers: { max: 7 } }, 1, 7],
    [{ workers: { min: 1024 } }, 1024, 1024],
    [{ workers: { min: 2, max: 5, idleMs: 7 } }, 2, 5],
  ]
  for (const [given, workers, workersMax] of rows) {
    const parsed = parseSettings(given)
    assert.deepEqual([parsed.workers, parsed.workersMax], [workers, workersMax], JSON.stringify(given))
  }
  const { idleMs, workerTasksMax, workerHeapMbMax } = parseSettings({
    workers: { idleMs: 7, tasks: 1, heapMb: 200 },
  })
  assert.deepEqual([idleMs, workerTasksMax, workerHeapMbMax], [7, 1, 200])
  const wrong: [object, string, string][] = [
    [{ workers: 0 }, 'workers', '0'],
    [{ workers: { min: 0 } }, 'workers.min', '0'],
    [{ executor: 'cached', workers: { max: 0 } }, 'workers.max', '0'],
    [{ executor: 'blocking', workers: { min: 5, max: 4 } }, 'workers.max', '4'],
    [{ workers: { max: 1025 } }, 'workers.max', '1025'],
    [{ workers: { idleMs: 0 } }, 'workers.idleMs', '0'],
    [{ workers: { tasks: 0 } }, 'workers.tasks', '0'],
    [{ workers: { heapMb: 0.5 } }, 'workers.heapMb', '0.5'],
    [{ workers: [] }, 'workers', 'an array of 0'],
    [{ workers: { most: 4 } }, 'workers.most', '4'],
    [{ workersMax: 4 }, 'workersMax', '4'],
    [{ executor: 'work-stealing', workers: { max: 4 } }, 'workers.max', '4'],
  ]
  for (const [given, name, shown] of wrong)
    refuses(() => parseSettings(given), `zone.create(): ${name}`, shown)
})

test('an unknown setting is named, with the list of those there are', () => {
  assert.throws(() => parseSettings({ worker: 2 }), {
    code: 'ZONE_ARGUMENT',
    message: /^zone\.create\(\): unknown option "worker"; did you mean "workers"\?$/,
  })
})

test('settings that are not an object are refused', () => {
  const wrong: [unknown, string][] = [
    [null, 'null'],
    [5, '5'],
    ['x', '"x"'],
    [[], 'an array of 0'],
  ]
  for (const [value, shown] of wrong) refuses(() => parseSettings(value), 'zone.create(): options', shown)
})

test("parsed settings are complete, frozen, plain data, and no longer the caller's objects", () => {
  const given = { execArgv: ['--no-warnings'], env: { A: '1' } }
  const parsed = parseSettings(given)
  given.execArgv.push('--broken')
  given.env.A = '2'
  assert.deepEqual([parsed.execArgv, parsed.env], [['--no-warnings'], { A: '1' }])
  assert.ok([parsed, parsed.execArgv, parsed.env].every(Object.isFrozen))
  assert.deepEqual(JSON.parse(JSON.stringify(parsed)), parsed)
})

test('a name is a string of 1 to 256 characters without NUL', () => {
  for (const right of ['a', 'x'.repeat(256), 'ü/\n🙂', '\ud800'])
    assert.equal(parseId('zone.get()', right), right)
  const wrong: [unknown, string][] = [
    ['', '""'],
    ['x'.repeat(257), JSON.stringify(`${'x'.repeat(57)}...`)],
    ['a\0b', '"a\\u0000b"'],
    [5, '5'],
    [undefined, 'undefined'],
    [null, 'null'],
    [{}, 'a plain object'],
    [Object.create(null), 'an object without a class name'],
  ]
  for (const [value, shown] of wrong) refuses(() => parseId('zone.get()', value), 'zone.get(): id', shown)
})

test('options of a call are checked one by one', () => {
  const { signal } = new AbortController()
  for (const right of [{}, { timeoutMs: 0 }, { timeoutMs: 1.5 }, { timeoutMs: 2 ** 31 - 1, signal }]) {
    assert.deepEqual(
      { ...optionsOf('zone.run()', right) },
      { timeoutMs: undefined, signal: undefined, from: undefined, order: undefined, ...right },
    )
  }
  assert.deepEqual(optionsOf('zone.run()', undefined), {
    timeoutMs: undefined,
    signal: undefined,
    from: undefined,
    order: undefined,
  })
  const wrong: [unknown, string, string][] = [
    [null, 'zone.run(): options', 'null'],
    [5, 'zone.run(): options', '5'],
    [{ timeoutMs: -1 }, 'zone.run(): timeoutMs', '-1'],
    [{ timeoutMs: 2 ** 31 }, 'zone.run(): timeoutMs', '2147483648'],
    [{ timeoutMs: NaN }, 'zone.run(): timeoutMs', 'NaN'],
    [{ timeoutMs: Infinity }, 'zone.run(): timeoutMs', 'Infinity'],
    [{ timeoutMs: '5' }, 'zone.run(): timeoutMs', '"5"'],
    [{ timeoutMs: null }, 'zone.run(): timeoutMs', 'null'],
    [{ signal: {} }, 'zone.run(): signal', 'a plain object'],
    [{ signal: new AbortController() }, 'zone.run(): signal', 'an AbortController'],
    [{ signal: null }, 'zone.run(): signal', 'null'],
  ]
  for (const [value, name, shown] of wrong) refuses(() => optionsOf('zone.run()', value), name, shown)
})

test('arguments are an array, a module is a URL or path, an export has a name', () => {
  assert.deepEqual(argumentsOf('zone.run()', undefined), [])
  assert.deepEqual(argumentsOf('zone.run()', [1, undefined]), [1, undefined])
  const noArray: [unknown, string][] = [
    [null, 'null'],
    ['ab', '"ab"'],
    [{ length: 1 }, 'a plain object'],
    [5, '5'],
  ]
  for (const [value, shown] of noArray)
    refuses(() => argumentsOf('zone.run()', value), 'zone.run(): args', shown)
  assert.deepEqual(exportOf('./m.js', 'f'), ['./m.js', 'f'])
  const noModule: [unknown, string][] = [
    [5, '5'],
    [undefined, 'undefined'],
    [null, 'null'],
    [{}, 'a plain object'],
  ]
  for (const [value, shown] of noModule)
    refuses(() => exportOf(value, 'f'), 'zone.execute(): the first argument', shown)
  const noName: [unknown, string][] = [
    ['', '""'],
    [undefined, 'undefined'],
    [5, '5'],
    [null, 'null'],
  ]
  for (const [value, shown] of noName)
    refuses(() => exportOf('./m.js', value), 'zone.execute(): the name of an export', shown)
})
