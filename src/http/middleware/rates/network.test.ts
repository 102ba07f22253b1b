/**
 * Networks of clients against Node's BlockList: two addresses have one key exactly if a subnet of the one
 * contains the other.
 */
import assert from 'node:assert/strict'
import { BlockList } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { networkOf } from './network.ts'

test('the key of an address', () => {
  const cases: readonly [string, number, string][] = [
    ['', 64, ''],
    ['unknown', 64, 'unknown'],
    ['192.0.2.1', 64, '192.0.2.1'],
    ['::ffff:192.0.2.1', 64, '192.0.2.1'],
    ['::FFFF:c000:201', 64, '192.0.2.1'],
    ['2001:db8:1:1::7', 64, '2001:db8:1:1/64'],
    ['2001:DB8:1:1:ffff::', 64, '2001:db8:1:1/64'],
    ['2001:db8:1:12ff::7', 56, '2001:db8:1:1200/56'],
    ['2001:db8::7', 32, '2001:db8/32'],
    ['fe80::1%eth0', 128, 'fe80:0:0:0:0:0:0:1/128'],
    ['64:ff9b::192.0.2.1', 128, '64:ff9b:0:0:0:0:c000:201/128'],
    ['::', 64, '0:0:0:0/64'],
    ['::1', 128, '0:0:0:0:0:0:0:1/128'],
  ]
  for (const [address, bits, key] of cases) assert.equal(networkOf(address, bits), key, address)
})

/** Written out or shortened, in either case, as clients and proxies do. */
const written = (groups: readonly number[], isUpper: boolean): string => {
  const text = groups.map((group) => group.toString(16)).join(':')
  const short = text
    .replace(/(?:^|:)0(?::0)+(?=:|$)/, (run) => (run.length > 3 ? '::' : run))
    .replace(/:{3,}/, '::')
  return isUpper ? short.toUpperCase() : short
}
const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }))
const groups = fc.array(group, { minLength: 8, maxLength: 8 })

test('one key exactly if one subnet contains both', () => {
  const inputs = [
    groups,
    fc.integer({ min: 0, max: 127 }),
    fc.integer({ min: 1, max: 128 }),
    fc.boolean(),
  ] as const
  fc.assert(
    fc.property(...inputs, (one, flipped, bits, isUpper) => {
      const other = one.map((value, at) => (at === flipped >> 4 ? value ^ (0x8000 >> (flipped & 15)) : value))
      const isMapped = [one, other].some(
        (all) => all[5] === 0xffff && all.slice(0, 5).every((value) => value === 0),
      )
      fc.pre(!isMapped)
      const [address, neighbour] = [written(one, isUpper), written(other, !isUpper)]
      const list = new BlockList()
      list.addSubnet(address, bits, 'ipv6')
      const isOne = networkOf(address, bits) === networkOf(neighbour, bits)
      assert.equal(isOne, list.check(neighbour, 'ipv6'), `${address} ${neighbour} /${bits}`)
    }),
  )
})
