/**
 * A program whose `Object.prototype` has the names of options: they are not options of anything.
 * A process of its own, since everything in it inherits them.
 */
import { test } from 'node:test'
import { check } from './run.mjs'

const index = import.meta.resolve('corespun')
const names = [
  'signal',
  'timeoutMs',
  'ttlMs',
  'eventsMax',
  'eviction',
  'entriesMax',
  'error',
  'limits',
  'port',
  'host',
]

test('stores, apps and zones do not read options from Object.prototype', () =>
  check(
    `const { store, zone } = await import('${index}')
     const { createApp } = await import('${import.meta.resolve('corespun/http')}')
     const own = zone.create('polluted', { workers: 1 })
     await own.ready()
     for (const name of ${JSON.stringify(names)})
       Object.defineProperty(Object.prototype, name, { value: 'x', configurable: true, writable: true })
     const used = store.create('polluted', {})
     used.set('k', 1, {})
     used.update('k', (old) => old + 1, {})
     const computed = await used.getOrCompute('other', () => 2, {})
     used.watch('k', {}).close?.()
     const app = createApp({ routes: { '/': () => 'right' } })
     await own.ready({})
     await own.close({})
     for (const name of ${JSON.stringify(names)}) delete Object.prototype[name]
     console.log(used.get('k'), computed, await (await app.inject('/')).text())
     used.close()`,
    { zone: false, out: '2 2 right' },
  ))
