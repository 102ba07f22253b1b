/**
 * A snapshot with a row of each kind, as tests of what is drawn use it.
 *
 * `hostile` has names that attack terminals and pages.
 */
import type { Snapshot } from './figures/snapshot.ts'

const durations = { count: 10, sumMs: 100, buckets: [1, 2, 3, 4] }

const SAMPLE: Snapshot = {
  version: 1,
  name: 'orders',
  pid: 4711,
  host: 'one',
  node: 'v24.0.0',
  corespun: '0.2.0',
  atMs: 4000,
  upMs: 3_600_000,
  problems: [],
  cpuMs: 60_000,
  memoryBytes: 123_456_789,
  connections: 12,
  accepted: 100,
  receivedBytes: 1000,
  sentBytes: 5000,
  boundsMs: { tasks: [1, 10, 100], requests: [5, 50, 500] },
  running: [
    {
      worker: 'cpu/0',
      thread: 'cpu/0',
      zone: 'cpu',
      name: 'score',
      source: 'file:///app/tasks.ts:12',
      ageMs: 1500,
      caller: 'the main thread',
      isCancelled: false,
    },
  ],
  zones: [
    {
      zone: 'cpu',
      workers: 2,
      asleep: 1,
      waiting: 5,
      waitingBytes: 100,
      high: 2,
      low: 1,
      tenants: 1,
      byTenant: [{ tenant: 'acme', waiting: 5 }],
      errors: 0,
    },
  ],
  functions: [
    {
      zone: 'cpu',
      name: 'score',
      running: 1,
      done: 100,
      failed: 2,
      died: 1,
      withdrawn: 0,
      cpuMs: 500,
      wait: durations,
      duration: durations,
    },
  ],
  routes: [
    {
      method: 'GET',
      route: '/score/:id',
      active: 1,
      requests: 100,
      clientErrors: 3,
      serverErrors: 2,
      aborted: 1,
      bytes: 5000,
      cpuMs: 70,
      duration: durations,
    },
  ],
  stages: [{ arrow: 'pipeline', stage: 'parse › function', calls: 16, ms: 2 }],
  threads: [
    {
      thread: 'main',
      cpuMs: 1000,
      activeMs: 900,
      idleMs: 100,
      delayP99Ms: 3,
      delayMaxMs: 9,
      gcMs: 10,
      heapBytes: 1e7,
      heapBytesMax: 4e9,
      externalBytes: 1e6,
      fibers: 3,
      fleets: 0,
    },
  ],
  stores: [
    {
      store: 'prices',
      entries: 10,
      bytes: 1000,
      hits: 90,
      misses: 10,
      evictions: 1,
      expirations: 0,
      syncs: 0,
    },
  ],
  locks: [{ lock: 'report', kind: 'lock', free: 0, waiting: 2 }],
  ended: [
    { kind: 'jobs', zone: 'mail', name: 'send', done: 7, failed: 2, cancelled: 1 },
    { kind: 'runs', zone: '', name: 'order', done: 3, failed: 0, cancelled: 0 },
  ],
  refusals: [{ what: 'zone cpu', reason: 'full', count: 4 }],
  ends: [{ what: 'cpu', reason: 'overdue', count: 1 }],
  slow: [
    {
      number: 2,
      kind: 'request',
      name: 'GET /score/:id',
      source: '',
      zone: '',
      thread: 'main',
      status: 200,
      time: '1970-01-01T00:00:00.000Z',
      ms: 1200,
      usualMs: 100,
      waits: { loopMs: 1100, gcMs: 3 },
    },
    {
      number: 1,
      kind: 'task',
      name: 'score',
      source: 'file:///app/tasks.ts:12',
      zone: 'cpu',
      thread: 'cpu/0',
      status: 0,
      time: '1970-01-01T00:00:01.000Z',
      ms: 900,
      usualMs: 200,
      waits: { queueMs: 500, hopMs: 1, cpuMs: 390 },
    },
  ],
  fleet: {
    hosts: [
      {
        id: 'a1',
        zone: 'mail',
        version: 'v1',
        machine: 'two',
        pid: 12,
        upMs: 1000,
        inFlight: 1,
        inFlightMax: 64,
        jobsRunning: 1,
        jobsMax: 4,
        isLeaving: false,
      },
    ],
    queues: [
      { kind: 'jobs', zone: 'mail', waiting: 3, taken: 1, dead: 1, waitedMs: 5000 },
      { kind: 'runs', zone: 'checkout', waiting: 2, taken: 4, dead: 0, waitedMs: 7000 },
    ],
    dead: [
      {
        zone: 'mail',
        key: 'invoice-17',
        name: 'send',
        failures: 5,
        hostsLost: 0,
        errors: ['ECONNRESET: first', 'TypeError: last'],
      },
    ],
    problems: [],
    ageMs: 10,
  },
  actions: [],
  leftOut: {},
}

/** Durable runs as a dashboard has them, with a run that is open. */
export const RUNS: NonNullable<Snapshot['runs']> = {
  names: ['checkout', 'import'],
  name: 'import',
  list: [{ key: 'night 2', status: 'running', startedMs: 500, untilMs: 1000 }],
  run: {
    key: 'night 1',
    status: 'failed',
    startedMs: 0,
    untilMs: 4000,
    resumedCount: 1,
    error: 'no bank',
    steps: [
      { key: 'parse#1', status: 'done', startedMs: 0, untilMs: 1000, failures: 0 },
      {
        key: 'save#1',
        status: 'retrying',
        startedMs: 3000,
        untilMs: 9000,
        failures: 2,
        dueMs: 9000,
        error: 'busy',
      },
    ],
  },
  stepsLeftOut: 3,
  problems: [],
}

/** A snapshot, with these fields instead. */
export function sample(own: Partial<Snapshot> = {}): Snapshot {
  return { ...SAMPLE, ...own }
}

const ATTACK =
  '<img src=x onerror="document.title=\'owned\'">\u001B[2J\u001B]0;owned\u0007\u202E\u009B31m</script>'

/** The same with each text replaced. */
export function hostile(own: Partial<Snapshot> = {}): Snapshot {
  const attacked = (value: unknown): unknown => {
    if (typeof value === 'string') return `${value}${ATTACK}`
    if (Array.isArray(value)) return value.map(attacked)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, attacked(each)]))
  }
  return { ...(attacked(sample(own)) as Snapshot), actions: ['retry', 'reload', 'drain'] }
}
