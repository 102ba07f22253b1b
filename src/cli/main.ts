#!/usr/bin/env node
/**
 * The `corespun` program: turns on Node's compile cache, sets V8's collector for a server, starts the first
 * worker, then loads the rest.
 *
 * With the cache a command and its workers compile nothing that an earlier command has compiled. It lies in
 * the temporary folder, under a name of Node's choice; NODE_COMPILE_CACHE names another folder, and
 * NODE_DISABLE_COMPILE_CACHE=1 turns the cache off. Node 20 does not have it.
 */
import module from 'node:module'
// oxlint-disable-next-line no-restricted-imports -- the door loads all zones, which takes as long as a thread
import { startEarly } from '../zone/owner/early.ts'

const { enableCompileCache }: Partial<typeof module> = module

// V8 counts less exactly in functions that come from the cache.
if (process.env['NODE_V8_COVERAGE'] === undefined) enableCompileCache?.()
const [command, ...words] = process.argv.slice(2)
const asksForHelp = words.some((word) => word === '--help' || word === '-h')
// Other Nodes load TypeScript by hooks, which workers take over from this thread.
const { typescript: strips }: { readonly typescript?: unknown } = process.features
const serves = command === 'serve' || command === 'serve-version'
// V8's flags belong to the process, so this is set before its workers start.
if (serves && !words.includes('--parallel-gc'))
  process.getBuiltinModule('node:v8').setFlagsFromString('--no-parallel-scavenge')
const needsWorkers = command === 'run' || (serves && !words.includes('--watch'))
// As `otherRuntime`, which is not loaded yet: Bun cannot serve so, and Deno prints a worker's error first.
const isNode = !('bun' in process.versions || 'deno' in process.versions)
if (isNode && needsWorkers && words.length > 0 && !asksForHelp && Boolean(strips))
  startEarly(`corespun ${command === 'run' ? 'run' : 'serve'}/0`)
void import('./program.ts')
