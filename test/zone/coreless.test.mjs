/**
 * The package where its native core does not load: what needs no threads works; all else reports the reason.
 *
 * Each test is a program of its own whose CORESPUN_NATIVE_PATH names a file that is not there.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { inRoot } from '../../scripts/set-up/index.mjs'
import { check } from './run.mjs'

const side = { concurrency: 2 }
const MISSING = `process.env.CORESPUN_NATIVE_PATH = '/not/there/corespun.node'\n`
const without = (text, out) => check(MISSING + text, { zone: false, out })

test('fibers and arrows run without the core', side, () =>
  without(
    `const { fork, sleep } = await import('${import.meta.resolve('corespun/fiber')}')
     const { lift, liftAsync } = await import('${import.meta.resolve('corespun/arrow')}')
     console.log(await fork(function* () { yield* sleep(1); return 'fiber' }).join())
     console.log(await lift((n) => n + 1).andThen(liftAsync(async (n) => n * 2)).run(20))`,
    'fiber\n42',
  ),
)

test('serve falls back to node:http without the core, and reports the reason', side, () =>
  without(
    `const { serve } = await import('${import.meta.resolve('corespun/http')}')
     const server = await serve({ quiet: true, port: 0, routes: { '/': () => 'served' } })
     console.log(await (await fetch(server.url)).text(), server.stats().core)
     console.log(/could not load its native core .not.there/.test(server.stats().coreReason))
     await server.close()
     const settings = { port: 0, core: 'native', routes: { '/': () => '' } }
     const refused = await serve(settings).catch((error) => error)
     console.log(refused.code, refused.cause.code)`,
    'served node\ntrue\nHTTP_CORE NATIVE_LOAD_FAILED',
  ),
)

test('zones, stores and locks are refused by name without the core, at their use', side, () =>
  without(
    `const { zone, store, Lock } = await import('${import.meta.resolve('corespun')}')
     const uses = [() => zone.create('z'), () => store.create('s'), () => new Lock()]
     for (const use of uses) try { use() } catch (error) { console.log(error.code) }`,
    'NATIVE_LOAD_FAILED\nNATIVE_LOAD_FAILED\nNATIVE_LOAD_FAILED',
  ),
)

test(
  'modules that a bundler has taken out of the package refuse by name, and so at their use',
  side,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'corespun-bundled-'))
    try {
      cpSync(inRoot('lib'), join(folder, 'lib'), {
        recursive: true,
        filter: (path) => !path.endsWith('.node'),
      })
      const use = (door) => `const { zone } = await import('${pathToFileURL(join(folder, 'lib', door))}')
      try { zone.create('z') } catch (error) { console.log(error.code, error.message.includes('external')) }`
      await check(use('index.js'), { zone: false, out: 'NATIVE_BUNDLED true' })
      writeFileSync(join(folder, 'package.json'), '{ "name": "shop", "version": "1.0.0", "type": "module" }')
      await check(use('zone.js'), { zone: false, out: 'NATIVE_BUNDLED true' })
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
)
