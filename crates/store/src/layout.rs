//! The numbers that JavaScript and this core share for stores, locks, channels and counters.
//!
//! The one source of src/bridge/layout.ts, which crates/node/build.rs prints. Words have 32 bits, doubles 64.

corespun_layout::numbers! {
/// The handle, in every thread, on a closed store. It replaces the handle of a store that a thread finds
/// closed.
pub const CLOSED_HANDLE: u32 = 0;

/// Bits of the word of a key that are its length in bytes; above them is its number, 0 for none.
pub const KEY_LENGTH_BITS: u32 = 17;

/// Words of the out scratch that a call reads; the bytes of the value, then of the key, follow the header.
pub mod given {
    /// The thread's handle of the store, lock, channel or counter.
    pub const HANDLE: usize = 0;
    /// Length and number of the key.
    pub const KEY: usize = 1;
    /// The ticket of a lock's or channel's call.
    pub const TICKET: usize = 1;
    /// What a counter does: [`super::counting`].
    pub const COUNTING: usize = 1;
    /// Bytes of the value or message.
    pub const LENGTH: usize = 2;
    /// Permits.
    pub const AMOUNT: usize = 2;
    /// Bits of [`super::mode`].
    pub const MODE: usize = 3;
    /// Reads of a view since the last call of the core.
    pub const LOOKS: usize = 3;
    /// How a channel's call waits: [`super::wait`].
    pub const WAIT: usize = 3;
    /// The expected version, or that of a view; low word.
    pub const VERSION: usize = 4;
    /// High word.
    pub const VERSION_HIGH: usize = 5;
}

/// Doubles of the out scratch.
pub mod given_double {
    /// What a counter adds or sets.
    pub const OPERAND: usize = 2;
    /// Time to live of an entry.
    pub const TTL_MS: usize = 3;
    /// The expected value of a counter.
    pub const EXPECTED: usize = 3;
}

/// Words of the inbound scratch that a call writes; the bytes of a value or message follow the header.
pub mod found {
    /// Status: [`super::read`], [`super::written`], [`super::Acquire`] or [`super::passed`].
    pub const STATUS: usize = 0;
    /// Bytes of the value.
    pub const LENGTH: usize = 1;
    /// 1: the key was there.
    pub const REMOVED: usize = 1;
    /// Which step of a commit was refused.
    pub const STEP: usize = 1;
    /// The entry's version, low word.
    pub const VERSION: usize = 2;
    /// Its high word.
    pub const VERSION_HIGH: usize = 3;
    /// Index of the version word of the key.
    pub const INDEX: usize = 4;
    /// The version word.
    pub const WORD: usize = 5;
    /// 1 if the value refers to memory; a view writes 0 before.
    pub const REFERS: usize = 8;
}

/// Doubles of the inbound scratch.
pub mod found_double {
    /// Milliseconds until the entry expires; 0 if it does not expire.
    pub const LEFT_MS: usize = 3;
    /// The previous value of a counter.
    pub const BEFORE: usize = 3;
}

/// Bits of the mode of a write. Without one of the last two, an entry has the store's TTL.
pub mod mode {
    /// A version is expected.
    pub const EXPECTS: u32 = 1;
    /// The entry keeps its expiration time.
    pub const KEEPS_TTL: u32 = 2;
    /// The entry has a TTL of its own.
    pub const HAS_TTL: u32 = 4;
    /// A step of a commit that only compares the version.
    pub const CHECKS: u32 = 8;
    /// A step of a commit that removes the entry.
    pub const REMOVES: u32 = 16;
}

/// Status of a read.
pub mod read {
    /// The value lies in the scratch.
    pub const FOUND: u32 = 0;
    /// The key is absent.
    pub const ABSENT: u32 = 1;
    /// The store is closed.
    pub const CLOSED: u32 = 2;
    /// The value waits for `scratchLarge`.
    pub const LARGE: u32 = 3;
}

/// Status of a write; see `Refusal`.
pub mod written {
    pub const DONE: u32 = 0;
    /// Another version was there than expected.
    pub const CONFLICT: u32 = 1;
    /// The store is closed.
    pub const CLOSED: u32 = 2;
    /// The value is too large.
    pub const TOO_LARGE: u32 = 3;
    /// The store is full.
    pub const FULL: u32 = 4;
    /// Too many changes wait for the store's file.
    pub const BEHIND: u32 = 5;
}

/// The result of a request for permits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Acquire {
    /// The permits are held now.
    Granted = 0,
    /// As `Granted`; a thread that held permits has ended since the last grant.
    Abandoned = 1,
    /// Not free, and nothing was queued.
    Busy = 2,
    /// Not free; the caller receives a [`Fact`] later.
    Queued = 3,
    /// Refused: the permits are held or awaited by the calling thread itself, which is about to block.
    Own = 4,
}

/// What the file of a store is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Stage {
    /// Its entries are being loaded.
    Opening = 0,
    Open = 1,
    /// The store is closed, and the last changes are being written.
    Closing = 2,
    /// It is closed, or it could not be opened.
    Ended = 3,
}

/// The result of a request to flush.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Flush {
    /// The file lacks nothing.
    Done = 0,
    /// The caller receives [`Fact::Durable`] or [`Fact::Failed`].
    Waits = 1,
    /// The file is closed.
    Ended = 2,
}

/// How a channel's call waits.
pub mod wait {
    /// Not at all.
    pub const NOT: u32 = 0;
    /// For mail.
    pub const MAIL: u32 = 1;
    /// Blocking.
    pub const BLOCKING: u32 = 2;
}

/// Status of a channel's call.
pub mod passed {
    /// The message is in the queue, or in the scratch.
    pub const DONE: u32 = 0;
    /// The message waits for `scratchLarge`.
    pub const LARGE: u32 = 1;
    /// No capacity, or no message.
    pub const NONE: u32 = 2;
    /// The same; the caller receives a [`Fact`] later.
    pub const QUEUED: u32 = 3;
    /// The channel is closed.
    pub const CLOSED: u32 = 4;
}

/// What a counter does.
pub mod counting {
    /// Add the operand. Status 1 and no change if the sum is not a safe integer of JavaScript.
    pub const ADD: u32 = 0;
    /// Store the operand.
    pub const SET: u32 = 1;
    /// Store the operand if the value is the expected one.
    pub const SWAP: u32 = 2;
}

/// Kinds of named objects.
pub mod kind {
    /// A semaphore of one permit.
    pub const LOCK: u32 = 1;
    /// A semaphore whose writers take all permits.
    pub const RW_LOCK: u32 = 2;
    pub const SEMAPHORE: u32 = 3;
    pub const CHANNEL: u32 = 4;
    pub const COUNTER: u32 = 5;
}

/// A fact that a wait receives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Fact {
    /// The request is granted.
    Granted = 1,
    /// As `Granted`; the previous holder's thread has ended.
    Abandoned = 2,
    /// Look again.
    Look = 3,
    /// Compute the value.
    Lead = 4,
    /// Closed; no more facts follow.
    Closed = 5,
    /// The changes are in the file.
    Durable = 6,
    /// The changes are not in the file.
    Failed = 7,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Change {
    /// It was written.
    Set = 1,
    Delete = 2,
    Expire = 3,
    Evict = 4,
    /// All keys were deleted.
    Clear = 5,
}

/// Indices of a store's statistics, as doubles; see `Stats`.
pub mod counts {
    /// Entries now.
    pub const ENTRIES: usize = 0;
    /// Bytes now.
    pub const BYTES: usize = 1;
    /// Reads that found something.
    pub const HITS: usize = 2;
    /// Reads that did not.
    pub const MISSES: usize = 3;
    /// Evicted entries.
    pub const EVICTIONS: usize = 4;
    /// Expired entries.
    pub const EXPIRATIONS: usize = 5;
    /// Groups of changes that the file has received.
    pub const SYNCS: usize = 6;
    /// Number of indices.
    pub const NUMBERS: usize = 7;
}
}
