/**
 * A program whose main thread and worker never return.
 * Both loops have a line that the test finds.
 */
import { writeSync } from 'node:fs'
import { observe } from 'corespun/observe'
import { zone } from 'corespun/zone'

interface Counter {
  turns: number
}

await observe()
const cpu = zone.create('cpu', { workers: 1 })

function work(words: Int32Array): never {
  const counter: Counter = { turns: 0 }
  Atomics.store(words, 0, 1)
  for (;;) counter.turns += 1 // worker
}

const words = new Int32Array(new SharedArrayBuffer(4))
void cpu.run(work, words)
while (Atomics.load(words, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 5))
writeSync(1, 'stuck\n')
let turns: number = 0
for (;;) turns += 1 // main
