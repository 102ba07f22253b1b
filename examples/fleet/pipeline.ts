/**
 * One pipeline, run three ways: in this thread, in a zone of workers, and on other machines.
 *
 * With CORESPUN_NATS it uses those servers, and a host of words.ts elsewhere: `npx corespun host
 * examples/fleet/words.ts --nats nats://a,b,c`. Without, the host is in this process.
 */
import assert from 'node:assert/strict'
import { type AnyZone, zone } from 'corespun'
import { type AnyFarZone, effect, lift } from 'corespun/arrow'
import { connect, host } from 'corespun/fleet'
import * as words from './words.ts'

const module = new URL('./words.ts', import.meta.url)
const parsed = effect(
  (text: string) => (JSON.parse(text) as { readonly text: string }).text,
  () => 'not JSON' as const,
)
const pipeline = (target: AnyZone | AnyFarZone) =>
  parsed.andThen(lift(words.split).andThen(lift(words.longest)).named('analyse').on(target))

const { CORESPUN_NATS: servers } = process.env
const fleet = await connect(servers ?? 'memory:')
if (servers === undefined) await host(fleet, { name: 'words', module })
const cpu = zone.create('cpu', { workers: 2 })
for (const target of [zone.node, cpu, fleet.zone<typeof words>('words', { module })]) {
  const longest = pipeline(target)
  assert.equal(await longest.run('{"text":"write a pipeline once"}'), 'pipeline')
  assert.deepEqual(await longest.runExit('{'), { kind: 'failure', error: 'not JSON', others: [] })
  console.log(longest.explain())
}
await cpu.close()
await fleet.close()
