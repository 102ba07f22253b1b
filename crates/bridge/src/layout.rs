//! The numbers that JavaScript and this core share for calls to zones: words of the scratch memory, kinds,
//! statuses.
//!
//! The one source of src/native/layout.ts, which crates/node/build.rs prints. A word is an index of 32 bits.

corespun_layout::numbers! {
/// Bytes of either scratch before its data: of a step, a result, a call's arguments, the records of a drain.
pub const HEADER_BYTES: usize = 64;
/// Bytes before the data of a drained record: call, status, length, large.
pub const RECORD_BYTES: usize = 16;

/// Words of the out scratch that a call reads.
pub mod given {
    /// The thread's handle of the zone.
    pub const ZONE: usize = 0;
    /// The function's number.
    pub const FN: usize = 1;
    /// Bytes of the arguments.
    pub const LENGTH: usize = 2;
    /// The call's number.
    pub const CALL: usize = 3;
    /// The call's depth and chain (chains.rs): one more than the calling task's word. Threads that are not
    /// workers never write it.
    pub const DEPTH: usize = 5;
    /// The order of a call that has one, else 0 (bits of [`super::order`]). `submitOrdered` and `submitLarge`
    /// read it, and with it the three words behind it.
    pub const ORDER: usize = 12;
    /// The slot of the worker that is to run the call, and one more; 0: any.
    pub const WORKER: usize = 13;
    /// The hash of the tenant's key, in two words; 0: none.
    pub const TENANT: usize = 14;
    /// Its upper half.
    pub const TENANT_HIGH: usize = 15;
}

/// The word of a call's order: its priority, two flags, and the tasks that are a turn of its tenant, 1 or
/// more.
pub mod order {
    /// Before all others.
    pub const HIGH: u32 = 0;
    /// As calls without an order.
    pub const NORMAL: u32 = 1;
    /// Behind all others.
    pub const LOW: u32 = 2;
    /// Another worker may run it if its own has left a closing zone.
    pub const MOVES: u32 = 4;
    /// Its worker runs nothing else meanwhile.
    pub const EXCLUSIVE: u32 = 8;
    /// From this bit on: the weight.
    pub const WEIGHT_SHIFT: u32 = 16;
}

/// The depth of a call from code that belongs to no task: the core takes one that is deep enough.
pub const DEPTH_UNKNOWN: u32 = 0xffff_ffff;
/// The bits of a depth in the word that it shares with a chain.
pub const DEPTH_MASK: u32 = 0xf_ffff;

/// The same words where a task ends.
pub mod ended {
    /// The task's token.
    pub const TOKEN: usize = 0;
    pub const STATUS: usize = 1;
    /// Bytes of its result.
    pub const LENGTH: usize = 2;
}

/// The same words for `help`.
pub mod helped {
    /// The joined call.
    pub const CALL: usize = 0;
    /// Whether other tasks may run meanwhile.
    pub const STEALS: usize = 1;
}

/// Word of the out scratch for the outcome of `submit`, signed: 0 or a number of [`refused`].
pub const OUTCOME: usize = 4;
/// Outcome of `submitFunction` when the function has no number yet; nothing was sent.
pub const UNKNOWN_FUNCTION: u32 = 1;
/// Word of the inbound scratch for the kind that `step` found and the count of `drain`.
pub const FOUND: usize = 5;

/// "No task" as a token, and the token of a broadcast.
pub const NO_TOKEN: u32 = 0xffff_ffff;

/// Words of the inbound scratch that describe a task to run.
pub mod work {
    /// The function's number; of a joined call that has ended, its status.
    pub const FN: usize = 0;
    /// Bytes of the arguments, or the result.
    pub const LENGTH: usize = 1;
    /// The task's token.
    pub const TOKEN: usize = 2;
    /// Its serial number.
    pub const SERIAL: usize = 3;
    /// 1: the bytes did not fit the scratch.
    pub const LARGE: usize = 4;
    /// 1: its caller waits for it, blocking.
    pub const JOINED: usize = 6;
    /// Its depth and chain.
    pub const DEPTH: usize = 7;
    /// How long it has waited for a worker, in units of [`super::WAITED_TICKS`].
    pub const WAITED: usize = 8;
}

/// Ticks of the clock that are one unit of [`work::WAITED`]: some 0.3 µs.
pub const WAITED_TICKS: u32 = 1024;

/// What `step` and `help` found.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Step {
    Nothing = 0,
    Task = 1,
    Broadcast = 2,
    /// The zone lets the worker go.
    Leave = 3,
    /// `help`: nobody has started the joined call, which is over for the core: run it here.
    Mine = 4,
    /// `help`: the joined call has ended, its result lies in the inbound scratch.
    Joined = 5,
    /// `step` would find something: the loop's turn comes first.
    HadTurn = 6,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Status {
    /// The bytes are the value.
    Done = 0,
    /// The bytes are the error that the function threw.
    Failed = 1,
    /// The worker that ran it died; the bytes are the reason.
    Died = 2,
    /// The zone closed before it ran.
    Closed = 3,
    /// The thread that owned the zone's workers ended.
    Orphaned = 4,
}

/// Why a call was refused.
pub mod refused {
    /// The zone's queue is full.
    pub const FULL: i32 = -1;
    /// It has too many bytes.
    pub const BYTES_FULL: i32 = -2;
    /// The arguments are larger than any queue.
    pub const TOO_LARGE: i32 = -3;
    /// The zone is closed.
    pub const CLOSED: i32 = -4;
    /// Too many broadcasts.
    pub const BROADCASTS_FULL: i32 = -5;
    /// The call is too deep.
    pub const TOO_DEEP: i32 = -6;
    /// A broadcast of the zone waits for the call.
    pub const DEADLOCK: i32 = -7;
    /// Too many tasks of the tenant.
    pub const TENANT_FULL: i32 = -8;
}

/// What became of a call that was cancelled.
pub mod cancelled {
    /// It is over: its number is free.
    pub const OVER: i32 = 0;
    /// It runs, and its worker was asked to end it.
    pub const RUNNING: i32 = 1;
    /// It has ended, and its result is on the way.
    pub const ENDED: i32 = 2;
    /// Its caller receives it back; it has not run.
    pub const SKIPPED: i32 = 3;
}

/// Numbers of a zone's counts, in order; the times are in ns, of waiting and then of running.
pub const COUNTS: usize = 25;

/// Kinds of mail; a piece of mail has a kind, a subject and two facts.
pub mod mail {
    /// Start the worker of zone `subject` in slot `facts[0]`.
    pub const SPAWN: u32 = 1;
    /// The caller of the task with token `subject` and serial `facts[0]` has cancelled it.
    pub const ABORT: u32 = 2;
    /// A caller of zone `subject` has cancelled a task that runs; look at once when `facts[0]` is 1. See
    /// `Zone::overdue`.
    pub const CANCELLED: u32 = 3;
    /// The signal with number `subject` was aborted, or has ended without: then it has no reason.
    pub const SIGNAL: u32 = 4;
    /// The workers of zone `subject` end now; from one thread to the owner's.
    pub const CLOSE_NOW: u32 = 5;
    /// The wait with ticket `subject` receives fact `facts[0]`.
    pub const SHARED: u32 = 6;
    /// Tasks of zone `subject` wait and none of its workers is free; see `Zone::grow`.
    pub const GROW: u32 = 7;
    /// The workers of zone `subject` are to be replaced; from one thread to the owner's.
    pub const RELOAD: u32 = 8;
    /// This worker of zone `subject` is to leave; see `Zone::retire`.
    pub const RETIRE: u32 = 9;
    /// The result of call `subject` contains streams, and its task goes on: `facts` are the numbers of the
    /// channels to and from it.
    pub const STREAMED: u32 = 10;
    /// The sockets of process `subject` are closed, and its tasks with no worker; to its owner.
    pub const LINK_ENDED: u32 = 11;
    /// Threads count from now on; see `sheets`.
    pub const COUNT: u32 = 12;
    /// The worker in slot `facts[0]` of zone `subject` is about to begin the last of its tasks; to its owner.
    pub const SPENT: u32 = 13;
    /// No thread has a handle on zone `subject` any more, which then closes; to its owner.
    pub const UNUSED: u32 = 14;
}

/// Numbers of a slow task or request, as doubles. Times are in ms, below 0 where they are not known.
pub mod slow {
    /// Its own, from 1.
    pub const NUMBER: usize = 0;
    /// 0: a task; 1: a request.
    pub const KIND: usize = 1;
    /// The mailbox of the thread that ran it.
    pub const THREAD: usize = 2;
    /// When it ended, since 1970.
    pub const ENDED: usize = 3;
    /// What it took.
    pub const TOTAL: usize = 4;
    /// What 99 of 100 like it take at most.
    pub const USUAL: usize = 5;
    /// It waited for a worker; a request: its tasks.
    pub const QUEUE: usize = 6;
    /// Results were on their way.
    pub const HOP: usize = 7;
    /// CPU time.
    pub const CPU: usize = 8;
    /// The event loop of its thread was busy meanwhile.
    pub const LOOP: usize = 9;
    /// Its thread collected garbage meanwhile.
    pub const GC: usize = 10;
    /// The number of its function; a request: the status of its response.
    pub const WHAT: usize = 11;
    /// The slot of the worker.
    pub const SLOT: usize = 12;
    pub const NUMBERS: usize = 13;
}

/// Flags of a drain, in the inbound scratch's first word.
pub mod flag {
    /// There is mail.
    pub const MAIL: u32 = 1;
    /// The results refer to memory: `drained` follows when they have been read.
    pub const ATTACHMENTS: u32 = 2;
}

/// Tables of interned texts.
pub mod table {
    /// Keys of functions.
    pub const FUNCTIONS: usize = 1;
}

/// Numbers of the plan of a zone that is made, as doubles.
pub mod plan {
    /// 1: idle workers take forked tasks from others.
    pub const STEALS: usize = 0;
    /// 1: its tasks may block their threads.
    pub const BLOCKS: usize = 1;
    /// Workers at its start, and the fewest later.
    pub const WORKERS: usize = 2;
    /// The most, where that is more.
    pub const WORKERS_MAX: usize = 3;
    /// How long the oldest task waits before another worker is started.
    pub const PATIENCE_US: usize = 4;
    pub const TASKS_MAX: usize = 5;
    pub const TASK_BYTES_MAX: usize = 6;
    pub const QUEUE_BYTES_MAX: usize = 7;
    pub const BROADCASTS_MAX: usize = 8;
    pub const TASKS_PER_WORKER_MAX: usize = 9;
    pub const SPIN_US: usize = 10;
    pub const WAITING_PER_WORKER_MAX: usize = 11;
    pub const CALL_DEPTH_MAX: usize = 12;
    pub const TASKS_PER_TENANT_MAX: usize = 13;
    pub const WORKER_TASKS_MAX: usize = 14;
    pub const NUMBERS: usize = 15;
}
}
