/**
 * Mistakes with shared state: stores, locks, semaphores, channels, counters.
 *
 * Names are those of this file, since the lists in messages contain every name of the process.
 */
import { AtomicCounter, Channel, Lock, RwLock, Semaphore, store } from 'corespun'
import { atomically, atomicallySync } from 'corespun/store'

const cache = store.create('cache', { valueBytesMax: 1000 })
const full = store.create('full', { entriesMax: 1, eviction: 'none' })
const lock = Lock.create('jobs')
const permits = Semaphore.create('permits', { permits: 2 })
const counter = AtomicCounter.create('hits')

cache.set('text', 'x')
cache.set('map', new Map())

class User {}

const OWN =
  'is already held or waited for by the caller, which would wait for itself forever; ' +
  '{{remedy|end that guard first (a lock is not reentrant, and a read lock does not become a write lock)}}'
const KEY =
  "{{where+what|a key of the store 'cache'}} {{remedy|must be a string of at most 65536 bytes}}; received "

/** @type {import('../check.mjs').Mistake[]} */
export const mistakes = [
  {
    mistake: 'max first, as in other caches',
    make: () => store.create('x', { maxEntries: 5 }),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.create()}}: unknown option {{what+received|"maxEntries"}}; {{remedy|did you mean ' +
      '"entriesMax"?}}',
  },
  {
    mistake: 'a time to live without its unit',
    make: () => store.create('x', { ttl: 5 }),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.create()}}: unknown option {{what+received|"ttl"}}; {{remedy|did you mean "ttlMs"?}}',
  },
  {
    mistake: 'a store for no entries',
    make: () => store.create('x', { entriesMax: 0 }),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.create()}}: {{what|entriesMax}} {{remedy|must be an integer of at least 1}}; ' +
      'received {{received|0}}',
  },
  {
    mistake: 'an eviction that does not exist',
    make: () => store.create('x', { eviction: 'fifo' }),
    code: 'STORE_ARGUMENT',
    message:
      "{{where|store.create()}}: {{what|eviction}} {{remedy|must be 'lru' or 'none'}}; received " +
      '{{received|"fifo"}}',
  },
  {
    mistake: 'a name of a store that is taken',
    make: () => store.create('cache'),
    code: 'STORE_EXISTS',
    message:
      "a store named {{what+received|'cache'}} already exists; {{remedy|getOrCreate() or get() returns it}}",
  },
  {
    mistake: 'an unknown store',
    make: () => store.get('nope'),
    code: 'STORE_UNKNOWN',
    message: 'no store is named {{what+received|"nope"}}; {{remedy|existing stores: <any>"cache"<any>}}',
  },
  {
    mistake: 'a number as a key',
    make: () => cache.set(5, 1),
    code: 'STORE_ARGUMENT',
    message: `${KEY}{{received|5}}`,
  },
  {
    mistake: 'an object as a key, as in a Map',
    make: () => cache.get({ id: 1 }),
    code: 'STORE_ARGUMENT',
    message: `${KEY}{{received|a plain object}}`,
  },
  {
    mistake: 'set without a value',
    make: () => cache.set('k'),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.set()}}: {{what|value}} {{remedy|must be a value other than undefined (delete() ' +
      'deletes a key)}}; ' +
      'received {{received|undefined}}',
  },
  {
    mistake: 'a promise as a value',
    make: () => cache.set('k', Promise.resolve(1)),
    code: 'TRANSPORT_REFUSED',
    message:
      '{{where|value}} cannot be transported: {{what+received|a Promise}}: a promise settles in one ' +
      'thread only; ' +
      '{{remedy|await it first}}',
  },
  {
    mistake: 'an object of a class as a value',
    make: () => cache.set('k', { user: new User() }),
    code: 'TRANSPORT_CLASS_UNREGISTERED',
    message:
      '{{where|value.user}} cannot be transported: its class {{what+received|User}} is not registered; ' +
      "{{remedy|call register(User, { cid: 'app/User' }) in a module that both threads import}}",
  },
  {
    mistake: 'a time to live without an object around it',
    make: () => cache.set('k', 1, 5000),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.set()}}: {{what|options}} {{remedy|must be an object}}; received {{received|5000}}',
  },
  {
    mistake: 'a value above the limit',
    make: () => cache.set('k', 'x'.repeat(2000)),
    code: 'STORE_VALUE_TOO_LARGE',
    message:
      'the value for {{what|"k"}} is too large for the store \'cache\', whose limit per value is ' +
      '{{received|1000}} bytes ' +
      '(valueBytesMax, bytesMax); {{remedy|raise it, or store less}}',
  },
  {
    mistake: 'a second entry where one fits',
    make: () => {
      full.set('a', 1)
      full.set('b', 1)
    },
    code: 'STORE_FULL',
    message:
      "the store {{what|'full'}} is full (entriesMax {{received|1}}, bytesMax Infinity) and its " +
      "eviction is 'none'; " +
      "{{remedy|delete entries, or use eviction 'lru'}}",
  },
  {
    mistake: 'increment of a text',
    make: () => cache.increment('text'),
    code: 'STORE_NOT_NUMBER',
    message:
      '{{where|store.increment()}}: {{what|the value of "text" in \'cache\'}} must be a finite ' +
      'number; found {{received|"x"}}; ' +
      '{{remedy|set() replaces it}}',
  },
  {
    mistake: 'an asynchronous update',
    make: () => cache.update('k', async () => 2),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.update()}}: {{what|the function}} must return the new value ' +
      '{{remedy|(await before the call, or use getOrCompute())}}; received {{received|a Promise}}',
  },
  {
    mistake: 'a value instead of the function of update',
    make: () => cache.update('k', 5),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.update()}}: {{what|the second argument}} {{remedy|must be a function}}; received ' +
      '{{received|5}}',
  },
  {
    mistake: 'an update that writes its own key',
    make: () => cache.update('k', () => cache.set('k', 1)),
    code: 'STORE_UPDATE_CYCLE',
    message:
      'the function that updates {{what+received|"k"}} in \'cache\' writes that key; {{remedy|return ' +
      'the new value instead}}',
  },
  {
    mistake: 'a transaction that awaits',
    make: () => atomically(async (tx) => tx.get(cache, 'k')),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|atomically()}}: {{what|the function}} {{remedy|must be one that returns its result (wait ' +
      'before the call)}}; received {{received|a Promise}}',
  },
  {
    mistake: 'a transaction in a transaction',
    make: () => atomicallySync(() => atomicallySync((tx) => tx.get(cache, 'k'))),
    code: 'STORE_ATOMIC_NESTED',
    message:
      '{{where+received|atomicallySync()}} was called by {{what|the function of a transaction}}, whose ' +
      'changes it would not see; {{remedy|pass `tx` to what takes part in it}}',
  },
  {
    mistake: 'a wait in a transaction that cannot wait',
    make: () => atomicallySync((tx) => tx.check(tx.get(cache, 'k') === 1)),
    code: 'STORE_ATOMIC_WAITS',
    message:
      '{{what|retry()}} in {{where+received|atomicallySync()}}, which cannot wait; {{remedy|use `await ' +
      'atomically()`, or orElse() with another way}}',
  },
  {
    mistake: 'a write beside the transaction',
    make: () => atomicallySync((tx) => (tx.get(cache, 'k'), cache.set('k', 1))),
    code: 'STORE_UPDATE_CYCLE',
    message:
      'the function of a transaction that has {{what+received|"k"}} in \'cache\' writes that key beside ' +
      'it; {{remedy|use tx.set(), tx.update() or tx.delete()}}',
  },
  {
    mistake: 'getOrCompute without a function',
    make: async () => await cache.getOrCompute('c'),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.getOrCompute()}}: {{what|the second argument}} {{remedy|must be a function}}; ' +
      'received {{received|undefined}}',
  },
  {
    mistake: 'a computation that asks for its own key',
    make: async () => await cache.getOrCompute('c', () => cache.getOrCompute('c', () => 1)),
    code: 'STORE_COMPUTE_CYCLE',
    message:
      '{{where|store.getOrCompute()}}: the function that computes {{what+received|"c"}} in \'cache\' ' +
      'asks for it and would ' +
      'wait for itself; {{remedy|return the value instead}}',
  },
  {
    mistake: 'a view of a Map',
    make: () => cache.view('map'),
    code: 'STORE_NOT_FREEZABLE',
    message:
      '{{where|store.view()}}: {{what|value of "map" in \'cache\'}} cannot be frozen: {{received|a ' +
      'Map}}; {{remedy|use get()}}',
  },
  {
    mistake: 'a callback for watch',
    make: () => cache.watch('k', () => {}),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.watch()}}: {{what|options}} {{remedy|must be an object}}; received {{received|an ' +
      'anonymous function}}',
  },
  {
    mistake: 'a pattern for watch',
    make: () => cache.watch(/user/),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.watch()}}: {{what|the first argument}} {{remedy|must be a key or { prefix }}}; ' +
      'received {{received|a RegExp}}',
  },
  {
    mistake: 'a store that is closed',
    make: () => {
      const brief = store.create('brief')
      brief.close()
      brief.get('k')
    },
    code: 'STORE_CLOSED',
    message: "the store {{what|'brief'}} is closed; {{remedy|store.create() makes a new one of that name}}",
    state: 'whether the store is open',
  },
  {
    mistake: 'other options for an existing store',
    make: () => store.getOrCreate('cache', { entriesMax: 3 }),
    code: 'STORE_ARGUMENT',
    message:
      '{{where|store.getOrCreate()}}: {{what|entriesMax}} ' +
      '{{remedy|must be <any>, as the store "cache" exists with it}}; received {{received|3}}',
  },
  {
    mistake: 'a change of what get returned',
    make: () => {
      cache.set('list', [1])
      cache.get('list').push(2)
      return cache.get('list')
    },
    observed: [1],
    why:
      'get returns a copy, so other threads cannot see the change; view returns a frozen value, which ' +
      'throws',
  },
  {
    mistake: 'a name for new Lock',
    make: () => new Lock('jobs'),
    code: 'SYNC_ARGUMENT',
    message:
      '{{where|new Lock()}} takes {{what|no argument}}: {{remedy|use Lock.getOrCreate(name) for a ' +
      'named one}}; ' +
      'received {{received|"jobs"}}',
  },
  {
    mistake: 'a guard without a function',
    make: async () => await lock.guard(),
    code: 'SYNC_ARGUMENT',
    message:
      '{{where|lock.guard()}}: {{what|the first argument}} {{remedy|must be a function}}; received ' +
      '{{received|undefined}}',
  },
  {
    mistake: 'a promise instead of the function of a guard',
    make: () => lock.tryGuard(Promise.resolve(1)),
    code: 'SYNC_ARGUMENT',
    message:
      '{{what|the first argument of a guard of a lock}} {{remedy|must be a function}}; received ' +
      '{{received|a Promise}}',
  },
  {
    mistake: 'a lock that is taken twice',
    make: async () => await lock.guard(() => lock.guard(() => 1)),
    code: 'SYNC_DEADLOCK',
    message: `{{what|the lock 'jobs'}} ${OWN}`,
    state: 'who holds the lock',
  },
  {
    mistake: 'a read lock that becomes a write lock',
    make: async () => {
      const both = new RwLock()
      await both.read(() => both.write(() => 1))
    },
    code: 'SYNC_DEADLOCK',
    message: `{{what|the anonymous read-write lock}} ${OWN}`,
    state: 'who holds the lock',
  },
  {
    mistake: 'a synchronous guard on the main thread',
    make: () => lock.guardSync(() => 1),
    code: 'SYNC_BLOCKING',
    message:
      "{{what|the lock 'jobs'}}: a synchronous call would block the main thread; " +
      '{{remedy|use the asynchronous one, or pass { allowBlocking: true }}}',
    state: 'the thread that calls',
  },
  {
    mistake: 'an asynchronous function in a synchronous guard',
    make: () => lock.guardSync(async () => 1, { allowBlocking: true }),
    code: 'SYNC_ASYNC_BODY',
    message:
      "{{what|the lock 'jobs'}}: the function of a synchronous guard returned {{received|a promise}}, " +
      'and the guard has ' +
      'ended; {{remedy|use guard()}}',
  },
  {
    mistake: 'a lock that is held for longer than the timeout',
    make: async () => {
      let end
      const held = lock.guard(() => new Promise((resolve) => (end = resolve)))
      await lock.guard(() => 1, { timeoutMs: 5 }).finally(() => (end(), held))
    },
    code: 'SYNC_TIMEOUT',
    message:
      "timed out after {{received|5 ms}} (timeoutMs) while waiting for {{what|the lock 'jobs'}}; " +
      '{{remedy|raise timeoutMs, or hold it for a shorter time}}',
  },
  {
    mistake: 'a lock that does not exist',
    make: () => Lock.get('nope'),
    code: 'SYNC_UNKNOWN',
    message: 'no {{what|lock}} is named {{received|"nope"}}; {{remedy|existing locks: "jobs"}}',
  },
  {
    mistake: 'a number instead of the options of a semaphore',
    make: () => new Semaphore(3),
    code: 'SYNC_ARGUMENT',
    message:
      '{{where|new Semaphore()}}: {{what|options}} {{remedy|must be an object}}; received {{received|3}}',
  },
  {
    mistake: 'a channel without a capacity',
    make: () => new Channel(),
    code: 'SYNC_ARGUMENT',
    message: '{{where|new Channel()}} {{remedy|needs}} {{what|{ messagesMax }}}',
    state: 'the option is absent',
  },
  {
    mistake: 'more permits than there are',
    make: async () => await permits.guard(() => 1, { permits: 3 }),
    code: 'SYNC_ARGUMENT',
    message:
      '{{where|semaphore.guard()}}: {{what|permits}} {{remedy|must be an integer from 1 to 2}}; ' +
      'received {{received|3}}',
  },
  {
    mistake: 'another capacity for an existing semaphore',
    make: () => Semaphore.getOrCreate('permits', { permits: 3 }),
    code: 'SYNC_ARGUMENT',
    message:
      '{{where|Semaphore.getOrCreate()}}: {{what|permits}} ' +
      '{{remedy|must be 2, as the semaphore "permits" exists with it}}; received {{received|3}}',
  },
  {
    mistake: 'put into a closed channel',
    make: async () => {
      const brief = Channel.create('brief', { messagesMax: 1 })
      brief.close()
      await brief.put(1)
    },
    code: 'SYNC_CLOSED',
    message:
      "{{what|the channel 'brief'}} is closed; {{remedy|`for await` of a channel ends there without an " +
      'error}}',
    state: 'whether the channel is open',
  },
  {
    mistake: 'a sum that is not exact',
    make: () => {
      counter.set(Number.MAX_SAFE_INTEGER)
      counter.add(1)
    },
    code: 'SYNC_COUNTER_RANGE',
    message:
      "{{what|the atomic counter 'hits'}} would exceed {{received|the safe integers}}; it has not changed; " +
      '{{remedy|set() starts again}}',
  },
  {
    mistake: 'a text added to a counter',
    make: () => counter.add('1'),
    code: 'SYNC_ARGUMENT',
    message:
      '{{where|counter.add()}}: {{what|by}} {{remedy|must be a safe integer}}; received {{received|"1"}}',
  },
]
