/**
 * Mistakes with what travels to a worker: functions, values, classes, frames.
 *
 * The zone has one worker, since what is refused is refused in the calling thread.
 */
import { EventEmitter } from 'node:events'
import { createReadStream, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { arrow, fiber, move, register, serve, store, zone } from 'corespun'
import { decode, encode, transportable } from 'corespun/transport'

const work = zone.create('functions', { workers: 1 })

export const close = () => work.close()

const rate = 1.19
let total = 0
const helper = () => 1

class User {
  name = 'Ada'
}
class Account {
  #cents = 5
  read() {
    return this.#cents
  }
}
class Counter {
  count = 1
  bump() {
    return work.run(() => this.count)
  }
}
class Longer extends Array {
  first() {
    return work.run(() => super.at(0))
  }
}

const same = (x) => x
const sent = (value) => async () => await work.run(same, value)
const CAPTURES =
  'an anonymous function ({{where|<file>:<n>:<n>}}) uses a variable from outside itself, which cannot ' +
  'travel to another thread: '
const REMEDY =
  '{{remedy|Pass the value as an argument, or move the function to a module and call ' +
  "zone.module<typeof import('./m.ts')>('./m.ts').<any>(...); " +
  'for an arrow, mark it there: exported(import.meta.url, <any>). ' +
  'With corespun/plugin in the build, or with node --import corespun/plugin/register, a function can use ' +
  'imports and captured values where its file creates or imports the zone, or declares it with the type ' +
  "Zone of 'corespun' (TypeScript or JSDoc)}}"
const CAPTURES_TWO = CAPTURES.replace('a variable', 'variables')
const ASSIGNED =
  '{{remedy|Pass total as an argument and return its new value, or share it in an AtomicCounter or a store}}'
const UNSENT = '{{where|args[0]}} cannot be transported: '

function deep() {
  let value = {}
  for (let n = 0; n < 2000; n++) value = { a: value }
  return value
}

/** @type {import('../check.mjs').Mistake[]} */
export const mistakes = [
  {
    mistake: 'a constant of the module',
    make: async () => await work.run((price) => price * rate, 1),
    code: 'FUNCTION_CAPTURES',
    message: `${CAPTURES}{{what+received|rate}} (line <n>, column <n>). ${REMEDY}`,
  },
  {
    mistake: 'a counter of the module',
    make: async () =>
      await work.run(() => {
        total += 1
      }),
    code: 'FUNCTION_CAPTURES',
    message: `${CAPTURES}{{what+received|total}} (line <n>, column <n>). ${ASSIGNED}`,
  },
  {
    mistake: 'a counter and a constant of the module',
    make: async () => await work.run((price) => (total += price * rate), 1),
    code: 'FUNCTION_CAPTURES',
    message:
      `${CAPTURES_TWO}{{what+received|total (line <n>, column <n>), rate}} (line <n>, column <n>). ` +
      '{{remedy|Pass the value as an argument, or pass total as an argument and return its new value, ' +
      'or share it in an AtomicCounter or a store}}',
  },
  {
    mistake: 'a function of the module',
    make: async () => await work.run(() => helper()),
    code: 'FUNCTION_CAPTURES',
    message: `${CAPTURES}{{what+received|helper}} (line <n>, column <n>). ${REMEDY}`,
  },
  {
    mistake: 'a class of the module',
    make: async () => await work.run(() => new User().name),
    code: 'FUNCTION_CAPTURES',
    message: `${CAPTURES}{{what+received|User}} (line <n>, column <n>). ${REMEDY}`,
  },
  {
    mistake: 'an import of the module',
    make: async () => await work.run(() => readFileSync('x')),
    code: 'FUNCTION_CAPTURES',
    message:
      `${CAPTURES}{{what+received|readFileSync}} (line <n>, column <n>, imported from "node:fs"). ` +
      '{{remedy|Import inside it: await import("node:fs"), or move the function to a module and call ' +
      "zone.module<typeof import('./m.ts')>('./m.ts').name(...); " +
      'for an arrow, mark it there: exported(import.meta.url, fn). ' +
      'With corespun/plugin <any>}}',
  },
  {
    mistake: 'two variables at once, in a function with a name',
    make: async () =>
      await work.run(function taxed(price) {
        return helper() + price * rate
      }, 1),
    code: 'FUNCTION_CAPTURES',
    message:
      'function taxed ({{where|<file>:<n>:<n>}}) uses variables from outside itself, which cannot ' +
      'travel to another ' +
      `thread: {{what+received|helper}} (line <n>, column <n>), rate (line <n>, column <n>). ${REMEDY}`,
  },
  {
    mistake: 'a captured variable in a function among the arguments',
    make: async () =>
      await work.run(
        (fn) => fn(),
        () => rate,
      ),
    code: 'TRANSPORT_FUNCTION',
    message:
      `args[0] cannot be transported: ${CAPTURES}{{what+received|rate}} (line <n>, column <n>). ` + REMEDY,
  },
  {
    mistake: 'a captured variable in the function of map',
    make: async () => await work.map([1], (price) => price * rate),
    code: 'TRANSPORT_FUNCTION',
    message: `fn cannot be transported: ${CAPTURES}{{what+received|rate}} (line <n>, column <n>). ${REMEDY}`,
  },
  {
    mistake: 'a helper that a coverage tool has added',
    make: async () => {
      const cov_1a2b3c = () => ({ f: [0] })
      await work.run(() => (cov_1a2b3c().f[0]++, 1))
    },
    code: 'FUNCTION_CAPTURES',
    message:
      `${CAPTURES}{{what+received|cov_1a2b3c}} (line <n>, column <n>). cov_1a2b3c is in no source ` +
      'file: istanbul adds it ' +
      "to count coverage; {{remedy|measure with V8's coverage (c8, vitest's provider v8, jest " +
      '--coverageProvider=v8), ' +
      'or write /* istanbul ignore next */ before the function. With corespun/plugin <any>}}',
  },
  {
    mistake: 'a helper of a compiler for an old target',
    make: async () => {
      const __awaiter = () => 1
      await work.run(() => __awaiter())
    },
    code: 'FUNCTION_CAPTURES',
    message:
      `${CAPTURES}{{what+received|__awaiter}} (line <n>, column <n>). __awaiter is in no source file: ` +
      'TypeScript adds it ' +
      'for a target older than the syntax used; {{remedy|set "target" to "es2022" or newer (for ' +
      '`using`: "esnext") in ' +
      'tsconfig.json. With corespun/plugin <any>}}',
  },
  {
    mistake: '`this` of a method in an arrow function',
    make: async () => await new Counter().bump(),
    code: 'FUNCTION_OUTER_THIS',
    message:
      'an anonymous function ({{where|<file>:<n>:<n>}}) uses {{what+received|the this}} of the ' +
      'function around it, ' +
      'which cannot travel to another thread: {{remedy|pass it as an argument}}',
  },
  {
    mistake: 'super in a sent function',
    make: async () => await new Longer().first(),
    code: 'FUNCTION_SUPER',
    message:
      'an anonymous function ({{where|<file>:<n>:<n>}}) uses {{what+received|super}}, which exists ' +
      'only in its class: ' +
      '{{remedy|send a plain function}}',
  },
  {
    mistake: 'a method that uses a private field',
    make: async () => await work.run(new Account().read),
    code: 'FUNCTION_PRIVATE',
    message:
      'function read ({{where|<file>:<n>:<n>}}) uses {{what+received|#cents}}, private to its class: ' +
      '{{remedy|send a plain function}}',
  },
  {
    mistake: 'a bound function',
    make: async () => await work.run(helper.bind(null)),
    code: 'FUNCTION_BOUND',
    message:
      'function {{what+received|bound helper}} was made by bind(), and bound values cannot travel to ' +
      'another thread: ' +
      '{{remedy|pass them as arguments}}',
  },
  {
    mistake: 'a function of the engine',
    make: async () => await work.run(Math.max, 1, 2),
    code: 'FUNCTION_NATIVE',
    message:
      'function {{what+received|max}} has no JavaScript source, so it cannot travel to another thread; ' +
      '{{remedy|send a function that calls it, as in (n) => Math.sqrt(n)}}',
  },
  {
    mistake: 'a function of a module of Node',
    make: async () => await work.run(readFileSync, 'x'),
    code: 'FUNCTION_CAPTURES',
    message:
      'function {{what+received|readFileSync}} of {{where|node:fs}} uses variables of its module, ' +
      'which cannot travel to ' +
      "another thread. {{remedy|Call zone.module<typeof import('node:fs')>('node:fs').readFileSync(...), " +
      'or import it inside a function}}',
  },
  {
    mistake: 'a class instead of a function',
    make: async () => await work.run(User),
    code: 'FUNCTION_CLASS',
    message:
      'function {{what+received|User}} ({{where|<file>:<n>:<n>}}) is a class and cannot travel as a ' +
      'function: ' +
      '{{remedy|register it for its objects to travel, or send a function that makes them}}',
  },
  {
    mistake: 'a generator in a broadcast',
    make: async () => await work.broadcast(same, [(function* () {})()]),
    code: 'TRANSPORT_REFUSED',
    message:
      '{{where|args[0]}} cannot be transported: {{what+received|a Generator}}: a running generator ' +
      'belongs to its thread; ' +
      '{{remedy|send an array of what it yields}}',
  },
  {
    mistake: 'a name that exists nowhere',
    // oxlint-disable-next-line no-undef -- that is the mistake
    make: async () => await work.run(() => readFile('x')),
    message: '{{what+received|readFile}} is {{remedy|not defined}}',
  },
  {
    mistake: 'a promise as an argument',
    make: sent({ user: { orders: [Promise.resolve(1)] } }),
    code: 'TRANSPORT_REFUSED',
    message:
      '{{where|args[0].user.orders[0]}} cannot be transported: {{what+received|a Promise}}: a promise ' +
      'settles in one ' +
      'thread only; {{remedy|await it first}}',
  },
  {
    mistake: 'a promise in a Map',
    make: sent(new Map([['a', Promise.resolve(1)]])),
    code: 'TRANSPORT_REFUSED',
    message:
      '{{where|args[0].get("a")}} cannot be transported: {{what+received|a Promise}}: a promise ' +
      'settles in one ' +
      'thread only; {{remedy|await it first}}',
  },
  {
    mistake: 'a socket',
    make: sent(new Socket()),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a Socket}}: a socket belongs to its thread; {{remedy|send the bytes ` +
      'that were read from it}}',
  },
  {
    mistake: 'a stream in a broadcast',
    make: async () => {
      const stream = createReadStream('/dev/null')
      await work.broadcast(same, [stream]).finally(() => stream.destroy())
    },
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a ReadStream}}: a stream belongs to its thread; ` +
      '{{remedy|send the path that it reads, or the bytes}}',
  },
  {
    mistake: 'a request',
    make: sent({ request: new Request('http://localhost/') }),
    code: 'TRANSPORT_REFUSED',
    message:
      '{{where|args[0].request}} cannot be transported: {{what+received|a Request}}: its body belongs ' +
      'to its thread; ' +
      '{{remedy|send its method, URL, headers and the bytes of its body}}',
  },
  {
    mistake: 'a fiber',
    make: async () => {
      const waiting = fiber.fork(() => fiber.never)
      await sent(waiting)().finally(() => waiting.interrupt())
    },
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a Fiber}}: a fiber belongs to its thread; ` +
      '{{remedy|send what its join() resolves to}}',
  },
  {
    mistake: 'an operation of a fiber',
    make: sent(fiber.sleep(1)),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a Sleep}}: an operation belongs to its thread; ` +
      '{{remedy|create it there: on(zone, function* () { ... })}}',
  },
  {
    mistake: 'a scope of fibers',
    make: sent(new fiber.Scope()),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a Scope}}: a scope belongs to its thread; ` +
      '{{remedy|open one in the function that runs there}}',
  },
  {
    mistake: 'a schedule',
    make: sent(fiber.Schedule.recurs(3)),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a Schedule}}: its functions belong to its thread; ` +
      '{{remedy|create it in the function that runs there}}',
  },
  {
    mistake: 'an arrow',
    make: sent(arrow.lift((x) => x)),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|an Arrow}}: an arrow runs in a zone by arrow.on(zone); ` +
      '{{remedy|send its input with arrow.on(zone).run(input)}}',
  },
  {
    mistake: 'a server',
    make: async () => {
      const server = await serve({ port: 0, quiet: true, routes: { '/': 'x' } })
      await sent(server)().finally(() => server.close())
    },
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a HttpServer}}: ` + 'a server belongs to its thread; {{remedy|send its url}}',
  },
  {
    mistake: 'a watcher of a store',
    make: async () => {
      const watched = store.create('functions')
      const watcher = watched.watch('key')
      await sent(watcher)().finally(() => watched.close())
    },
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a Watcher}}: a watcher belongs to its thread; ` +
      '{{remedy|send the store and call its watch() there}}',
  },
  {
    mistake: 'a controller',
    make: sent(new AbortController()),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|an AbortController}}: it belongs to its thread; {{remedy|send its ` +
      'signal}}',
  },
  {
    mistake: 'an emitter',
    make: sent(new EventEmitter()),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|an EventEmitter}}: its listeners belong to its thread; ` +
      '{{remedy|send its fields, or register its class with save and load}}',
  },
  {
    mistake: 'a port of a MessageChannel',
    make: async () => {
      const { port1, port2 } = new MessageChannel()
      port2.close()
      await work.run(same, port1)
    },
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a MessagePort}}: a port belongs to one thread, and which worker takes ` +
      'a task is decided later; ' +
      '{{remedy|send a Channel, or create a BroadcastChannel of one name on both sides}}',
  },
  {
    mistake: 'a symbol',
    make: sent(Symbol('id')),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|Symbol(id)}}: a symbol has an identity that no other thread has; ` +
      '{{remedy|send a string}}',
  },
  {
    mistake: 'a WeakMap',
    make: sent(new WeakMap()),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|a WeakMap}}: its weak references exist in this thread only; ` +
      '{{remedy|send a Map, a Set or the object itself}}',
  },
  {
    mistake: 'an iterator in a broadcast',
    make: async () => await work.broadcast(same, [[1].values()]),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|an <any>Iterator}}: an iterator belongs to its thread; ` +
      '{{remedy|send an array of its values}}',
  },
  {
    mistake: 'the global object',
    make: sent(globalThis),
    code: 'TRANSPORT_REFUSED',
    message:
      `${UNSENT}{{what+received|<any>}}: each thread has its own; ` + '{{remedy|send the values themselves}}',
  },
  {
    mistake: 'an object of a class that is not registered',
    make: sent({ list: [new User()] }),
    code: 'TRANSPORT_CLASS_UNREGISTERED',
    message:
      '{{where|args[0].list[0]}} cannot be transported: its class {{what+received|User}} is not ' +
      'registered; ' +
      "{{remedy|call register(User, { cid: 'app/User' }) in a module that both threads import}}",
  },
  {
    mistake: 'an object of a class without a name',
    make: sent(new (class {})()),
    code: 'TRANSPORT_CLASS_UNREGISTERED',
    message:
      `${UNSENT}its {{what+received|class, which has no name,}} is not registered; ` +
      "{{remedy|call register(Class, { cid: 'app/Class' }) in a module that both threads import}}",
  },
  {
    mistake: 'nested deeper than the limit',
    make: sent(deep()),
    code: 'TRANSPORT_DEPTH',
    message:
      '{{where|args[0].a<any>…}} cannot be transported: {{what|nested deeper}} than ' +
      '{{received|1000 levels}}; {{remedy|send a flat form, such as a list with indices}}',
  },
  {
    mistake: 'a buffer that was moved away',
    make: async () => {
      const bytes = new Uint8Array(4)
      await work.run(same, move(bytes))
      await work.run(same, bytes)
    },
    code: 'TRANSPORT_REFUSED',
    message:
      '{{where|args[0].buffer}} cannot be transported: {{what+received|an ArrayBuffer}}: its memory ' +
      'was moved away; ' +
      '{{remedy|copy it before move(), or send it once}}',
  },
  {
    mistake: 'move of a string',
    make: () => move('text'),
    code: 'TRANSPORT_ARGUMENT',
    message:
      '{{where|move()}}: {{what|source}} {{remedy|must be an ArrayBuffer or a view that owns its whole ' +
      'buffer}}; ' +
      'received {{received|"text"}}',
  },
  {
    mistake: 'register without a cid',
    make: () => register(User),
    code: 'TRANSPORT_ARGUMENT',
    message: '{{where|register()}} {{remedy|needs}} {{what|{ cid }}}',
    state: 'the option is absent',
  },
  {
    mistake: 'register of an object',
    make: () => register(new User(), { cid: 'user' }),
    code: 'TRANSPORT_ARGUMENT',
    message: '{{where|register()}}: {{what|Class}} {{remedy|must be a class}}; received {{received|a User}}',
  },
  {
    mistake: 'one cid for two classes',
    make: () => {
      register(class First {}, { cid: 'one' })
      register(class Second {}, { cid: 'one' })
    },
    code: 'TRANSPORT_REGISTRATION',
    message:
      "class {{what|'one'}} cannot be registered: the cid belongs to another class, {{received|First}}; " +
      '{{remedy|choose another cid}}',
  },
  {
    mistake: 'register of a class with private fields',
    make: () => register(Account, { cid: 'account' }),
    code: 'TRANSPORT_REGISTRATION',
    message:
      "class {{what|'account'}} cannot be registered: it has private members ({{received|#cents}}); " +
      '{{remedy|pass save and load that keep them}}',
  },
  {
    mistake: 'a class that only the sender registers',
    make: async () => {
      register(User, { cid: 'user' })
      await work.run(same, new User())
    },
    code: 'TRANSPORT_CLASS_UNKNOWN',
    message:
      "the frame contains an object of {{what+received|class 'user'}}, which is not registered in this " +
      'thread; ' +
      '{{remedy|import the module that registers it}}',
  },
  {
    mistake: 'the decorator without a cid',
    make: () => transportable(User),
    code: 'TRANSPORT_ARGUMENT',
    message:
      '{{where|transportable()}}: {{what|cid}} {{remedy|must be a string, as in ' +
      "@transportable('orders.Order')}}; " +
      'received {{received|function User}}',
  },
  {
    mistake: 'a function in a frame that may leave the process',
    make: () => encode({ fn: () => 1 }),
    code: 'TRANSPORT_FUNCTION',
    message:
      '{{where|value.fn}} cannot be transported: {{what+received|a self-contained frame contains no ' +
      'functions}}; ' +
      '{{remedy|encode it in process mode}}',
  },
  {
    mistake: 'JSON for decode',
    make: () => decode(Buffer.from('{"a":1}')),
    code: 'TRANSPORT_VERSION',
    message:
      '{{what|not a frame of encode()}}, or one of format version {{received|123}}; ' +
      'this release reads version 1; {{remedy|encode the value with it}}',
  },
  {
    mistake: 'a string for decode',
    make: () => decode('{"a":1}'),
    code: 'TRANSPORT_ARGUMENT',
    message:
      '{{where|decode()}}: {{what|frame}} {{remedy|must be a Uint8Array}}; received ' +
      '{{received|"{\\"a\\":1}"}}',
  },
  {
    mistake: 'a mode that does not exist',
    make: () => encode(1, { mode: 'fast' }),
    code: 'TRANSPORT_ARGUMENT',
    message:
      "{{where|encode()}}: {{what|mode}} {{remedy|must be 'process' or 'self-contained'}}; received " +
      '{{received|"fast"}}',
  },
]
