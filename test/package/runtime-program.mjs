/**
 * What works in the runtime that runs this: a line for each part, its result or the code of its refusal.
 *
 * It imports the package by itself, as programs do.
 */
import { Semaphore, zone } from 'corespun'
import { lift } from 'corespun/arrow'
import { fork, sleep } from 'corespun/fiber'
import { serve } from 'corespun/http'
import { store } from 'corespun/store'

const double = 'data:text/javascript,export const double = (n) => n * 2'

async function served(core) {
  const server = await serve({ port: 0, core, quiet: true, routes: { '/': 'Hello' } })
  const text = await (await fetch(server.url, { headers: { connection: 'close' } })).text()
  await server.close()
  return text
}

async function inZone(work) {
  const cpu = zone.create('cpu', { workers: 1 })
  try {
    return await work(cpu)
  } finally {
    await cpu.close()
  }
}

const parts = {
  arrow: () =>
    lift((n) => n * 2)
      .andThen(lift((n) => n + 1))
      .run(4),
  fiber: () =>
    fork(function* () {
      yield* sleep(1)
      return 7
    }).join(),
  'http on node:http': () => served('node'),
  'http on the native core': () => served('native'),
  store: () => {
    const shared = store.create('shared')
    shared.set('key', { a: [1, 2] })
    return JSON.stringify(shared.get('key'))
  },
  semaphore: () => new Semaphore({ permits: 1 }).guard(() => 5),
  'a function of a module in a zone': () => inZone((cpu) => cpu.module(double).double(4)),
  'a function that is sent': () => inZone((cpu) => cpu.run((n) => n * 2, 4)),
  'a captured value': () => inZone((cpu) => cpu.run(() => double)),
  'the plugin as a hook': () => import('corespun/plugin/register').then(() => 'loaded'),
  'shared memory as an argument': () =>
    inZone((cpu) => cpu.run((memory) => memory.byteLength, new SharedArrayBuffer(8))),
  'a server in a zone': () =>
    inZone((web) => serve({ zone: web, app: 'data:text/javascript,export const routes = {}', port: 0 })),
}
console.log('the table')
for (const [name, work] of Object.entries(parts)) {
  const answer = await Promise.resolve()
    .then(work)
    .catch((error) => error.code ?? `an error without a code: ${error}`)
  console.log(`${name}: ${answer}`)
}
process.exit(0)
