/**
 * Zones in whole processes: exits in the middle of work, owners other than the main thread, second copies of
 * the package. Each test is a program of its own; what it prints and how it exits is the oracle.
 */
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { skipOf } from '../../dist/base/part.test.support.js'
import { CORESPUN, check } from './run.mjs'

const side = { concurrency: 2 }

/** Name, program, what is expected of it. @type {[string, string, object][]} */
const PROGRAMS = [
  [
    'an idle zone does not keep the process',
    `const z = zone.create('z', { workers: 2 })
     console.log(await z.run(() => 'ran'))`,
    { out: 'ran' },
  ],
  [
    'a task that waits for the main thread does not keep the process',
    `const z = zone.create('z', { workers: 1 })
     console.log(await z.run(async (core) => {
       const { zone } = await import(core)
       zone.main.run(() => new Promise(() => {})).catch(() => {})
       return zone.main.run(() => 'ran')
     }, '${CORESPUN}'))`,
    { out: 'ran' },
  ],
  [
    'process.exit in a task of the main thread ends the process, with its code',
    `const z = zone.create('z', { workers: 1 })
     await z.run(async (core) => {
       const { zone } = await import(core)
       return zone.main.run(() => process.exit(41))
     }, '${CORESPUN}')`,
    { code: 41 },
  ],
  [
    'without a main thread that uses zones zone.main fails, and works as soon as there is one',
    `const user = thread(\`
       const code = await zone.main.run(() => 1).catch((error) => error.code)
       parentPort.postMessage(code)
       parentPort.once('message', async () => {
         parentPort.postMessage(await zone.main.run(() => globalThis.inMain))
         parentPort.close()
       })
     \`)
     const next = () => new Promise((resolve) => user.once('message', resolve))
     console.log(await next())
     const { zone } = await import('${CORESPUN}')
     globalThis.inMain = 'in the main thread'
     zone.create('z', { workers: 1 })
     user.postMessage(1)
     console.log(await next())`,
    { zone: false, out: 'ZONE_START_FAILED\nin the main thread' },
  ],
  ['a zone nobody called does not keep the process', `zone.create('z', { workers: 2 })`, {}],
  [
    'a call in flight keeps the process until it has ended',
    `const z = zone.create('z', { workers: 1 })
     z.run(() => new Promise((resolve) => setTimeout(resolve, 300, 'late'))).then(console.log)`,
    { out: 'late' },
  ],
  [
    'process.exit with tasks in flight and loops running ends at once, with its code',
    `const z = zone.create('z', { workers: 2 })
     await z.ready()
     for (let n = 0; n < 1000; n++) z.run(() => { for (;;); })
     z.run(() => new Promise(() => {}))
     setTimeout(() => process.exit(42), 100)`,
    { code: 42 },
  ],
  [
    'process.exit right after create',
    `for (let n = 0; n < 5; n++) zone.create('z' + n, { workers: 2 }).run(() => 1); process.exit(3)`,
    { code: 3 },
  ],
  [
    'process.exit from within the callback of a result',
    `const z = zone.create('z', { workers: 2 })
     for (let n = 0; n < 100; n++) z.run((n) => n, n).then((n) => { if (n === 50) process.exit(n) })`,
    { code: 50 },
  ],
  [
    'an exit code that was set is kept while workers are ended',
    `const z = zone.create('z', { workers: 2 }); await z.ready(); process.exitCode = 9`,
    { code: 9 },
  ],
  [
    'an uncaught error of the main thread ends the process as it always does',
    `const z = zone.create('z', { workers: 2 }); await z.ready()
     for (let n = 0; n < 100; n++) z.run(() => { for (;;); })
     setTimeout(() => { throw new Error('of main') }, 50)`,
    { code: 1, err: /of main/ },
  ],
  [
    'an error in the callback of a result is uncaught as in any promise, and later results still arrive',
    `const z = zone.create('z', { workers: 1 })
     process.on('unhandledRejection', (error) => console.log(error.message))
     z.run(() => 1).then(() => { throw new Error('callback') })
     const all = await Promise.all([1, 2, 3].map((n) => z.run((n) => n, n)))
     await new Promise((resolve) => setImmediate(resolve))
     console.log(all.join())`,
    { out: 'callback\n1,2,3' },
  ],
  [
    'main ends while a worker of a zone has a timer, a server and a loop',
    `const z = zone.create('z', { workers: 1 })
     await z.run(async () => {
       setInterval(() => {}, 10)
       const { createServer } = await import('node:net')
       await new Promise((resolve) => createServer().listen(0, '127.0.0.1', resolve))
       setTimeout(() => { for (;;); }, 1)
     })`,
    {},
  ],
  [
    'close ends workers that have timers and servers of their own',
    `const z = zone.create('z', { workers: 2 })
     await z.run(async () => {
       setInterval(() => {}, 10)
       const { createServer } = await import('node:net')
       await new Promise((resolve) => createServer().listen(0, '127.0.0.1', resolve))
     })
     await z.close(); console.log(z.stats().workers)`,
    { out: '0' },
  ],
  [
    'a zone made in a user-made worker belongs to main, which starts its workers, and outlives its maker',
    `zone.create('first', { workers: 1 })
     const maker = thread(\`
       const z = zone.create('made', { workers: 1 })
       parentPort.postMessage(await z.run(() => 'in made'))
     \`)
     maker.once('message', console.log)
     await new Promise((resolve) => maker.once('exit', resolve))
     console.log(await zone.get('made').run(() => 'still there'))
     await zone.get('made').close()`,
    { out: 'in made\nstill there' },
  ],
  [
    'where main never loads Corespun the first thread owns the zones; its end rejects all waiting calls',
    `const owner = thread(\`
       const z = zone.create('z', { workers: 2 })
       await z.ready()
       parentPort.postMessage('ready')
       parentPort.once('message', () => process.exit(0))
     \`)
     await new Promise((resolve) => owner.once('message', resolve))
     const user = thread(\`
       const z = zone.get('z')
       parentPort.postMessage(await z.run(() => 'served'))
       const endless = z.run(() => { for (;;); })
       const waiting = Array.from({ length: 5 }, () => z.run(() => new Promise(() => {})))
       while (z.stats().running === 0) await new Promise((resolve) => setImmediate(resolve))
       const cast = z.broadcast(() => {})
       parentPort.postMessage('go')
       const ends = await Promise.allSettled([endless, ...waiting, cast])
       const again = await z.run(() => 1).catch((error) => error.code)
       let known
       try { zone.get('z') } catch (error) { known = error.code }
       const next = zone.create('z', { workers: 1 })
       const codes = new Set(ends.map((end) => end.reason.code))
       parentPort.postMessage([...codes, again, known, await next.run(() => 'anew')].join())
       await next.close()
     \`)
     user.on('message', (text) => text === 'go' ? owner.postMessage('end') : console.log(text))`,
    { zone: false, out: 'served\nZONE_OWNER_DIED,ZONE_CLOSED,ZONE_UNKNOWN,anew' },
  ],
  [
    'an owner that is a user-made worker and is terminated takes its zones with it, and no more',
    `const owner = thread(\`
       await zone.create('z', { workers: 2 }).ready()
       parentPort.postMessage(1)
       parentPort.ref()
     \`)
     await new Promise((resolve) => owner.once('message', resolve))
     const user = thread(\`
       const call = zone.get('z').run(() => { for (;;); })
       while (zone.get('z').stats().running === 0) await new Promise((resolve) => setImmediate(resolve))
       parentPort.postMessage(0)
       parentPort.postMessage(await call.catch((error) => error.code))
     \`)
     user.once('message', () => owner.terminate())
     user.on('message', (text) => text === 0 || console.log(text))`,
    { zone: false, out: 'ZONE_OWNER_DIED' },
  ],
  [
    'several user-made workers submit to one zone at once; each gets its own answers',
    `zone.create('z', { workers: 2 })
     const threads = Array.from({ length: 4 }, (_, n) => thread(\`
       const z = zone.get('z')
       const call = (_, i) => z.run((n, i) => [n, i], workerData, i)
       const all = await Promise.all(Array.from({ length: 2000 }, call))
       parentPort.postMessage(all.every(([n, i], index) => n === workerData && i === index))
     \`, { workerData: n }))
     const answers = threads.map((t) => new Promise((resolve) => t.once('message', resolve)))
     console.log((await Promise.all(answers)).join())
     await zone.get('z').close()`,
    { out: 'true,true,true,true' },
  ],
  [
    'a user-made worker that blocks for ever does not stop others, nor its own terminate',
    `const z = zone.create('z', { workers: 1 })
     const stuck = thread(\`
       for (let n = 0; n < 1000; n++) zone.get('z').run((n) => n, n)
       parentPort.postMessage(1)
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
     \`)
     await new Promise((resolve) => stuck.once('message', resolve))
     console.log(await z.run(() => 'goes on'))
     console.log(await stuck.terminate())
     console.log((await Promise.all(Array.from({ length: 100 }, (_, n) => z.run((n) => n, n)))).length)
     await z.close()`,
    { out: 'goes on\n1\n100' },
  ],
  [
    'zones of workers inside a worker of a zone: a task creates one, uses it and closes it',
    `const z = zone.create('outer', { workers: 1 })
     console.log(await z.run(async (corespun) => {
       const { zone } = await import(corespun)
       const inner = zone.create('inner', { workers: 1 })
       const answer = await inner.run(() => 'from inside')
       await inner.close()
       return answer
     }, '${CORESPUN}'))
     await z.close()`,
    { out: 'from inside' },
  ],
  [
    'a worker that its own task ends does not keep the process from exiting',
    `const z = zone.create('z', { workers: 4 })
     const ends = await Promise.allSettled(Array.from({ length: 20 }, () => z.run(() => process.exit(1))))
     console.log(new Set(ends.map((end) => end.reason.code)).size, ends[0].reason.code)`,
    { out: '1 WORKER_DIED' },
  ],
  [
    'no warnings and no output of its own',
    `const z = zone.create('z', { workers: 1 })
     await z.run(async () => (await import('node:os')).cpus().length)
     await z.close()`,
    { flags: ['--trace-warnings', '--trace-deprecation'] },
  ],
]

test('processes', side, async (suite) => {
  const run = ([name, text, expected], row) =>
    suite.test(name, { skip: skipOf(row) }, () => check(text, expected))
  await Promise.all(PROGRAMS.map(run))
})

/** A copy of the built package in a folder of its own. */
function copyOfPackage() {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const folder = mkdtempSync(join(tmpdir(), 'corespun-copy-'))
  cpSync(join(root, 'dist'), join(folder, 'dist'), {
    recursive: true,
    filter: (path) => !path.includes('.test.'),
  })
  cpSync(join(root, 'package.json'), join(folder, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return {
    url: pathToFileURL(join(folder, 'dist/zone/index.js')).href,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

test('a second copy of the package in one process shares the zones, and both work', async () => {
  const copy = copyOfPackage()
  try {
    await check(
      `const second = (await import('${copy.url}')).zone
       const a = zone.create('a', { workers: 1 })
       const b = second.create('b', { workers: 1 })
       console.log(await a.run(() => 'first'), await b.run(() => 'second'))
       console.log(await second.get('a').run((x) => x, 1), await zone.get('b').run((x) => x, 2))
       let code
       try { second.create('a') } catch (error) { code = error.code }
       console.log(code)
       const either = (_, n) => (n % 2 ? second.get('a') : zone.get('b')).run((n) => n, n)
       console.log((await Promise.all(Array.from({ length: 500 }, either))).length)
       const across = async (url) => (await import(url)).zone.get('b').run(() => 'across')
       console.log(await a.run(across, '${copy.url}'))
       await Promise.all([a.close(), b.close()])`,
      { out: 'first second\n1 2\nZONE_EXISTS\n500\nacross' },
    )
    await check(
      `const dataUrl = (text) => new URL('data:text/javascript,' + encodeURIComponent(text))
       const threads = ['${CORESPUN}', '${copy.url}'].map((url) => new Worker(dataUrl(\`
         import { parentPort } from 'node:worker_threads'
         import { zone } from '\${url}'
         let z
         try { z = zone.create('shared', { workers: 1 }) } catch { z = zone.get('shared') }
         parentPort.postMessage(await z.run(() => 'ok'))
         parentPort.once('message', () => {})
       \`)))
       const answer = (t) => new Promise((yes, no) => t.once('message', yes).once('error', no))
       console.log((await Promise.all(threads.map(answer))).join())
       for (const t of threads) t.postMessage('end')`,
      { zone: false, out: 'ok,ok' },
    )
    // The core belongs to the copy of the main thread; the worker opens the other one's port first.
    await check(
      `const z = zone.create('here', { workers: 1 })
       const both = new Worker(new URL('data:text/javascript,' + encodeURIComponent(\`
         import { parentPort } from 'node:worker_threads'
         const second = (await import('${copy.url}')).zone
         const b = second.create('b', { workers: 1 })
         const received = [await b.run((x) => x, 'second')]
         const first = (await import('${CORESPUN}')).zone
         const a = first.create('a', { workers: 1 })
         received.push(await a.run((x) => x, 'first'))
         const either = (_, n) => (n % 2 ? first.get('b') : second.get('a')).run((n) => n, n)
         const many = await Promise.all(Array.from({ length: 500 }, either))
         received.push(many.every((n, index) => n === index))
         await Promise.all([a.close(), b.close()])
         parentPort.postMessage(received.join())
       \`)))
       console.log(await new Promise((yes, no) => both.once('message', yes).once('error', no)))
       await z.close()`,
      { out: 'second,first,true' },
    )
  } finally {
    copy.remove()
  }
})

test('a second copy of the package in a worker finds the zone and the task that it runs in', async () => {
  const copy = copyOfPackage()
  try {
    for (const settings of ['{ workers: 1 }', "{ workers: 1, executor: 'work-stealing' }"]) {
      await check(
        `const a = zone.create('a', ${settings})
         const url = '${copy.url}'
         const inside = async (url) => (await import(url)).zone.get('a').run(() => 3)
         console.log(await a.run(inside, url))
         // From a timer and from I/O, where the worker's own port may count as asleep; deep, and many at
         // once.
         console.log(await a.run(async (url) => {
           const { zone } = await import(url)
           const { readFile } = await import('node:fs')
           const own = zone.get('a')
           const timed = await new Promise((yes, no) => setTimeout(() => own.run(() => 4).then(yes, no), 5))
           const read = await new Promise((yes, no) => {
             readFile('/dev/null', () => own.run(() => 5).then(yes, no))
           })
           const all = await Promise.all(Array.from({ length: 300 }, (_, n) => own.run((n) => n, n)))
           const large = (await own.run((bytes) => bytes, new Uint8Array(500_000))).length
           const reads = (n) => (n === 0 ? own.run(() => 0) : own.ready().then(() => reads(n - 1)))
           await own.broadcast(() => 1)
           return [timed, read, all.every((n, index) => n === index), large, await reads(50)].join()
         }, url))
         console.log(await a.run(async function (url) {
           const { zone, currentTask } = await import(url)
           const codes = []
           try { zone.get('a').broadcastSync(() => 3) } catch (error) { codes.push(error.code) }
           return [zone.current.id, currentTask() === this, codes.join()].join()
         }, url))
         await a.broadcast(async (url) => {
           const { zone } = await import(url)
           return zone.current.broadcast(() => 1)
         }, [url]).catch((error) => console.log(error.code))
         // No more slots are left over than were lent.
         console.log(await a.run(async (url) => {
           let most = 0
           const { zone } = await import(url)
           await Promise.all(Array.from({ length: 20 }, () => zone.current.run(async () => {
             globalThis.running = (globalThis.running ?? 0) + 1
             await new Promise(setImmediate)
             return globalThis.running--
           }).then((n) => { most = Math.max(most, n) })))
           return most <= 21
         }, url))
         const second = (await import(url)).zone
         const b = second.create('b', { workers: 1 })
         console.log(await b.run((z) => z.run(() => 7), a), await a.run((z) => z.id, second.node))
         await Promise.all([a.close(), b.close()])`,
        { out: '3\n4,5,true,500000,0\na,true,ZONE_DEADLOCK\nZONE_DEADLOCK\ntrue\n7 node' },
      )
    }
  } finally {
    copy.remove()
  }
})

test('a second copy of the package in a worker does not keep its weak zone open', async () => {
  const copy = copyOfPackage()
  try {
    await check(
      `const { channel } = await import('node:diagnostics_channel')
       const { setFlagsFromString } = await import('node:v8')
       const { runInNewContext } = await import('node:vm')
       setFlagsFromString('--expose-gc')
       const gc = runInNewContext('gc')
       let isClosed = false
       channel('corespun:zone:closed').subscribe(() => (isClosed = true))
       await (async () => {
         const weak = zone.create('weak', { workers: 1, weak: true })
         const keep = async (url) => { globalThis.kept = (await import(url)).zone.current }
         await weak.run(keep, '${copy.url}')
       })()
       while (!isClosed) {
         gc()
         await new Promise((resolve) => setImmediate(resolve))
       }
       console.log('closed')`,
      { out: 'closed' },
    )
  } finally {
    copy.remove()
  }
})

test('a stream of a second copy that failed by a stray error counts no longer as waiting', async () => {
  const copy = copyOfPackage()
  try {
    await check(
      `const second = (await import('${copy.url}')).zone
       const a = zone.create('a', { workers: 1 })
       const turns = async (n) => { while (n-- > 0) await new Promise(setImmediate) }
       const read = async (items) => { for await (const item of items); }
       const kept = second.get('a').stream(async function* (items) { yield* items }, Array(10_000).keys())
       await kept.next()
       const failed = second.get('a').stream(async function* () {
         setTimeout(() => { throw new RangeError('left behind') }, 200)
         for (let item = 0; ; item++) yield item
       }, [1])
       await failed.next()
       // It waits for its reader when the error comes.
       while (a.stats().failed === 0) await turns(1)
       console.log(await read(failed).catch((error) => error.message))
       await read(kept)
       while (a.stats().running > 0) await turns(1)
       const stop = new AbortController()
       const forever = async function () {
         await new Promise((yes) => this.signal.addEventListener('abort', yes))
       }
       const both = [1, 2].map(() => a.execute(forever, [], { signal: stop.signal }).catch(() => {}))
       while (a.stats().running === 0) await turns(1)
       await turns(50)
       console.log(a.stats().running)
       stop.abort()
       await Promise.all(both)
       await a.close()`,
      { out: 'left behind\n1' },
    )
  } finally {
    copy.remove()
  }
})

test('a second copy of another version is refused with a sentence that names both', async () => {
  const copy = copyOfPackage()
  try {
    const { readFileSync, writeFileSync } = await import('node:fs')
    const path = fileURLToPath(new URL('../package.json', new URL('../', copy.url)))
    const { version } = JSON.parse(readFileSync(path, 'utf8'))
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), version: '99.0.0' }))
    await check(
      `const z = zone.create('a', { workers: 1 })
       const error = await import('${copy.url}').catch((error) => error)
       console.log(error.code, error.message.includes('99.0.0') && error.message.includes('${version}'))
       console.log(await z.run(() => 'unharmed'))`,
      { out: 'NATIVE_VERSION_MISMATCH true\nunharmed' },
    )
  } finally {
    copy.remove()
  }
})
