#!/usr/bin/env node
/**
 * The `corespun` program: turns on Node's compile cache, then loads the rest.
 *
 * With the cache a command and its workers compile nothing that an earlier command has compiled. It lies in
 * the temporary folder, under a name of Node's choice; NODE_COMPILE_CACHE names another folder, and
 * NODE_DISABLE_COMPILE_CACHE=1 turns the cache off. Node 20 does not have it.
 */
import module from 'node:module'

const { enableCompileCache }: Partial<typeof module> = module

// V8 counts less exactly in functions that come from the cache.
if (process.env['NODE_V8_COVERAGE'] === undefined) enableCompileCache?.()
void import('./program.ts')
