/**
 * The numbers that both sides of the border have, printed from crates/bridge/src/layout.rs when the core
 * is compiled: change that file. It explains each of them.
 */

/**
 * Bytes of either scratch before its data: of a step, a result, a call's arguments, the records of a drain.
 */
export const HEADER_BYTES = 64

/** Bytes before the data of a drained record: call, status, length, large. */
export const RECORD_BYTES = 16

/** Words of the out scratch that a call reads. */
export const Given = {
  zone: 0,
  fn: 1,
  length: 2,
  call: 3,
  depth: 5,
  order: 12,
  worker: 13,
  tenant: 14,
  tenantHigh: 15,
} as const

/**
 * The word of a call's order: its priority, two flags, and the tasks that are a turn of its tenant, 1 or
 * more.
 */
export const Order = { high: 0, normal: 1, low: 2, moves: 4, exclusive: 8, weightShift: 16 } as const

/** The depth of a call from code that belongs to no task: the core takes one that is deep enough. */
export const DEPTH_UNKNOWN = 0xffff_ffff

/** The bits of a depth in the word that it shares with a chain. */
export const DEPTH_MASK = 0xf_ffff

/** The same words where a task ends. */
export const Ended = { token: 0, status: 1, length: 2 } as const

/** The same words for `help`. */
export const Helped = { call: 0, steals: 1 } as const

/** Word of the out scratch for the outcome of `submit`, signed: 0 or a number of `refused`. */
export const OUTCOME = 4

/** Outcome of `submitFunction` when the function has no number yet; nothing was sent. */
export const UNKNOWN_FUNCTION = 1

/** Word of the inbound scratch for the kind that `step` found and the count of `drain`. */
export const FOUND = 5

/** "No task" as a token, and the token of a broadcast. */
export const NO_TOKEN = 0xffff_ffff

/** Words of the inbound scratch that describe a task to run. */
export const Work = {
  fn: 0,
  length: 1,
  token: 2,
  serial: 3,
  large: 4,
  joined: 6,
  depth: 7,
  waited: 8,
} as const

/** Ticks of the clock that are one unit of `work::WAITED`: some 0.3 µs. */
export const WAITED_TICKS = 1024

/** What `step` and `help` found. */
export const Step = { nothing: 0, task: 1, broadcast: 2, leave: 3, mine: 4, joined: 5, hadTurn: 6 } as const

/** How a call ended. */
export const Status = { done: 0, failed: 1, died: 2, closed: 3, orphaned: 4 } as const

/** Why a call was refused. */
export const Refused = {
  full: -1,
  bytesFull: -2,
  tooLarge: -3,
  closed: -4,
  broadcastsFull: -5,
  tooDeep: -6,
  deadlock: -7,
  tenantFull: -8,
} as const

/** What became of a call that was cancelled. */
export const Cancelled = { over: 0, running: 1, ended: 2, skipped: 3 } as const

/** Numbers of a zone's counts, in order; the times are in ns, of waiting and then of running. */
export const COUNTS = 25

/** Kinds of mail; a piece of mail has a kind, a subject and two facts. */
export const Mail = {
  spawn: 1,
  abort: 2,
  cancelled: 3,
  signal: 4,
  closeNow: 5,
  shared: 6,
  grow: 7,
  reload: 8,
  retire: 9,
  streamed: 10,
  linkEnded: 11,
  count: 12,
  spent: 13,
  unused: 14,
} as const

/** Numbers of a slow task or request, as doubles. Times are in ms, below 0 where they are not known. */
export const Slow = {
  number: 0,
  kind: 1,
  thread: 2,
  ended: 3,
  total: 4,
  usual: 5,
  queue: 6,
  hop: 7,
  cpu: 8,
  loop: 9,
  gc: 10,
  what: 11,
  slot: 12,
  numbers: 13,
} as const

/** Flags of a drain, in the inbound scratch's first word. */
export const Flag = { mail: 1, attachments: 2 } as const

/** Tables of interned texts. */
export const Table = { functions: 1 } as const

/** Numbers of the plan of a zone that is made, as doubles. */
export const Plan = {
  steals: 0,
  blocks: 1,
  workers: 2,
  workersMax: 3,
  patienceUs: 4,
  tasksMax: 5,
  taskBytesMax: 6,
  queueBytesMax: 7,
  broadcastsMax: 8,
  tasksPerWorkerMax: 9,
  spinUs: 10,
  waitingPerWorkerMax: 11,
  callDepthMax: 12,
  tasksPerTenantMax: 13,
  workerTasksMax: 14,
  numbers: 15,
} as const
