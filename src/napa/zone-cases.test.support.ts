/**
 * The cases of zones: 95 of napajs's 195 tests.
 *
 * Expected failures are compared by code or message, which napajs does not do.
 */
import assert from 'node:assert/strict'
import * as napa from './index.ts'
import {
  type Case,
  DIRECTIONS,
  HOME,
  LATE_ZONE,
  OTHER,
  WORKER,
  callFrom,
  each,
  same,
} from './cases.test.support.ts'
import type { Unchecked } from './values.ts'

const TEXT = '中文 español हिन्दी العربية русский 日本語 𝒻'
const ADDON = 'a C++ add-on: napajs has no test of it either'

function byName(name: string, ...args: unknown[]): Promise<Unchecked> {
  return callFrom('node', HOME, 'execute', WORKER, name, args)
}

const zones: Case[] = [
  { name: 'node: create', run: () => assert.equal(napa.zone.get(HOME).id, HOME) },
  {
    name: 'zone: create',
    run: async () => assert.equal((await byName('createZone', 'napa-made')).id, 'napa-made'),
  },
  {
    name: 'node: a name is taken',
    run: () => assert.throws(() => napa.zone.create(HOME), { code: 'ZONE_EXISTS' }),
  },
  {
    name: 'zone: a name is taken',
    run: () => assert.rejects(byName('createZone', HOME), { code: 'ZONE_EXISTS' }),
  },
  ...['node', HOME, OTHER].flatMap((id) => [
    { name: `node: get ${id}`, run: () => assert.equal(napa.zone.get(id).id, id) },
    { name: `zone: get ${id}`, run: async () => assert.equal((await byName('getZone', id)).id, id) },
  ]),
  {
    name: 'node: get of an unknown name',
    run: () => assert.throws(() => napa.zone.get('napa-none'), { code: 'ZONE_UNKNOWN' }),
  },
  {
    name: 'zone: get of an unknown name',
    run: () => assert.rejects(byName('getZone', 'napa-none'), { code: 'ZONE_UNKNOWN' }),
  },
  { name: 'node: current', run: () => same(napa.zone.current.toJSON(), { id: 'node', type: 'node' }) },
  { name: 'zone: current', run: async () => same(await byName('currentZone'), { id: HOME, type: 'napa' }) },
]

const allocators = napa.memory
const checkHandle = (allocator: napa.memory.Allocator): number => {
  const { handle } = napa.memory.crtAllocator
  if (allocator.handle.join() !== handle.join()) throw new Error('another handle')
  return 1
}

const broadcasts: Case[] = [
  ...each('code', async (call) => call('broadcast', 'var napaState = 0;'), [...DIRECTIONS, ['zone', HOME]]),
  ...each('code that does not parse', (call) => assert.rejects(call('broadcast', 'var a() = 0')), [
    ['node', HOME],
    ['zone', OTHER],
  ]),
  ...each('code that throws', (call) =>
    assert.rejects(call('broadcast', 'throw new Error("it throws")'), /it throws/),
  ),
  ...each('a function', async (call, at) => {
    await call('broadcast', (key: string, value: number) => Reflect.set(globalThis, key, value), [
      `napa${at}`,
      at,
    ])
    assert.equal(
      await call('execute', (key: string): unknown => Reflect.get(globalThis, key), [`napa${at}`]),
      at,
    )
  }),
  ...each('a function with an allocator', (call) =>
    call('broadcast', checkHandle, [allocators.crtAllocator]),
  ),
  // In the thread that sends it, a function is itself, with its closure.
  ...each('a function with a closure', async (call, at) => {
    if (at === 0) await call('broadcast', () => zones.length)
    else if (at === 1)
      await assert.rejects(
        call('broadcast', () => zones.length),
        /zones is not defined/,
      )
    else await assert.rejects(byName('relayClosure', DIRECTIONS[at][1], 'broadcast'), /zone is not defined/)
  }),
  { name: 'node -> zone: sync, code', run: () => napa.zone.get(HOME).broadcastSync('var napaState = 0;') },
  ...each('sync, code', (call) => call('broadcastSync', 'var napaState = 0;'), [['zone', OTHER]]),
  ...each(
    'sync, to its own zone',
    (call) => assert.rejects(call('broadcastSync', '0'), { code: 'ZONE_DEADLOCK' }),
    [['zone', HOME]],
  ),
  ...each('sync, a function', (call) => call('broadcastSync', (n: number) => Promise.resolve(n), [1]), [
    ['node', HOME],
    ['zone', OTHER],
  ]),
  ...each(
    'sync, code that throws',
    (call) => assert.rejects(call('broadcastSync', 'throw new Error("it throws")'), /it throws/),
    [
      ['node', HOME],
      ['zone', OTHER],
    ],
  ),
]

const GLOBALS = 'function napaFoo(input) { return input }; var napaSpace = { inner: { foo: napaFoo } }'

const byNames: Case[] = [
  ...each('a global function', async (call) => {
    await call('broadcast', GLOBALS)
    assert.equal(await call('execute', '', 'napaFoo', ['hello']), 'hello')
  }),
  ...each(
    'a member of a global',
    async (call) => {
      await call('broadcast', GLOBALS)
      assert.equal(await call('execute', '', 'napaSpace.inner.foo', ['hello']), 'hello')
    },
    [['node', HOME]],
  ),
  ...each('an unknown global', (call) =>
    assert.rejects(call('execute', '', 'napaNone', []), { code: 'FUNCTION_EXPORT_MISSING' }),
  ),
  ...each('an export', async (call) =>
    assert.equal(await call('execute', './worker.test.support', 'echo', ['hello']), 'hello'),
  ),
  ...each(
    'a member of an export',
    async (call) => assert.equal(await call('execute', WORKER, 'api.inner.echo', ['hello']), 'hello'),
    [['node', HOME]],
  ),
  ...each(
    'a module that is a function',
    async (call) => assert.equal(await call('execute', WORKER, '', ['hello']), 'hello'),
    [['node', HOME]],
  ),
  ...each('an unknown module', (call) =>
    assert.rejects(call('execute', 'napa-none', 'foo', []), { code: 'FUNCTION_MODULE' }),
  ),
  ...each('an unknown export', (call) =>
    assert.rejects(call('execute', WORKER, 'none', []), { code: 'FUNCTION_EXPORT_MISSING' }),
  ),
]

const functions: Case[] = [
  ...each('a function', async (call) =>
    assert.equal(await call('execute', (input: string) => input, ['hello']), 'hello'),
  ),
  ...each('a closure', async (call, at) => {
    if (at === 0) assert.equal(await call('execute', () => zones.length), zones.length)
    else if (at === 1)
      await assert.rejects(
        call('execute', () => zones.length),
        /zones is not defined/,
      )
    else await assert.rejects(byName('relayClosure', DIRECTIONS[at][1], 'execute'), /zone is not defined/)
  }),
  ...each('an allocator as argument', async (call) =>
    assert.equal(await call('execute', checkHandle, [allocators.crtAllocator]), 1),
  ),
  ...each('an allocator as value', async (call) => {
    const value = await call('execute', (given: Unchecked): unknown => given, [allocators.crtAllocator])
    assert.ok(napa.memory.isShareable(value))
    assert.deepEqual(value.handle, allocators.crtAllocator.handle)
  }),
  ...each('a text of many scripts', async (call) => {
    const echo = (text: string): string => text
    assert.equal(await call('execute', echo, [TEXT]), TEXT)
  }),
]

const LONG_MS = 60_000
/** The workers of tasks that never end are replaced, whatever else they run. */
const LATE = [
  ['node', LATE_ZONE],
  ['zone', LATE_ZONE],
] as const

const limits: Case[] = [
  ...each(
    'ends in time',
    async (call) => assert.equal(await call('execute', WORKER, 'spin', [1], { timeout: LONG_MS }), 1),
    [['node', HOME]],
  ),
  {
    name: 'zone -> zone: ends in time',
    run: async () => assert.equal(await byName('timed', OTHER, 1, LONG_MS), 1),
  },
  ...each(
    'too late',
    (call) => assert.rejects(call('execute', WORKER, 'never', [], { timeout: 1 }), { code: 'TASK_TIMEOUT' }),
    LATE,
  ),
  { name: 'node -> zone: too late in an add-on', needs: ADDON },
  { name: 'zone -> zone: too late in an add-on', needs: ADDON },
  ...each(
    'too late some hops away',
    (call) => {
      const hops = ['node', 'execute', WORKER, 'never', []]
      const late = call('execute', WORKER, 'relay', hops, { timeout: 20 })
      return assert.rejects(late, { code: 'TASK_TIMEOUT' })
    },
    LATE,
  ),
]

/** In the order of napajs's test/zone-test.ts. */
export const ZONE_CASES: readonly Case[] = [...zones, ...broadcasts, ...byNames, ...functions, ...limits]
