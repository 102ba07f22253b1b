/**
 * Mistakes with fibers and arrows.
 *
 * Those with functions that an arrow sends to a zone are here; those of zones are in functions.mjs.
 */
import { arrow, fiber, store, zone } from 'corespun'

const {
  all,
  attempt,
  currentFiber,
  fail,
  forEach,
  fork,
  never,
  on,
  race,
  retry,
  Schedule,
  Scope,
  sleep,
  timeout,
} = fiber
const { effect, exported, fromFiber, ifThenElse, lift, liftAsync, whileDo } = arrow

const work = zone.create('fibers', { workers: 1 })
const cache = store.create('fibers')
const rate = 1.19
const gross = lift((price) => price * rate).named('gross')
const run = async (body) => await fork(body).join()
const INSIDE = '{{remedy|works in a fiber only, in function* body() { ... } of fork(body())}}'
const OPERATION =
  '{{remedy|use yield* with an operation, as in yield* sleep(5), and yield* attempt(promise) for a promise}}'
const MODULE =
  '{{remedy|Pass the value as an argument, or move the function to a module and call ' +
  "zone.module<typeof import('./m.ts')>('./m.ts').name(...); " +
  'for an arrow, mark it there: exported(import.meta.url, fn). With ' +
  'corespun/plugin <any>}}'
const CAPTURES =
  'an anonymous function ({{where|<file>:<n>:<n>}}) uses a variable from outside itself, which cannot ' +
  'travel to another thread: '
const RATE = `${CAPTURES}{{what+received|rate}} (line <n>, column <n>). ${MODULE}`

export const close = () => work.close()

/** @type {import('../check.mjs').Mistake[]} */
export const mistakes = [
  {
    mistake: 'yield instead of yield*',
    make: () =>
      run(function* () {
        yield sleep(1)
      }),
    code: 'FIBER_YIELD',
    message: `{{what|fiber #<n>}} yielded {{received|a Sleep}}; ${OPERATION}`,
  },
  {
    mistake: 'yield of a promise',
    make: () =>
      run(function* () {
        yield Promise.resolve(1)
      }),
    code: 'FIBER_YIELD',
    message: `{{what|fiber #<n>}} yielded {{received|a Promise}}; ${OPERATION}`,
  },
  {
    mistake: 'yield* of a promise',
    make: () =>
      run(function* () {
        yield* Promise.resolve(1)
      }),
    message:
      '{{what|yield*}} {{received|<any>}} is not iterable; {{remedy|in a fiber, yield* ' +
      'attempt(promise) waits for a promise}}',
  },
  {
    mistake: 'yield* of a call to a zone',
    make: () =>
      run(function* () {
        yield* work.run(() => 1)
      }),
    message:
      '{{what|yield*}} {{received|<any>}} is not iterable; {{remedy|in a fiber, yield* ' +
      'attempt(promise) waits for a promise}}',
  },
  {
    mistake: 'yield* of an array of operations',
    make: () =>
      run(function* () {
        yield* [sleep(1), sleep(1)]
      }),
    code: 'FIBER_YIELD',
    message: `{{what|fiber #<n>}} yielded {{received|a Sleep}}; ${OPERATION}`,
    where: 'the fiber',
  },
  {
    mistake: 'sleep without yield*',
    make: () =>
      run(function* () {
        sleep(60_000)
        return 'not waited'
      }),
    observed: 'not waited',
    why:
      'an operation is a value until yield* runs it; a warning would need a record of every operation ' +
      'made',
  },
  {
    mistake: 'await instead of yield*, outside of a fiber',
    make: async () => (await sleep(60_000)) === undefined,
    observed: false,
    why:
      'an operation is not a promise, so await returns it at once; TypeScript reports await of a ' +
      'non-promise (await-thenable)',
  },
  {
    mistake: 'a text for sleep',
    make: () => sleep('10'),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|sleep()}}: {{what|ms}} {{remedy|must be a number of milliseconds from 0}}; received ' +
      '{{received|"10"}}',
  },
  {
    mistake: 'fork of a promise',
    make: () => fork(Promise.resolve(1)),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|fork()}}: {{what|the body}} must be a function, a generator, an arrow or an operation; ' +
      '{{remedy|pass a promise as attempt(promise)}}; received {{received|a Promise}}',
  },
  {
    mistake: 'one generator object for two fibers',
    make: async () => {
      const body = (function* () {
        yield* sleep(1)
      })()
      const first = fork(body)
      await fork(body)
        .join()
        .finally(() => first.await())
    },
    code: 'FIBER_ARGUMENT',
    message:
      '{{what|the body}} must be a generator that has not begun; {{remedy|pass the generator function ' +
      'to run it again}}; ' +
      'received {{received|one that another fiber runs}}',
  },
  {
    mistake: 'currentFiber outside of a fiber',
    make: () => currentFiber(),
    code: 'FIBER_REQUIRED',
    message: `{{what|currentFiber()}} ${INSIDE}`,
    state: 'the code that calls',
  },
  {
    mistake: 'an operation in for of',
    make: () => [...sleep(1)],
    code: 'FIBER_REQUIRED',
    message: `{{what|yield* of an operation (1 ms)}} ${INSIDE}`,
    state: 'the code that calls',
  },
  {
    mistake: 'all with arguments instead of an array',
    make: () =>
      run(function* () {
        yield* all(sleep(1), sleep(2))
      }),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|all()}}: {{what|the bodies}} must be {{remedy|an array or a record, as in all([one, ' +
      'two])}}; received {{received|a Sleep}}',
  },
  {
    mistake: 'all of promises',
    make: () =>
      run(function* () {
        yield* all([() => 1, Promise.resolve(1)])
      }),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|all()}}: {{what|bodies[1]}} must be a function, a generator, an arrow or an operation; ' +
      '{{remedy|pass a promise as attempt(promise)}}; received {{received|a Promise}}',
  },
  {
    mistake: 'a promise in a record of bodies',
    make: () =>
      run(function* () {
        yield* all({ user: Promise.resolve(1) })
      }),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|all()}}: {{what|user}} must be a function, a generator, an arrow or an operation; ' +
      '{{remedy|pass a promise as attempt(promise)}}; received {{received|a Promise}}',
  },
  {
    mistake: 'a race without bodies',
    make: async () => {
      const waiting = fork(race([]))
      await new Promise((resolve) => setTimeout(resolve, 5))
      const { status } = waiting
      await waiting.interrupt()
      return status
    },
    observed: 'waiting',
    why: 'it waits forever, as Promise.race([]) does; an interrupt or a timeout ends it',
  },
  {
    mistake: 'the arguments of timeout in the order of setTimeout',
    make: () =>
      run(function* () {
        yield* timeout(() => sleep(1), 5)
      }),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|timeout()}}: {{what|ms}} {{remedy|must be a number of milliseconds from 0}}; received ' +
      '{{received|an anonymous function}}',
  },
  {
    mistake: 'a timeout that is too short',
    make: () => run(timeout(5, never())),
    code: 'FIBER_TIMEOUT',
    message:
      '{{where+what|the body of timeout()}} did not end within {{received|5 ms}}; {{remedy|raise the ' +
      'timeout, or handle it with catchAll()}}',
  },
  {
    mistake: 'a number instead of a schedule',
    make: () =>
      run(function* () {
        yield* retry(() => 1, 3)
      }),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|retry()}}: {{what|the schedule}} {{remedy|must be a Schedule}}; received {{received|3}}',
  },
  {
    mistake: 'a generator object for retry',
    make: () =>
      run(function* () {
        const body = (function* () {
          yield* fail('busy')
        })()
        yield* retry(body, Schedule.recurs(2))
      }),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|retry()}}: {{what|the body}} {{remedy|must be a function or an arrow, which can run ' +
      'again}}; received {{received|a Generator}}',
  },
  {
    mistake: 'a concurrency of 0',
    make: () =>
      run(function* () {
        yield* forEach([1], (n) => n, { concurrency: 0 })
      }),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|forEach()}}: {{what|concurrency}} {{remedy|must be an integer from 1}}; received ' +
      '{{received|0}}',
  },
  {
    mistake: 'fork into a scope that is closed',
    make: async () => {
      const scope = new Scope({ name: 'request' })
      await scope.close()
      scope.fork(() => 1)
    },
    code: 'FIBER_SCOPE_CLOSED',
    message:
      "{{what+received|scope 'request'}} is closed; {{remedy|fork before it ends, or in another scope}}",
  },
  {
    mistake: 'the name of a zone instead of the zone',
    make: () => fork(() => 1, { on: 'work' }),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|fork()}}: {{what|on}} {{remedy|must be a zone of this process}}; received {{received|"work"}}',
  },
  {
    mistake: 'on without its function',
    make: () =>
      run(function* () {
        yield* on(work)
      }),
    code: 'FIBER_ARGUMENT',
    message:
      '{{where|on()}}: {{what|the step}} {{remedy|must be a function}}; received {{received|undefined}}',
  },
  {
    mistake: 'a fiber that joins itself',
    make: async () => {
      const self = fork(function* () {
        yield* sleep(1)
        yield* self.join()
      })
      await self.join()
    },
    code: 'FIBER_DEADLOCK',
    message:
      '{{what|fiber #<n>}}: {{received|join()}} would wait for this fiber itself; {{remedy|call it in ' +
      'another fiber}}',
  },
  {
    mistake: 'await of a fiber and not of its join',
    make: async () => (await fork(() => 1)) instanceof fiber.Fiber,
    observed: true,
    why:
      'a fiber is not a promise, so that a fiber which returns a fiber is not unwrapped; join() and ' +
      'await() are',
  },
  {
    mistake: 'exit of a fiber that runs',
    make: async () => {
      const running = fork(sleep(1))
      const { exit } = running
      await running.join()
      return exit
    },
    observed: undefined,
    why: 'exit is a property: undefined until the fiber has ended; fiber.await() waits for it',
  },
  {
    mistake: 'attempt of a value',
    make: () =>
      run(function* () {
        return yield* attempt(5)
      }),
    observed: 5,
    why: 'a value counts as a promise of it, as in await',
  },
  {
    mistake: 'lift of a number',
    make: () => lift(5),
    code: 'ARROW_ARGUMENT',
    message: '{{where|lift()}}: {{what|fn}} {{remedy|must be a function}}; received {{received|5}}',
  },
  {
    mistake: 'map without a function',
    make: () => lift((x) => x).map(),
    code: 'ARROW_ARGUMENT',
    message: '{{where|map()}}: {{what|fn}} {{remedy|must be a function}}; received {{received|undefined}}',
  },
  {
    mistake: 'lift of an asynchronous function before another stage',
    make: () =>
      lift(async (x) => x)
        .map((x) => typeof x.then)
        .run(1),
    observed: 'function',
    why:
      'a synchronous stage passes the promise on as a value, which TypeScript reports; liftAsync waits ' +
      'for it',
  },
  {
    mistake: 'a function instead of an arrow',
    make: () => lift((x) => x).andThen((x) => x),
    code: 'ARROW_ARGUMENT',
    message:
      '{{where|andThen()}}: {{what|next}} {{remedy|must be an arrow}}; received {{received|an ' +
      'anonymous function}}',
  },
  {
    mistake: 'the name of a zone for on',
    make: () => lift((x) => x).on('work'),
    code: 'ARROW_ARGUMENT',
    message: '{{where|on()}}: {{what|zone}} {{remedy|must be a zone}}; received {{received|"work"}}',
  },
  {
    mistake: 'a stage with a captured variable on a zone',
    make: () => lift((price) => price * rate).on(work),
    code: 'FUNCTION_CAPTURES',
    message: `{{what|stage 1 of the arrow}}: ${RATE}`,
  },
  {
    mistake: 'a captured variable in the second of three stages on a zone',
    make: () =>
      lift((text) => Number(text))
        .andThen(gross)
        .map((price) => String(price))
        .on(work),
    code: 'FUNCTION_CAPTURES',
    message: `{{what|stage 2 of the arrow ("gross")}}: ${RATE}`,
  },
  {
    mistake: 'a bound function as a stage on a zone',
    make: () =>
      lift((price) => price)
        .map((0, Math.max).bind(null, 1))
        .on(work),
    code: 'FUNCTION_BOUND',
    message:
      '{{what|stage 2 of the arrow}}: function {{received|bound max}} was made by bind(), and bound values ' +
      'cannot travel to another thread: {{remedy|pass them as arguments}}',
  },
  {
    mistake: 'a catcher with a captured variable on a zone',
    make: () =>
      effect(
        (text) => JSON.parse(text),
        () => rate,
      ).on(work),
    code: 'FUNCTION_CAPTURES',
    message: `{{what|the catcher of stage 1 of the arrow}}: ${RATE}`,
  },
  {
    mistake: 'exported without the URL of the module',
    make: () => exported((x) => x),
    code: 'ARROW_ARGUMENT',
    message:
      '{{where|exported()}}: {{what|url}} {{remedy|must be import.meta.url}}; received {{received|an ' +
      'anonymous function}}',
  },
  {
    mistake: 'effect without a catcher',
    make: () => effect((x) => x),
    code: 'ARROW_ARGUMENT',
    message:
      '{{where|effect()}}: {{what|catcher}} {{remedy|must be a function}}; received {{received|undefined}}',
  },
  {
    mistake: 'flatMap with a function that returns no arrow',
    make: () =>
      lift((x) => x)
        .flatMap((x) => x + 1)
        .run(1),
    code: 'ARROW_ARGUMENT',
    message:
      '{{where+what|the result of the function of flatMap() or catchAll()}} must be an arrow, ' +
      '{{remedy|such as succeed(value)}}; received {{received|2}}',
  },
  {
    mistake: 'fromFiber with an asynchronous function',
    make: async () => await fromFiber(async (x) => x).run(1),
    code: 'ARROW_ARGUMENT',
    message:
      '{{where+what|the result of the function of fromFiber()}} must be a generator, an operation or a ' +
      'runnable ' +
      '({{remedy|for a promise, use liftAsync}}); received {{received|a Promise}}',
  },
  {
    mistake: 'a function as a condition',
    make: () =>
      whileDo(
        (x) => x < 3,
        lift((x) => x + 1),
      ),
    code: 'ARROW_ARGUMENT',
    message:
      '{{where|whileDo()}}: {{what|condition}} {{remedy|must be an arrow}}; received {{received|an ' +
      'anonymous function}}',
  },
  {
    mistake: 'a branch that is missing',
    make: () =>
      ifThenElse(
        lift((x) => x > 1),
        lift((x) => x),
      ),
    code: 'ARROW_ARGUMENT',
    message:
      '{{where|ifThenElse()}}: {{what|otherwise}} {{remedy|must be an arrow}}; received ' +
      '{{received|undefined}}',
  },
  {
    mistake: 'a number of retries instead of a schedule',
    make: () => lift((x) => x).retry(3),
    code: 'ARROW_ARGUMENT',
    message: '{{where|retry()}}: {{what|schedule}} {{remedy|must be a Schedule}}; received {{received|3}}',
  },
  {
    mistake: 'an arrow that takes longer than its timeout',
    make: async () =>
      await liftAsync(() => new Promise(() => {}))
        .timeout(5)
        .run(1),
    code: 'ARROW_TIMEOUT',
    message:
      '{{what+where|the arrow}} did not end within {{received|5 ms}} (timeout()); {{remedy|raise the ' +
      'timeout, or handle it with catchAll()}}',
  },
  {
    mistake: 'an option of a stream that does not exist',
    make: async () =>
      await lift((x) => x)
        .stream([1], { concurrent: 3 })
        .next(),
    code: 'ARROW_ARGUMENT',
    message:
      '{{where|stream()}}: unknown option {{what+received|"concurrent"}}; {{remedy|did you mean ' +
      '"concurrency"?}}',
  },
  {
    mistake: 'a key of a cache that is not a string',
    make: async () =>
      await lift((x) => x)
        .through(cache)
        .run(5),
    code: 'ARROW_ARGUMENT',
    message:
      '{{where|through()}}: {{what|the key}} must be a string, {{remedy|which through(store, (input) ' +
      '=> key) returns}}; received {{received|5}}',
  },
  {
    mistake: 'a format of explain that does not exist',
    make: () => lift((x) => x).explain({ format: 'svg' }),
    code: 'ARROW_ARGUMENT',
    message:
      "{{where|explain()}}: {{what|format}} {{remedy|must be one of 'text', 'mermaid', 'dot'}}; " +
      'received {{received|"svg"}}',
  },
]
