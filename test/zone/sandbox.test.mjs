/**
 * The package inside a context of `node:vm`, as test runners such as Jest load a program and its packages.
 *
 * The program links modules by hand: files are compiled in the context, Node's own are handed in.
 */
import { test } from 'node:test'
import { check } from './run.mjs'

const INDEX = import.meta.resolve('corespun/zone')

test('in vm contexts, one after another, free globals travel and captures are refused by name', () =>
  check(
    `import { readFileSync } from 'node:fs'
     import { createContext, SourceTextModule, SyntheticModule } from 'node:vm'
     const run = async (name) => {
       const context = createContext({ process, console, URL, Buffer, queueMicrotask, setTimeout,
         clearTimeout, setImmediate, performance,
         AbortSignal, AbortController, DOMException, structuredClone, TextDecoder,
         TextEncoder, EventTarget, Event, MessageChannel, WebAssembly, ReadableStream })
       const modules = new Map()
       const load = async (specifier, from) => {
         if (specifier.startsWith('node:') || !/^[./]|^file:/.test(specifier)) {
           if (modules.has(specifier)) return modules.get(specifier)
           const names = await import(specifier)
           const made = new SyntheticModule(Object.keys(names), function () {
             for (const name of Object.keys(names)) this.setExport(name, names[name])
           }, { context })
           modules.set(specifier, made)
           return made
         }
         const url = new URL(specifier, from).href
         if (modules.has(url)) return modules.get(url)
         const made = new SourceTextModule(readFileSync(new URL(url), 'utf8'), {
           context, identifier: url, initializeImportMeta: (meta) => { meta.url = url },
           importModuleDynamically: (name) => load(name, url),
         })
         modules.set(url, made)
         return made
       }
       const index = await load('${INDEX}')
       await index.link((name, from) => load(name, from.identifier))
       await index.evaluate()
       context.zone = index.namespace.zone
       const text = \`
         const outside = 7
         const z = zone.create('\${name}', { workers: 1 })
         export const found = [
           await z.run((n) => new Date(n).getTime(), 5),
           await z.run((n) => Math.max(n, JSON.parse('2')), 1),
           await z.run(() => outside).catch((error) => error.code + ' ' + /outside/.test(error.message)),
         ].join()
         await z.close()\`
       const program = new SourceTextModule(text, { context, identifier: 'file:///program.mjs' })
       await program.link(() => {})
       await program.evaluate()
       return program.namespace.found
     }
     console.log(await run('first'))
     console.log(await run('second'))`,
    {
      zone: false,
      flags: ['--experimental-vm-modules', '--no-warnings'],
      out: '5,2,FUNCTION_CAPTURES true\n5,2,FUNCTION_CAPTURES true',
    },
  ))
