/**
 * What arguments and results promise that no message can have, as tests that run on any engine.
 *
 * jobs.test.support.ts runs them. What is kept of them is counted in their stores.
 */
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { until } from '../../base/wait.test.support.ts'
import { Jobs } from './jobs.ts'
import { Large, argsIn, referenceTo } from './large.ts'
import { largeName, lettersName, partsName, queueName, recordsName } from './record.ts'
import { type Check, type Scores, type Setting, code } from './setting.test.support.ts'

/** Two parts, over any engine. */
const CHARS = 1_200_000
const LONG = 'x'.repeat(CHARS)
const ONCE = { retry: { attemptsMax: 1 } }

/** How many there are, and all of their parts. */
async function kept({ name, caller }: Setting): Promise<[number, number]> {
  const { engine } = caller
  const keysOf = async (store: string): Promise<string[]> => {
    const { items } = await (await engine.keyValue(store, { ttlMs: 0 })).page({ itemsMax: 100 })
    return items.map(({ key }) => key)
  }
  const manifests = (await keysOf(largeName(name))).filter((key) => !key.startsWith('~'))
  return [manifests.length, (await keysOf(partsName(name))).length]
}

/** A host removes arguments behind the end of their job. */
async function keeps(setting: Setting, count: number): Promise<void> {
  let found: [number, number] = [0, 0]
  await until(async () => {
    found = await kept(setting)
    return found[0] === count && found[1] === 2 * count
  }, `${count} of two parts`)
}

async function roomOf({ name, caller }: Setting) {
  const { engine } = caller
  const certainly = <Value>(work: () => Promise<Value>): Promise<Value> => work()
  return {
    large: new Large({ engine, zone: name, valueBytesMax: 10 * CHARS, certainly }),
    queue: await engine.queue(queueName(name)),
    records: await engine.keyValue(recordsName(name), { ttlMs: 0 }),
    letters: await engine.keyValue(lettersName(name), { ttlMs: 0 }),
    manifests: await engine.keyValue(largeName(name), { ttlMs: 0 }),
    parts: await engine.keyValue(partsName(name), { ttlMs: 0 }),
  }
}

export function larges(check: Check): void {
  check('arguments and results larger than a message leave with what refers to them', async (setting) => {
    const { jobs, begin } = setting
    await jobs.submit('echo', 'echo', [LONG])
    assert.equal(await jobs.submit('echo', 'echo', [LONG]), false)
    await keeps(setting, 1)
    const { jobs: waiting } = await jobs.list()
    assert.deepEqual(
      waiting.map(({ key, name }) => [key, name]),
      [['echo', 'echo']],
    )
    await begin()
    assert.equal(await jobs.result<'echo'>('echo'), LONG)
    await jobs.submit('sized', 'sized', [CHARS])
    assert.equal((await jobs.result<'sized'>('sized')).length, CHARS)
    assert.equal((await jobs.list({ state: 'done' })).jobs.length, 2)
    // Two results.
    await keeps(setting, 2)
    assert.equal(await jobs.submit('echo', 'echo', [LONG]), false)
    await jobs.submit('echo', 'echo', [`${LONG}2`], { replace: true })
    assert.equal(await jobs.result<'echo'>('echo'), `${LONG}2`)
    await keeps(setting, 2)
    for (const key of ['echo', 'sized']) assert.equal(await jobs.forget(key), true)
    await keeps(setting, 0)
  })

  check('the large result of a job ends by its time', async (setting) => {
    const { jobs, begin } = setting
    await begin()
    await jobs.submit('short', 'sized', [CHARS], { ttlMs: 1000 })
    assert.equal((await jobs.result<'sized'>('short')).length, CHARS)
    await until(async () => (await jobs.get('short')) === undefined, 'its record ends')
    const { large, manifests, ...room } = await roomOf(setting)
    assert.equal(await large.sweep(room), 0)
    for (const { key } of (await manifests.page({ itemsMax: 100 })).items)
      if (key.startsWith('~')) await manifests.delete(key)
    assert.equal(await large.sweep(room), 1)
    await keeps(setting, 0)
  })

  waits(check)
  losses(check)
}

function waits(check: Check): void {
  check('large arguments of jobs that never run, are replaced or fail leave with them', async (setting) => {
    const { jobs, begin } = setting
    const later = { delayMs: 60_000 }
    await jobs.submit('off', 'echo', [LONG], later)
    await jobs.cancel('off')
    await keeps(setting, 0)
    for (const text of [LONG, `${LONG}2`, 'short'])
      await jobs.submit('k', 'echo', [text], { ...later, replace: true })
    await keeps(setting, 0)
    const schedule = { everyMs: 3_600_000 }
    const planned = (text: string): Promise<boolean> => jobs.submit('plan', 'score', [text], { schedule })
    assert.deepEqual([await planned(LONG), await planned(LONG)], [true, false])
    await keeps(setting, 1)
    assert.equal(await planned(`${LONG}2`), true)
    await keeps(setting, 1)
    await jobs.cancel('plan')
    await keeps(setting, 0)
    await jobs.submit('bad', 'fail', [LONG], ONCE)
    await begin()
    await assert.rejects(jobs.result('bad'), code('JOB_DEAD'))
    assert.deepEqual(
      (await jobs.dead()).map(({ key, args }) => [key, args]),
      [['bad', []]],
    )
    assert.equal(await jobs.again('bad'), true)
    await assert.rejects(jobs.result('bad'), code('JOB_DEAD'))
    await keeps(setting, 1)
    await jobs.submit('bad', 'score', [LONG], { replace: true })
    assert.equal(await jobs.result('bad'), CHARS)
    await keeps(setting, 0)
    await jobs.submit('worse', 'fail', [LONG], ONCE)
    await assert.rejects(jobs.result('worse'), code('JOB_DEAD'))
    await jobs.forget('worse')
    await keeps(setting, 0)
  })

  check('each job of a schedule has large arguments of its own', async (setting) => {
    const { jobs, begin, file } = setting
    const path = file()
    await begin()
    await jobs.submit('plan', 'until', [path, LONG] as never, { schedule: { everyMs: 1000 } })
    await until(async () => (await jobs.list({ state: 'running' })).jobs.length > 0, 'it is due')
    await jobs.cancel('plan')
    writeFileSync(path, '')
    await keeps(setting, 0)
    rmSync(path)
  })

  check('a job has the large values of those that it waits for', async (setting) => {
    const { jobs, begin } = setting
    const after = ['a', 'b']
    for (const key of after) await jobs.submit(key, 'echo', [`${key}${LONG}`])
    await jobs.submit('all', 'joined', [], { after })
    await begin()
    const expected = after.map((key) => [key, 'done', `${key}${LONG}`, undefined])
    assert.deepEqual(await jobs.result('all'), expected)
  })
}

function losses(check: Check): void {
  check('what is larger than the bound is refused, and never read', async (setting) => {
    const { name, jobs, caller, begin } = setting
    const small = new Jobs<Scores>(caller.engine, name, CHARS - 1)
    await assert.rejects(small.submit('a', 'echo', [LONG]), code('FLEET_TOO_LARGE'))
    await begin()
    await jobs.submit('a', 'echo', [LONG])
    assert.equal(await jobs.result('a'), LONG)
    await assert.rejects(small.result('a'), code('FLEET_TOO_LARGE'))
    const within = { client: { query: () => Promise.reject(new Error('not asked')) } }
    await assert.rejects(jobs.submit('b', 'echo', [LONG], within), /not asked|left out over/)
    const after = Array.from({ length: 10_000 }, (_, index) => `${index}`.padStart(120, '0'))
    await assert.rejects(jobs.submit('c', 'echo', ['x'], { after }), /are accepted \(max_payload\)/)
    await assert.rejects(jobs.submit('d', 'echo', [LONG], { after: ['no'] }), code('JOB_UNKNOWN'))
    await assert.rejects(jobs.result('a', { signal: AbortSignal.abort(new Error('enough')) }), /enough/)
    await keeps(setting, 1)
  })

  check('what a crash has left is found when it is not young any more', async (setting) => {
    const { jobs, begin } = setting
    await jobs.submit('sure', 'echo', [LONG])
    const { large, manifests, ...room } = await roomOf(setting)
    const frame = new Uint8Array(CHARS)
    await large.put(referenceTo(frame), 'sure', frame)
    await large.put(referenceTo(frame), 'never submitted', frame)
    assert.equal(await large.sweep(room), 0)
    for (const { key } of (await manifests.page({ itemsMax: 100 })).items)
      if (key.startsWith('~')) await manifests.delete(key)
    assert.equal(await large.sweep(room), 2)
    await keeps(setting, 1)
    await begin()
    assert.equal(await jobs.result('sure'), LONG)
  })

  check('a job whose large arguments or result somebody has removed names that', async (setting) => {
    const { jobs, begin } = setting
    const { large, queue, parts } = await roomOf(setting)
    await jobs.submit('a', 'echo', [LONG], ONCE)
    await large.delete(argsIn((await queue.find('a'))!.bytes))
    await begin()
    await assert.rejects(jobs.result('a'), ({ cause }: Error) => code('JOB_DATA_LOST')(cause))
    await jobs.submit('b', 'sized', [CHARS])
    await jobs.result('b')
    const { items } = await parts.page({ itemsMax: 1 })
    await parts.delete(items[0].key)
    await assert.rejects(jobs.result('b'), code('JOB_DATA_LOST'))
    await jobs.submit('join', 'joined', [], { after: ['b'] })
    assert.deepEqual(await jobs.result('join'), [['b', 'unknown', undefined, undefined]])
  })
}
