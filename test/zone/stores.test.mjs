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
  const folder = mkdtempSync(join(tmpdir(), 'skein-copy-'))
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
       for (const use of [() => second.store.get('used'), () => new second.Lock('l')])
         try { use() } catch (error) { codes.push(error.code) }
       console.log(codes.join(), used.get('k')[0], new Lock('l').tryGuard(() => 'locked').value)
       const text = \`import { parentPort } from 'node:worker_threads'
         import { store, Lock } from '${copy}'
         const used = store.get('used')
         used.update('k', (list) => [...list, 2])
         parentPort.postMessage(new Lock('l').guardSync(() => used.get('k').length))\`
       const other = new Worker(new URL('data:text/javascript,' + encodeURIComponent(text)))
       other.once('message', (length) => console.log(length, used.get('k').join()))
       other.once('exit', () => used.close())`,
      { zone: false, out: 'NATIVE_SECOND_COPY,NATIVE_SECOND_COPY 1 locked\n2 1,2' },
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a view of a value with handles of every kind leaves them, and the thread, as they were', async () => {
  const skein = pathToFileURL(join(root, 'dist/index.js')).href
  await check(
    `const { store, zone, Lock, RwLock, Semaphore, Channel, AtomicCounter } = await import('${skein}')
     const [used, other] = [store.create('used'), store.create('other')]
     const pool = zone.create('pool', { workers: 1 })
     const controller = new AbortController()
     const things = { lock: new Lock('l'), rw: new RwLock(), semaphore: new Semaphore(2), other, pool,
       channel: new Channel(1), counter: new AtomicCounter(), signal: controller.signal, node: zone.node }
     for (const [kind, thing] of Object.entries(things)) {
       used.set(kind, { thing })
       const view = used.view(kind)
       if (!Object.isFrozen(view) || Object.isFrozen(view.thing)) console.log(kind, 'is frozen')
       used.set('after', kind)
       if (used.get('after') !== kind) console.log('no store after', kind)
     }
     used.set('all', things)
     const all = used.view('all')
     all.channel.offer({ a: 1 })
     all.other.set('k', 1)
     controller.abort()
     console.log(all.lock.tryGuard(() => 1).value, all.rw.tryRead(() => 2).value, all.semaphore.free,
       all.channel.poll().a, all.counter.add(), all.other.get('k'), all.signal.aborted,
       await all.pool.run(() => 'ran'), Object.keys(all.lock).includes('stage'))
     used.close(), other.close(), await pool.close()`,
    { zone: false, out: '1 2 2 1 1 1 true ran false' },
  )
})
