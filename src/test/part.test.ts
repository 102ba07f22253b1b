/**
 * Parts of the seeds: each seed is in one of them, and what is not a part is refused.
 *
 * Their processes are in test/cli/seeds.test.mjs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CheckError, check } from './index.ts'

test('each seed is in one part', async () => {
  const played: number[] = []
  try {
    for (const at of [1, 2, 3]) {
      process.env['CORESPUN_SEEDS_PART'] = `${at}/3`
      const { seeds } = await check({ seeds: 8 }, ({ seed }) => void played.push(seed))
      assert.equal(seeds, at === 3 ? 2 : 3)
    }
    assert.deepEqual(
      played.filter((seed) => seed > 0),
      [1, 4, 7, 2, 5, 8, 3, 6],
    )
    for (const part of ['4/3', '0/3', 'all']) {
      process.env['CORESPUN_SEEDS_PART'] = part
      const wrong = { code: 'CHECK_ARGUMENT', message: /^CORESPUN_SEEDS_PART must be a part such as 2\/4/ }
      await assert.rejects(
        check({ seeds: 8 }, () => {}),
        wrong,
      )
    }
  } finally {
    delete process.env['CORESPUN_SEEDS_PART']
  }
})

test('a billion seeds need no list in memory', async () => {
  const most = check({ seeds: 999_999_999 }, ({ seed }) => assert.ok(seed < 3))
  await assert.rejects(most, ({ facts }: CheckError<'CHECK_FAILED'>) => facts.seed === 3)
})
