/**
 * What a debugger and a reader of stacks see of functions that the plugin has taken out of their module: a
 * breakpoint at a line of the source stops a worker there, and stacks name that line.
 *
 * Under Node's hook and in minified bundles with source maps. The debugger is a session of the inspector in
 * the program's main thread, which speaks to its workers as `node --inspect` does.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { inRoot, installCopy, MEMORY } from '../../scripts/set-up/index.mjs'

const TOOLS = join(MEMORY, 'plugin-tools')
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'corespun-debugger-')))
after(() => rmSync(folder, { recursive: true, force: true }))

const PROGRAM = `import { zone, type Zone } from 'corespun'
import { basename } from 'node:path'

interface Named {
  readonly path: string
}
const cpu = zone.create('cpu', { workers: 1 })
const by = Number('2')

async function named(given: Zone, { path }: Named): Promise<string> {
  return given.run((from: string) => {
    const name: string = basename(from)
    return name.repeat(by) // stops here
  }, path)
}

console.log(await named(cpu, { path: '/a/bc' }))
const stackOf = (error: Error): string => (error.stack ?? '').split('\\n')[1] ?? ''
const thrown = cpu.run((path: string): never => {
  const name: string = basename(path)
  throw new Error(name) // thrown in a worker
}, '/d')
console.log(await thrown.catch(stackOf))
const here: Error = new Error('here') // made in this thread
console.log(stackOf(here))
await cpu.close()
process.exit()
`
const lineOf = (text) => 1 + PROGRAM.split('\n').findIndex((line) => line.includes(text))
const STOPS = lineOf('// stops here')

/** Sets the breakpoint in each worker before it runs anything, and prints where one stops. */
const DEBUGGER = `import { Session } from 'node:inspector'
const session = new Session()
session.connect()
session.on('NodeWorker.attachedToWorker', ({ params: { sessionId } }) => {
  let id = 0
  const urls = new Map()
  const send = (method, params) => {
    const message = JSON.stringify({ id: ++id, method, params })
    session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
  }
  session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
    if (params.sessionId !== sessionId) return
    const { method, params: event } = JSON.parse(params.message)
    if (method === 'Debugger.scriptParsed') urls.set(event.scriptId, event.url)
    if (method !== 'Debugger.paused') return
    // The first pause is at the worker's start.
    const [{ location }] = event.callFrames
    const url = urls.get(location.scriptId)
    if (event.hitBreakpoints.length > 0) console.log('paused', url, location.lineNumber + 1)
    send('Debugger.resume')
  })
  send('Debugger.enable')
  send('Debugger.setBreakpointByUrl', { lineNumber: ${STOPS - 1}, urlRegex: 'src[/]main[.]ts$' })
  send('Runtime.runIfWaitingForDebugger')
})
session.post('NodeWorker.enable', { waitForDebuggerOnStart: true })
`

before(async () => {
  await installCopy('the tools of the plugin', inRoot('test', 'plugin', 'tools'), TOOLS)
  mkdirSync(join(folder, 'src'))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(inRoot(), join(folder, 'node_modules', 'corespun'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'src', 'main.ts'), PROGRAM)
  writeFileSync(join(folder, 'debugger.mjs'), DEBUGGER)
})

const plugin = JSON.stringify(pathToFileURL(inRoot('lib', 'plugin.js')).href)
const tool = (name) => {
  const path = createRequire(join(TOOLS, 'x.js')).resolve(name)
  return JSON.stringify(pathToFileURL(path).href)
}
/** Programs that bundle src/main.ts into a folder. */
const BUILDS = {
  esbuild: () => `import { build } from ${tool('esbuild')}
    import { esbuild as corespun } from ${plugin}
    await build({ entryPoints: ['src/main.ts'], outdir: 'esbuild', bundle: true, format: 'esm',
      platform: 'node', minify: true, sourcemap: true, external: ['corespun'], plugins: [corespun()] })`,
  vite: () => `import { build } from ${tool('vite')}
    import { rollup as corespun } from ${plugin}
    await build({ configFile: false, logLevel: 'error', plugins: [corespun()],
      ssr: { external: ['corespun'] },
      build: { ssr: 'src/main.ts', outDir: 'vite', minify: true, sourcemap: true } })`,
}

function node(...args) {
  const env = { ...process.env, NODE_OPTIONS: '', NODE_V8_COVERAGE: '', NO_COLOR: '1' }
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--no-warnings', ...args], {
    cwd: folder,
    encoding: 'utf8',
    env,
    timeout: 60_000,
  })
  assert.equal(status, 0, stdout + stderr)
  return stdout
}

/** What the program prints with the debugger, its paths relative to the folder. */
function debugged(...args) {
  const printed = node('--enable-source-maps', '--import', './debugger.mjs', ...args)
  return printed.replaceAll(pathToFileURL(`${folder}/`).href, '').replaceAll(`${folder}/`, '')
}

/** @param {string} printed */
function check(printed) {
  const [paused, answer, ofWorker, ofMain, ...more] = printed.trim().split('\n')
  assert.equal(paused, `paused src/main.ts ${STOPS}`, printed)
  assert.equal(answer, 'bcbc')
  assert.match(ofWorker, new RegExp(`\\bsrc/main\\.ts:${lineOf('// thrown in a worker')}:\\d+\\)?$`))
  assert.match(ofMain, new RegExp(`\\bsrc/main\\.ts:${lineOf('// made in this thread')}:\\d+\\)?$`))
  assert.deepEqual(more, [])
}

test("under Node's hook, breakpoints stop and stacks name the line of the source", () => {
  check(debugged('--import', 'corespun/typescript', '--import', 'corespun/plugin/register', 'src/main.ts'))
})

for (const [name, build] of Object.entries(BUILDS)) {
  test(`in a minified bundle of ${name}, breakpoints stop and stacks name the line of the source`, () => {
    writeFileSync(join(folder, `${name}.mjs`), build())
    node(`${name}.mjs`)
    check(debugged(join(name, 'main.js')))
  })
}
