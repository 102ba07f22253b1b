/**
 * A program with a zone of threads and one of processes, both busy with tasks that wait in between.
 * It runs until it is killed, and prints the name of the zone after each task.
 */
import { observe } from 'corespun/observe'
import { zone } from 'corespun/zone'

await observe()

async function work(ms) {
  function burn() {
    const end = performance.now() + ms
    while (performance.now() < end);
  }
  burn()
  await new Promise((resolve) => setTimeout(resolve, 1))
  burn()
}

const zones = [
  zone.create('threads', { workers: 1 }),
  zone.create('processes', { workers: 1, isolation: 'process' }),
]
for (const each of zones) await each.run(work, 1)
console.log('busy')
await Promise.all(
  zones.map(async (each) => {
    for (;;) {
      await each.run(work, 10)
      console.log(each.id)
    }
  }),
)
