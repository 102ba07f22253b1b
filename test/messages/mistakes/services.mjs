/**
 * Mistakes with zones of processes, the order of calls, streams and the main thread.
 *
 * The zone of processes is made by the first row that needs it.
 */
import { store, zone } from 'corespun'

const work = zone.create('services', { workers: 1 })
const grows = zone.create('grows', { executor: 'cached' })
const apart = () => zone.getOrCreate('apart', { workers: 1, isolation: 'process' })
const values = store.create('services')
const same = (value) => value

export const close = async () => {
  if (hasProcesses) await apart().close()
  await Promise.all([work.close(), grows.close(), values.close()])
}

const UNSENT = '{{where|args[0]}} cannot be transported: '
const SOURCE = 'must be an iterable, a stream or a Blob'

/** Reads a stream to its end. */
async function read(stream) {
  for await (const item of stream) void item
}

/** On Windows there are no zones of processes. */
const hasProcesses = process.platform !== 'win32'

/** @type {import('../check.mjs').Mistake[]} */
const ofProcesses = [
  {
    mistake: 'isolation as a flag',
    make: () => zone.create('x', { isolation: true }),
    code: 'ZONE_ARGUMENT',
    message:
      "{{where|zone.create()}}: {{what|isolation}} {{remedy|must be 'thread' or 'process'}}; " +
      'received {{received|true}}',
  },
  {
    mistake: 'processes that steal tasks',
    make: () => zone.create('x', { isolation: 'process', executor: 'work-stealing' }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.create()}}: {{what|isolation}} {{remedy|needs another executor than ' +
      "'work-stealing'}}; " +
      'received {{received|"process"}}',
  },
  {
    mistake: 'a limit of memory for threads',
    make: () => zone.create('x', { memoryMbMax: 512 }),
    code: 'ZONE_ARGUMENT',
    message:
      "{{where|zone.create()}}: {{what|memoryMbMax}} {{remedy|needs isolation: 'process'}}: the threads " +
      'of a process share its memory; received {{received|512}}',
  },
  {
    mistake: 'shared memory for a process',
    make: async () => await apart().run(same, new SharedArrayBuffer(8)),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a SharedArrayBuffer}}: shared memory cannot leave the process; ` +
      '{{remedy|send a copy of its bytes}}',
  },
  {
    mistake: 'a store for a process',
    make: async () => await apart().run(same, values),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a Store}}: a handle of kind 'corespun.Store' is valid in this process ` +
      'only; ' +
      '{{remedy|send plain values}}',
  },
  {
    mistake: 'shared memory in a stream through a process',
    make: async () => await read(apart().stream(same, [new SharedArrayBuffer(8)])),
    code: 'TRANSPORT_REFUSED',
    message:
      '{{where|items[0]}} cannot be transported: {{what+received|a SharedArrayBuffer}}: shared memory ' +
      'cannot leave the process; {{remedy|send a copy of its bytes}}',
  },
]

/** @type {import('../check.mjs').Mistake[]} */
export const mistakes = [
  ...(hasProcesses ? ofProcesses : []),
  {
    mistake: 'a priority as a number',
    make: () => work.with({ priority: 1 }),
    code: 'ZONE_ARGUMENT',
    message:
      "{{where|zone.with()}}: {{what|priority}} {{remedy|must be one of 'high', 'normal', 'low'}}; " +
      'received {{received|1}}',
  },
  {
    mistake: 'a weight for nobody',
    make: () => work.with({ weight: 2 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.with()}}: {{what|weight}} {{remedy|needs a tenant}}, whose calls it counts; ' +
      'received {{received|2}}',
  },
  {
    mistake: 'an object as a tenant',
    make: () => work.with({ tenant: { id: 1 } }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.with()}}: {{what|tenant}} {{remedy|must be a number, or a string of 1024 characters at ' +
      'most}}; received {{received|a plain object}}',
  },
  {
    mistake: 'a worker that there is not',
    make: () => work.worker(3),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.worker()}}: {{what|the number}} {{remedy|must be an integer from 0 to 0}}; ' +
      'received {{received|3}}',
  },
  {
    mistake: 'a worker by number of a zone that grows',
    make: () => grows.worker(0),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.worker()}} of {{what|"grows"}} {{remedy|needs a zone whose number of workers does not ' +
      'change}}; it has 0 to 64; received {{received|"cached"}}',
  },
  {
    mistake: 'a key where workers come and go',
    make: async () => await grows.with({ affinity: 'user 7' }).run(same, 1),
    code: 'ZONE_ARGUMENT',
    message:
      '{{what|affinity}} {{remedy|needs a zone whose number of workers does not change}}; ' +
      'it has 0 to 64; received {{received|"cached"}}',
  },
  {
    mistake: 'a number as the source of a stream',
    make: async () => await read(work.stream(same, 5)),
    code: 'ZONE_ARGUMENT',
    message:
      `{{where|zone.stream()}}: {{what|the source}} {{remedy|${SOURCE}}}; ` + 'received {{received|5}}',
  },
  {
    mistake: 'a promise as the source of a stream',
    make: async () => await read(work.stream(same, Promise.resolve([1]))),
    code: 'ZONE_ARGUMENT',
    message:
      `{{where|zone.stream()}}: {{what|the source}} ${SOURCE}; {{remedy|await the promise first}}; ` +
      'received {{received|a Promise}}',
  },
  {
    mistake: 'a function of a stream that returns one item',
    make: async () => await read(work.stream(() => 5, [1])),
    code: 'ZONE_ARGUMENT',
    message:
      `{{where|zone.stream()}}: {{what|the value of the function}} {{remedy|${SOURCE}}}; ` +
      'received {{received|5}}',
  },
  {
    mistake: 'an item of a stream that cannot travel',
    make: async () => await read(work.stream(() => [Symbol('a')], [])),
    code: 'TRANSPORT_REFUSED',
    message:
      '{{where|items[0]}} cannot be transported: {{what+received|Symbol(a)}}: a symbol has an identity ' +
      'that no other thread has; {{remedy|send a string}}',
  },
  {
    mistake: 'the name of the main thread',
    make: () => zone.create('corespun.main'),
    code: 'ZONE_EXISTS',
    message:
      'the name {{what+received|"corespun.main"}} is that of the main thread, which zone.main returns; ' +
      '{{remedy|choose another one}}',
  },
]
