/**
 * A check whose seeds 7 and 8 fail.
 *
 * Each is in a part of its own where there are two.
 */
import { check } from 'corespun/test'

interface Sea {
  readonly seed: number
}

await check({ seeds: 12 }, async ({ seed, step }) => {
  const { seed: ours }: Sea = { seed }
  await step('think')
  if (ours === 7 || ours === 8) throw new RangeError(`it is ${ours}${process.env['PADDING'] ?? ''}`)
})
