/**
 * What the compiler must accept and must refuse of far zones in arrows.
 *
 * A line under @ts-expect-error that compiles is an error of the compilation, so this cannot pass by chance.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Arrow, type AnyFarZone, effect, lift } from '../../arrow/index.ts'
import type { AnyZone } from '../../zone/index.ts'
import type { FarZone } from './far-zone.ts'

interface Scores {
  score(text: string): number
}
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function same<A, B>(..._proof: Same<A, B> extends true ? [] : ['the types differ', A, B]): void {}

test('a far zone is where an arrow may run, and no zone of this process', () => {
  const parse = effect(
    (text: string) => Number(text),
    () => 'bad' as const,
  )
  const placed = (target: AnyZone | FarZone<Scores>) => parse.andThen(lift((x: number) => x > 1)).on(target)
  same<ReturnType<typeof placed>, Arrow<string, boolean, 'bad', 'async'>>()
  const compiled = (far: FarZone<Scores>): unknown[] => [
    far satisfies AnyFarZone,
    // @ts-expect-error: it takes no functions
    far satisfies AnyZone,
    // @ts-expect-error: a zone is chosen by name, which is not the zone
    parse.on('scores'),
    // @ts-expect-error: a synchronous arrow was promised
    parse.on(far) satisfies Arrow<string, number, 'bad', 'sync'>,
  ]
  assert.equal(typeof compiled, 'function')
})
