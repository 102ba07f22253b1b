/**
 * The second thread of a contender's process.
 *
 * Waits for its turn, does what the shared integers ask for, and leaves what it took.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { STORE_CONTENDERS } from './contenders.ts'
import { SIZE_PAYLOADS, STORE_PAYLOADS } from './payloads.ts'
import { NS_AT, Word, doings, timed } from './turns.ts'

const { contender, label, handle, memory } = workerData as {
  contender: string
  label: string
  handle: unknown
  memory: SharedArrayBuffer
}
const words = new Int32Array(memory)
const doubles = new Float64Array(memory)
const payload = [...STORE_PAYLOADS, ...SIZE_PAYLOADS].find((each) => each.label === label)!
const keeper = await STORE_CONTENDERS[contender].attach!(handle)
const runs = doings(keeper.calls, payload.values(), 1)
const list = [runs['get same'], runs['get different'], runs['set same'], runs['set different']]
for (let index = 0; index < 64; index += 1) runs['set different'](index)
for (const run of list) timed(run, 60)

parentPort!.postMessage('ready')
for (let turn = 0; ;) {
  Atomics.wait(words, Word.turn, turn)
  turn = Atomics.load(words, Word.turn)
  if (turn < 0) break
  doubles[NS_AT] = timed(list[words[Word.doing] * 2 + words[Word.keys]], words[Word.ms])
  Atomics.store(words, Word.done, turn)
  Atomics.notify(words, Word.done)
}
await keeper.close()
process.exit(0)
