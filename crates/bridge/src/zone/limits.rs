//! What a zone accepts, how work meets its workers, and why a call is refused.
//!
//! Fixed when the zone is made.

use std::time::Duration;

use crate::mailbox::Mailbox;

/// What a zone accepts at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tasks accepted and not started.
    pub tasks_max: usize,
    /// Bytes of one task's arguments.
    pub task_bytes_max: usize,
    /// Bytes of all tasks that are accepted and not started, with the memory that moves with them; and,
    /// counted apart, of all broadcasts kept for replay.
    pub queue_bytes_max: usize,
    /// Broadcasts kept for replay.
    pub broadcasts_max: usize,
    /// Tasks that one worker has begun and not finished, but for those that may wait for calls.
    pub tasks_per_worker_max: usize,
    /// Tasks that one worker has begun beyond that because others of its tasks wait for calls.
    pub waiting_per_worker_max: usize,
    /// Greatest depth of a task: how many tasks wait for it, each for the next.
    pub call_depth_max: u32,
    /// Tasks of one tenant accepted and not started; the greatest number: they are not counted.
    pub tasks_per_tenant_max: usize,
    /// Tasks that a worker begins before another one replaces it; the greatest number: any.
    pub worker_tasks_max: usize,
    /// Longest time that a worker or a caller of this zone looks for the next arrival before it sleeps.
    pub spin: Duration,
}

/// How work meets the workers of a zone. The default is a fixed number of them and one queue.
#[derive(Clone, Copy, Default)]
pub struct Executor {
    /// Each worker has a deque for what its tasks fork, and idle ones steal from it.
    pub steals: bool,
    /// Tasks may block their threads, which then take no core from others.
    pub blocks: bool,
    /// The number of workers changes.
    pub growth: Option<Growth>,
}

/// When a zone gets more workers, and who starts them.
#[derive(Clone, Copy)]
pub struct Growth {
    /// Workers that stay, however idle.
    pub workers_min: usize,
    pub workers_max: usize,
    /// How long the oldest task waits before one more worker is worth its start.
    pub patience: Duration,
    /// Gets `mail`, once, when tasks wait and no worker is free.
    pub owner: &'static Mailbox,
    /// The kind of that mail; its subject is the zone.
    pub mail: u32,
}

/// Why a zone did not accept a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// `tasks_max` are waiting.
    Full,
    /// `queue_bytes_max` would be exceeded.
    BytesFull,
    /// The call alone has more than `task_bytes_max`.
    TooLarge,
    Closed,
    /// `broadcasts_max` are kept.
    BroadcastsFull,
    /// The call is deeper than `call_depth_max`.
    TooDeep,
    /// A broadcast of the zone waits for the call.
    Deadlock,
    /// `tasks_per_tenant_max` of its tenant are waiting.
    TenantFull,
}
