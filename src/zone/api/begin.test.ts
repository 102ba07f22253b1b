/**
 * Calls that are begun without a promise, as other modules of the package do: of functions and of exports, in
 * each kind of zone; and what their tasks receive when nobody waits any more.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type AnyZone, type ZoneError, zone } from '../index.ts'
import { type RemoteZone, isZone } from '../internal.ts'
import { until } from './zones.test.support.ts'

const here = new URL('../../../test/zone/modules/', import.meta.url)
const MATH = { module: new URL('math.mjs', here), name: 'add' }
const PATIENT = { module: new URL('patient.mjs', here), name: 'patient' }

const folder = mkdtempSync(join(tmpdir(), 'corespun-begin-'))
after(() => rmSync(folder, { recursive: true }))
let files = 0
const file = (): string => join(folder, String(++files))

const workers = (options = {}): AnyZone => zone.create(`begun-${Math.random()}`, { workers: 1, ...options })

const KINDS: readonly (readonly [string, () => AnyZone])[] = [
  ['threads', () => workers()],
  ['processes', () => workers({ isolation: 'process' })],
  ['a view with limits', () => workers().with({ timeoutMs: 60_000 })],
  ['the calling thread', () => zone.node],
]

interface Settled {
  readonly value?: unknown
  readonly error?: Error
}

function begun(
  on: RemoteZone,
  ...[what, args, limits]: [Parameters<RemoteZone['begin']>[0], unknown[], { timeoutMs: number }?]
): { readonly ended: Promise<Settled>; readonly end: (why?: unknown) => void } {
  let end!: (why?: unknown) => void
  const ended = new Promise<Settled>((resolve) => {
    const given = limits && { signal: undefined, order: undefined, ...limits }
    end = on.begin(
      what,
      args,
      (value) => resolve({ value }),
      (error) => resolve({ error: error as Error }),
      given,
    )
  })
  return { ended, end }
}

for (const [name, made] of KINDS) {
  test(`functions and exports are begun in ${name}, and end with a value or an error`, async () => {
    const on = made()
    assert.ok(isZone(on))
    try {
      assert.deepEqual(await begun(on, (a: number) => a + 1, [1]).ended, { value: 2 })
      assert.deepEqual(await begun(on, MATH, [1, 2]).ended, { value: 3 })
      assert.match(String((await begun(on, { ...MATH, name: 'none' }, []).ended).error), /none/)
      const { error } = await begun(on, PATIENT, [file()], { timeoutMs: 40 }).ended
      assert.equal((error as ZoneError).code, 'TASK_TIMEOUT')
    } finally {
      await on.close()
    }
  })

  test(`who stops to wait settles nothing in ${name}, and the task receives the reason`, async () => {
    const on = made()
    assert.ok(isZone(on))
    try {
      for (const [why, expected] of [
        [new RangeError('enough'), 'RangeError: enough'],
        [undefined, 'AbortError: The caller no longer waits'],
      ] as const) {
        const path = file()
        const call = begun(on, PATIENT, [path])
        void call.ended.then(() => assert.fail('it has settled'))
        await until(() => existsSync(`${path}.begun`))
        call.end(why)
        call.end('again')
        await until(() => existsSync(`${path}.ended`))
        assert.equal(readFileSync(`${path}.ended`, 'utf8'), expected)
      }
    } finally {
      await on.close()
    }
  })
}
