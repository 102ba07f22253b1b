/**
 * Mistakes with zones: options, names, calls, limits, deaths.
 *
 * Limits are as small as the mistakes need them, so that each row takes milliseconds.
 */
import { zone } from 'corespun'
import { join } from 'corespun/zone'

const work = zone.create('work', { workers: 1 })
const tight = zone.create('tight', { workers: 2, tasksMax: 2, queueBytesMax: 10_000, graceMs: 0 })
const shared = zone.create('shared', { workers: 1, tasksPerTenantMax: 2 })
const small = zone.create('small', { workers: 1, heapMbMax: 64 })

export const close = () => Promise.all([work, tight, shared, small, zone.cpu].map((one) => one.close()))

const helper = () => 1

/** @type {import('../check.mjs').Mistake[]} */
export const mistakes = [
  {
    mistake: 'a misspelt option',
    make: () => zone.create('x', { worker: 2 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.create()}}: unknown option {{what+received|"worker"}}; {{remedy|did you mean ' +
      '"workers"?}}',
  },
  {
    mistake: 'an option of another library',
    make: () => zone.create('x', { maxThreads: 2 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.create()}}: unknown option {{what+received|"maxThreads"}}; {{remedy|the options ' +
      'are executor, ' +
      'workers, tasksMax, tasksPerTenantMax, queueBytesMax, ' +
      'tasksPerWorkerMax, waitingPerWorkerMax, spinUs, nice, ' +
      'graceMs, closeMs, setup, teardown, hookMs, heapMbMax, ' +
      'isolation, memoryMbMax, callStacks, execArgv, env, weak}}',
  },
  {
    mistake: 'the words of an option in another order',
    make: () => zone.create('x', { maxTasks: 2 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.create()}}: unknown option {{what+received|"maxTasks"}}; {{remedy|did you mean ' +
      '"tasksMax"?}}',
  },
  {
    mistake: 'no worker at all',
    make: () => zone.create('x', { workers: 0 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.create()}}: {{what|workers}} {{remedy|must be an integer from 1 to 1024}}; ' +
      'received {{received|0}}',
  },
  {
    mistake: 'a number from an environment variable',
    make: () => zone.create('x', { workers: '4' }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.create()}}: {{what|workers}} {{remedy|must be an integer from 1 to 1024}}; ' +
      'received {{received|"4"}}',
  },
  {
    mistake: 'half the cores of a machine with an odd number of them',
    make: () => zone.create('x', { workers: 3 / 2 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.create()}}: {{what|workers}} {{remedy|must be an integer from 1 to 1024}}; ' +
      'received {{received|1.5}}',
  },
  {
    mistake: 'a number in the position of the options',
    make: () => zone.create('x', 4),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.create()}}: {{what|options}} {{remedy|must be an object}}; received {{received|4}}',
  },
  {
    mistake: 'options without a name',
    make: () => zone.create({ workers: 2 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.create()}}: {{what|id}} {{remedy|must be a string of 1 to 256 characters without ' +
      'NUL}}; ' +
      'received {{received|a plain object}}',
  },
  {
    mistake: 'an executor without its hyphen',
    make: () => zone.create('x', { executor: 'workstealing' }),
    code: 'ZONE_ARGUMENT',
    message:
      "{{where|zone.create()}}: {{what|executor}} {{remedy|must be one of 'fixed', 'work-stealing', " +
      "'blocking', 'cached'}}; " +
      'received {{received|"workstealing"}}',
  },
  {
    mistake: 'most workers for an executor that does not grow',
    make: () => zone.create('x', { executor: 'work-stealing', workers: { max: 3 } }),
    code: 'ZONE_ARGUMENT',
    message:
      "{{where|zone.create()}}: {{what|workers.max}} {{remedy|needs another executor than 'work-stealing'}}" +
      '; received {{received|3}}',
  },
  {
    mistake: 'a name that is taken',
    make: () => zone.create('work'),
    code: 'ZONE_EXISTS',
    message:
      'a zone named {{what+received|"work"}} already exists; {{remedy|zone.getOrCreate() or zone.get() ' +
      'returns it}}',
  },
  {
    mistake: 'the name of the calling thread',
    make: () => zone.create('node'),
    code: 'ZONE_EXISTS',
    message: 'the name {{what+received|"node"}} is that of the calling thread; {{remedy|choose another one}}',
  },
  {
    mistake: 'getOrCreate with other options',
    make: () => zone.getOrCreate('work', { workers: 3 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.getOrCreate()}}: {{what|workers}} {{remedy|must be 1, as the zone "work" exists ' +
      'with it}}; ' +
      'received {{received|3}}',
  },
  {
    mistake: 'an unknown zone',
    make: () => zone.get('wrok'),
    code: 'ZONE_UNKNOWN',
    message: 'no zone is named {{what+received|"wrok"}}; {{remedy|existing zones: <any>"work"<any>}}',
  },
  {
    mistake: 'a call instead of the function',
    make: async () => await work.run(helper()),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.run()}}: {{what|the first argument}} {{remedy|must be a function; pass its ' +
      'arguments after it}}; ' +
      'received {{received|1}}',
  },
  {
    mistake: 'a module for run',
    make: async () => await work.run('node:path', 'join'),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.run()}}: {{what|the first argument}} must be a function; ' +
      '{{remedy|zone.execute(module, name, args) calls an export}}; received {{received|"node:path"}}',
  },
  {
    mistake: 'arguments that are not an array',
    make: async () => await work.execute('node:path', 'join', 'a', 'b'),
    code: 'ZONE_ARGUMENT',
    message: '{{where|zone.execute()}}: {{what|args}} {{remedy|must be an array}}; received {{received|"a"}}',
  },
  {
    mistake: 'a module without the name of an export',
    make: async () => await work.execute('node:path'),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.execute()}}: {{what|the name of an export}} {{remedy|must be a string that is not ' +
      'empty}}; ' +
      'received {{received|undefined}}',
  },
  {
    mistake: 'an export that does not exist',
    make: async () => await work.execute('node:events', 'onse'),
    code: 'FUNCTION_EXPORT_MISSING',
    message:
      'module {{where|node:events}} has no export {{what+received|"onse"}}; ' +
      '{{remedy|did you mean "once"? its exports: <any>once<any>}}',
  },
  {
    mistake: 'an export that is not a function',
    make: async () => await work.execute('node:path', 'sep'),
    code: 'FUNCTION_EXPORT_KIND',
    message:
      '{{what|"sep"}} of module {{where|node:path}} is {{received|"/"}}, not a function; ' +
      '{{remedy|export a function that returns it}}',
  },
  {
    mistake: 'a module that does not exist',
    make: async () => await work.execute('./nope.mjs', 'x'),
    code: 'FUNCTION_MODULE',
    message:
      'module {{what+where+received|file://<any>/test/messages/mistakes/nope.mjs}} cannot be loaded: ' +
      'no such file ' +
      '{{remedy|(a relative name starts at the calling file, or at the option from; of a bundle the ' +
      'file is part only if it is built with corespun/plugin)}}',
  },
  {
    mistake: 'a package that is not installed',
    make: async () => await work.execute('lodahs', 'x'),
    code: 'FUNCTION_MODULE',
    message:
      "module {{what+received|lodahs}} cannot be loaded: Cannot find package 'lodahs' imported from " +
      '{{where|<any>/zones.mjs}}; {{remedy|npm install lodahs}}',
  },
  {
    mistake: 'module() without a module',
    make: () => work.module().join('a'),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.module()}}: {{what|the module}} {{remedy|must be a URL, a path or the name of a ' +
      'package}}; ' +
      'received {{received|undefined}}',
  },
  {
    mistake: 'timeout instead of timeoutMs',
    make: async () => await work.execute(() => 1, [], { timeout: 5 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.execute()}}: unknown option {{what+received|"timeout"}}; {{remedy|did you mean ' +
      '"timeoutMs"?}}',
  },
  {
    mistake: 'a time in a string',
    make: async () => await work.execute(() => 1, [], { timeoutMs: '5' }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.execute()}}: {{what|timeoutMs}} {{remedy|must be a number of milliseconds from 0 ' +
      'to 2147483647}}; ' +
      'received {{received|"5"}}',
  },
  {
    mistake: 'a controller instead of its signal',
    make: async () => await work.execute(() => 1, [], { signal: new AbortController() }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.execute()}}: {{what|signal}} {{remedy|must be an AbortSignal}}; received ' +
      '{{received|an AbortController}}',
  },
  {
    mistake: 'a misspelt limit of a view',
    make: () => work.with({ timeOut: 5 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.with()}}: unknown option {{what+received|"timeOut"}}; {{remedy|did you mean ' +
      '"timeoutMs"?}}',
  },
  {
    mistake: 'a listener that is missing',
    make: () => work.onError(),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.onError()}}: {{what|the listener}} {{remedy|must be a function}}; received ' +
      '{{received|undefined}}',
  },
  {
    mistake: 'map over a number',
    make: async () => await work.map(5, (x) => x),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.map()}}: {{what|the items}} {{remedy|must be an array, a typed array or an (async) ' +
      'iterable}}; ' +
      'received {{received|5}}',
  },
  {
    mistake: 'map over an object',
    make: async () => await work.map({ a: 1 }, (x) => x),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.map()}}: {{what|the items}} {{remedy|must be an array, a typed array or an (async) ' +
      'iterable}}; ' +
      'received {{received|a plain object}}',
  },
  {
    mistake: 'map over a promise',
    make: async () => await work.map(Promise.resolve([1]), (x) => x),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.map()}}: {{what|the items}} must be an array, a typed array or an (async) iterable; ' +
      '{{remedy|await the promise first}}; received {{received|a Promise}}',
  },
  {
    mistake: 'map without a function',
    make: async () => await work.map([1]),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.map()}}: {{what|the second argument}} {{remedy|must be a function}}; received ' +
      '{{received|undefined}}',
  },
  {
    mistake: 'the option of p-map',
    make: async () => await work.map([1], (x) => x, { concurrency: 4 }),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|zone.map()}}: unknown option {{what+received|"concurrency"}}; {{remedy|the options are ' +
      'timeoutMs, ' +
      'signal, chunkMax, chunksMax, aheadMax, priority, tenant, weight, affinity, exclusive, ordered, ' +
      'settle, itemSignal}}',
  },
  {
    mistake: 'an item that cannot travel',
    make: async () => await work.map([1, 2, 3, Symbol('x')], () => 1),
    code: 'TRANSPORT_REFUSED',
    message:
      '{{where|items[3]}} cannot be transported: {{what+received|Symbol(x)}}: a symbol has an identity ' +
      'that no other ' +
      'thread has; {{remedy|send a string}}',
  },
  {
    mistake: 'reduce without an initial value, as of an array',
    make: async () => await work.reduce([1, 2], (a, b) => a + b),
    code: 'ZONE_ARGUMENT',
    message: '{{where|zone.reduce()}} {{remedy|needs}} {{what|the initial value as its third argument}}',
    state: 'the value is absent',
  },
  {
    mistake: 'reduce without an initial value, on a view with limits',
    make: async () => await work.with({ timeoutMs: 60_000 }).reduce([1, 2], (a, b) => a + b),
    code: 'ZONE_ARGUMENT',
    message: '{{where|zone.reduce()}} {{remedy|needs}} {{what|the initial value as its third argument}}',
    state: 'the value is absent',
  },
  {
    mistake: 'an error of the function of map',
    make: () => work.map([1, 0], (x) => 1n / BigInt(x)).catch(({ name, message }) => [name, message]),
    observed: ['RangeError', 'Division by zero'],
    why: 'errors of tasks arrive as they are, with the stack of the worker and that of the caller',
  },
  {
    mistake: 'a call after close',
    make: async () => {
      const brief = zone.create('brief', { workers: 1 })
      await brief.close()
      await brief.run(() => 1)
    },
    code: 'ZONE_CLOSED',
    message: 'zone {{what|brief}} is closed; {{remedy|close a zone after its last call has ended}}',
    state: 'whether the zone is open',
  },
  {
    mistake: 'more calls than the queue holds',
    make: async () => {
      const calls = Array.from({ length: 9 }, () =>
        tight.run(() => new Promise((done) => setTimeout(done, 20))),
      )
      const refused = (await Promise.allSettled(calls)).find(({ status }) => status === 'rejected')
      throw refused.reason
    },
    code: 'ZONE_FULL',
    message:
      'zone {{what|tight}} is full: {{received|2 tasks}} wait (tasksMax); {{remedy|await zone.ready() ' +
      'before the call}}',
  },
  {
    mistake: 'more calls for one customer than it may have waiting',
    make: async () => {
      const tenant = shared.with({ tenant: 'Ann' })
      const calls = Array.from({ length: 9 }, () =>
        tenant.run(() => new Promise((done) => setTimeout(done, 20))),
      )
      const refused = (await Promise.allSettled(calls)).find(({ status }) => status === 'rejected')
      throw refused.reason
    },
    code: 'ZONE_TENANT_FULL',
    message:
      'zone {{where|shared}} has {{received|2}} waiting tasks of {{what|tenant "Ann"}} ' +
      '(tasksPerTenantMax); {{remedy|wait until some of its calls have ended, or refuse the work}}',
  },
  {
    mistake: 'arguments larger than the limit',
    make: async () => await tight.run((bytes) => bytes.length, new Uint8Array(20_000)),
    code: 'TASK_TOO_LARGE',
    message:
      '{{what|the arguments}} have {{received|<n> bytes}}; zone tight accepts 10000 per task; ' +
      '{{remedy|send less, pass large buffers through move(), or raise queueBytesMax}}',
  },
  {
    mistake: 'an endless loop under a timeout',
    make: async () => {
      const endless = () => {
        for (;;);
      }
      await tight.execute(endless, [], { timeoutMs: 20 })
    },
    code: 'TASK_TIMEOUT',
    message:
      '{{what|the call to zone tight}} did not <any> within {{received|20 ms}} (timeoutMs); ' +
      '{{remedy|raise timeoutMs, or}} <any>',
  },
  {
    mistake: 'process.exit in a task',
    make: async () => await tight.run(() => process.exit(3)),
    code: 'WORKER_DIED',
    message:
      'worker {{what|tight/<n>}} died while it ran the task: it exited with {{received|code 3}} ' +
      '({{remedy|process.exit() ends the worker; throw an error instead}})',
  },
  {
    mistake: 'a heap that grows without end',
    make: async () =>
      await small.run(() => {
        for (let all = null; ;) all = { all } // an array that doubles ends the process on Node 24
      }),
    code: 'WORKER_DIED',
    message:
      'worker {{what|small/<n>}} died while it ran the task: its heap was exhausted ' +
      '({{remedy|heapMbMax limits it}})',
    state: 'the size of the heap',
  },
  {
    mistake: 'a promise that nobody awaits rejects in a task',
    make: async () => {
      const stray = async () => {
        void Promise.reject(new Error('stray'))
        await new Promise((resolve) => setTimeout(resolve, 10_000))
      }
      await tight.run(stray).catch((error) => {
        // The stack of the cause is where the promise was made.
        throw Object.assign(error, { stack: `${error.stack}\n${error.cause.stack}` })
      })
    },
    code: 'WORKER_DIED',
    message:
      'worker {{what|tight/<n>}} died while it ran the task: ' +
      '{{remedy|an error was not caught}}: {{received|stray}}',
  },
  {
    mistake: 'recursion without end',
    make: async () => {
      await small.broadcast(() => {
        globalThis.again = async () => {
          const { zone } = await import('corespun')
          return zone.get('small').run(globalThis.again)
        }
      })
      await small.run(() => globalThis.again())
    },
    code: 'ZONE_CALL_TOO_DEEP',
    message:
      'a call to zone {{what|small}} is nested deeper than {{received|4096 tasks}}, each of ' +
      'which waits for the next: {{remedy|end the recursion}}',
  },
  {
    mistake: 'a broadcast that broadcasts to its own zone',
    make: async () =>
      await tight.broadcast(async () => {
        const { zone } = await import('corespun')
        await zone.get('tight').broadcast(() => 1)
      }),
    code: 'ZONE_DEADLOCK',
    message:
      'zone {{received|tight}}: {{what|a call from its own broadcast}} would wait for a worker that itself ' +
      'waits for the call; {{remedy|call another zone, or make the call in another thread}}',
  },
  {
    mistake: 'a broadcast that waits for another zone, whose task calls back',
    make: async () => {
      const other = zone.create('backward', { workers: 1 })
      try {
        await tight.broadcast(async () => {
          const { zone } = await import('corespun')
          await zone.get('backward').run(async () => {
            const { zone } = await import('corespun')
            await zone.get('tight').run(() => 1)
          })
        })
      } finally {
        await other.close()
      }
    },
    code: 'ZONE_DEADLOCK',
    message:
      'zone {{received|tight}}: {{what|a call that its own broadcast waits for}} would wait for a worker ' +
      'that itself waits for the call; {{remedy|call another zone, or make the call in another thread}}',
  },
  {
    mistake: 'asynchronous functions for join',
    make: async () =>
      await zone.cpu.run(async () => {
        const { join } = await import('corespun/zone')
        void join([async () => 1], [async () => 2])
      }),
    code: 'JOIN_ASYNC',
    message:
      '{{what|join()}} in zone corespun.cpu calls synchronous functions; an anonymous one returned ' +
      '{{received|a promise}}; ' +
      '{{remedy|for asynchronous ones, await zone.current.run()}}',
  },
  {
    mistake: 'functions for join that are not in arrays',
    make: () => join(helper, helper),
    code: 'ZONE_ARGUMENT',
    message:
      '{{where|join()}}: {{what|the first side}} {{remedy|must be an array of a function and its ' +
      'arguments}}; ' +
      'received {{received|function helper}}',
  },
  {
    mistake: 'a task calls its own zone of one worker',
    make: async () =>
      await work.run(async () => {
        const { zone } = await import('corespun')
        return zone.current.run((n) => n + 1, 1)
      }),
    observed: 2,
    why: 'a worker whose task waits for a zone begins another task, so the two do not wait for each other',
  },
  {
    mistake: 'a task that is not awaited',
    make: () => void work.run(() => 1),
    observed: undefined,
    why:
      'a promise may be dropped; its rejection would be an unhandledRejection, and ' +
      'no-floating-promises finds it',
  },
  {
    mistake: '`this` in a sent function',
    make: async () =>
      await work.run(function () {
        return this.zone
      }),
    observed: 'work',
    why: '`this` is the Task in a function of its own; only an arrow function would capture the outer one',
  },
]
