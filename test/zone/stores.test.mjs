/**
 * Stores and locks with a second copy of the package in one process: shared, or refused by name; no crash.
 *
 * Each test is a program of its own; what it prints and how it exits is the oracle.
 */
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { check } from './run.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))

test('a second copy shares stores in another thread and is refused by name in the same one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corespun-copy-'))
  const filter = (path) => !path.includes('.test.')
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true, filter })
  cpSync(join(root, 'package.json'), join(folder, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const [own, copy] = [root, folder].map((path) => pathToFileURL(join(path, 'dist/index.js')).href)
  try {
    await check(
      `const { store, Lock } = await import('${own}')
       const second = await import('${copy}')
       const used = store.create('used')
       used.set('k', [1])
       let codes = []
       for (const use of [() => second.store.get('used'), () => second.Lock.getOrCreate('l')])
         try { use() } catch (error) { codes.push(error.code) }
       console.log(codes.join(), used.get('k')[0], Lock.getOrCreate('l').tryGuard(() => 'locked').value)
       const text = \`import { parentPort } from 'node:worker_threads'
         import { store, Lock } from '${copy}'
         const used = store.get('used')
         used.update('k', (list) => [...list, 2])
         parentPort.postMessage(Lock.getOrCreate('l').guardSync(() => used.get('k').length))\`
       const other = new Worker(new URL('data:text/javascript,' + encodeURIComponent(text)))
       other.once('message', (length) => console.log(length, used.get('k').join()))
       other.once('exit', () => used.close())`,
      { zone: false, out: 'NATIVE_SECOND_COPY,NATIVE_SECOND_COPY 1 locked\n2 1,2' },
    )
    // The first copy has opened the zone, and uses no stores in the main thread; workers are its own.
    await check(
      `const first = await import('${own}')
       const own = first.zone.create('streams', { workers: 1 })
       await own.run(() => 1)
       const second = await import('${copy}')
       const there = second.zone.get('streams')
       async function* twice(items) { for await (const item of items) yield 2 * item }
       for await (const item of there.stream(twice, [1, 2])) console.log(item)
       for await (const item of await there.run(twice, [3, 4].values())) console.log(item)
       try { await own.stream(twice, [5]).next() } catch (error) { console.log(error.code) }
       const there2 = async () => (await import('${copy}')).store.create('there').set('k', 1)
       await own.run(there2).catch(({ code }) => console.log(code))
       await own.close()`,
      { zone: false, out: '2\n4\n6\n8\nNATIVE_SECOND_COPY\nNATIVE_SECOND_COPY' },
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a view of a value with handles of every kind leaves them, and the thread, as they were', async () => {
  const corespun = import.meta.resolve('corespun')
  await check(
    `const { store, zone, Lock, RwLock, Semaphore, Channel, AtomicCounter } = await import('${corespun}')
     const [used, other] = [store.create('used'), store.create('other')]
     const pool = zone.create('pool', { workers: 1 })
     const controller = new AbortController()
     const handles = { lock: Lock.getOrCreate('l'), rw: new RwLock(),
       semaphore: new Semaphore({ permits: 2 }), channel: new Channel({ messagesMax: 1 }),
       counter: new AtomicCounter(), signal: controller.signal, node: zone.node, other, pool }
     for (const [kind, handle] of Object.entries(handles)) {
       used.set(kind, { handle })
       const view = used.view(kind)
       if (!Object.isFrozen(view) || Object.isFrozen(view.handle)) console.log(kind, 'is frozen')
       used.set('after', kind)
       if (used.get('after') !== kind) console.log('no store after', kind)
     }
     used.set('all', handles)
     const all = used.view('all')
     all.channel.offer({ a: 1 })
     all.other.set('k', 1)
     controller.abort()
     console.log(all.lock.tryGuard(() => 1).value, all.rw.tryRead(() => 2).value, all.semaphore.free,
       all.channel.poll().a, all.counter.add(), all.other.get('k'), all.signal.aborted,
       await all.pool.run(() => 'ran'), Object.keys(all.lock).includes('scratch'))
     used.close(), other.close(), await pool.close()`,
    { zone: false, out: '1 2 2 1 1 1 true ran false' },
  )
})

const STORES = import.meta.resolve('corespun/store')

/** Most that 40,000 closed stores may leave, in bytes: each held some 26,000. */
const LEFT_MAX = 250e6

for (const [name, turn] of [
  ['with turns of the loop', 'if (n % 10 === 0) await new Promise(setImmediate)'],
  ['without one', ''],
]) {
  test(`closed stores leave nothing behind, ${name}`, () =>
    check(
      `const { store } = await import('${STORES}')
       const before = process.memoryUsage.rss()
       for (let n = 0; n < 40_000; n++) {
         const used = store.create('store ' + n)
         used.set('k', { n })
         used.close()
         ${turn}
       }
       console.log(process.memoryUsage.rss() - before < ${LEFT_MAX}, store.count)`,
      { zone: false, out: 'true 0' },
    ))
}

test('a store that another thread has closed is found closed, by each operation', () =>
  check(
    `const { store } = await import('${STORES}')
     const used = store.create('shared')
     used.set('k', 1)
     used.view('k')
     const keys = used.keys()
     keys.next()
     const closing = thread("(await import('${STORES}')).store.get('shared').close()")
     await new Promise((resolve) => closing.once('exit', resolve))
     const uses = ['get', 'has', 'view', 'delete', 'increment', 'clear', 'stats', 'watch', 'entries', 'keys']
     const calls = [() => used.set('k', 1), ...uses.map((use) => () => [...(used[use]('k') || [])])]
     const codes = calls.map((call) => {
       try { return [call()] } catch (error) { return error.code }
     })
     const again = store.create('shared')
     again.set('k', 2)
     console.log([...new Set(codes)].join(), [...keys].length, again.get('k'))
     const late = await used.getOrCompute('k', () => 1).catch((error) => error.code)
     console.log(late)`,
    { zone: false, out: 'STORE_CLOSED 0 2\nSTORE_CLOSED' },
  ))
