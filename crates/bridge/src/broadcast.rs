//! A broadcast: one call that every worker of a zone runs, now or when it joins.
//!
//! The zone keeps its broadcasts in order for replacements to replay. The ones who were members when it was
//! made answer, exactly once each; the last answer settles it. A member that dies leaves its answers to its
//! replacement, which replays the broadcast before it takes a task.

use std::any::Any;

use crate::{
    sync::{AtomicBool, Mutex, Ordering, lock},
    task::Status,
    task::Task,
};

/// The failure of a worker.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Failed, or why it could not run.
    pub status: Status,
    /// The error.
    pub bytes: Box<[u8]>,
}

struct Answers {
    missing: usize,
    failure: Option<Failure>,
    task: Option<&'static Task>,
}

/// A call to every worker and its answers.
pub struct Broadcast {
    pub function: u32,
    pub chain: u32,
    /// Its arguments.
    pub bytes: Box<[u8]>,
    /// What must live as long as the arguments.
    pub attachments: Option<Box<dyn Any + Send + Sync>>,
    answers: Mutex<Answers>,
    settled: AtomicBool,
}

impl Broadcast {
    pub(crate) fn new(
        function: u32,
        chain: u32,
        bytes: Box<[u8]>,
        attachments: Option<Box<dyn Any + Send + Sync>>,
        members: usize,
        task: Option<&'static Task>,
    ) -> Self {
        Self {
            function,
            chain,
            bytes,
            attachments,
            answers: Mutex::new(Answers { missing: members, failure: None, task }),
            settled: AtomicBool::new(false),
        }
    }

    /// One member's answer. The last one returns the caller's task.
    pub(crate) fn answer(&self, failure: Option<Failure>) {
        let settled = {
            let mut answers = lock(&self.answers);
            // Given up meanwhile: the zone has ended, and nobody waits for this answer any more.
            if answers.missing == 0 {
                return;
            }
            answers.missing -= 1;
            if answers.failure.is_none() {
                answers.failure = failure;
            }
            if answers.missing > 0 {
                return;
            }
            answers.task.take().map(|task| (task, answers.failure.clone()))
        };
        self.finish(settled);
    }

    /// Settle it without further answers, since none will come.
    pub(crate) fn abandon(&self, status: Status, bytes: &[u8]) {
        let settled = {
            let mut answers = lock(&self.answers);
            if answers.missing == 0 {
                return;
            }
            answers.missing = 0;
            let failure = answers.failure.take().unwrap_or_else(|| Failure { status, bytes: bytes.into() });
            answers.failure = Some(failure.clone());
            answers.task.take().map(|task| (task, Some(failure)))
        };
        self.finish(settled);
    }

    /// Settle a broadcast that nobody has to answer.
    pub(crate) fn settle_if_unanswered(&self) {
        let settled = {
            let mut answers = lock(&self.answers);
            if answers.missing > 0 {
                return;
            }
            answers.task.take().map(|task| (task, None))
        };
        self.finish(settled);
    }

    fn finish(&self, settled: Option<(&'static Task, Option<Failure>)>) {
        // Release: pairs with the Acquire in outcome.
        self.settled.store(true, Ordering::Release);
        let Some((task, failure)) = settled else { return };
        // SAFETY: the submitter handed the task to this broadcast, and it was taken out just once.
        unsafe {
            task.body(|body| {
                body.status = failure.as_ref().map_or(Status::Done, |failure| failure.status);
                body.bytes.set(failure.as_ref().map_or(&[], |failure| &failure.bytes));
            });
        }
        task.caller.deliver(task);
    }

    /// The outcome once settled: nothing, or the first failure. For callers that block.
    pub fn outcome(&self) -> Option<Option<Failure>> {
        // Acquire: pairs with the Release in finish.
        self.settled.load(Ordering::Acquire).then(|| lock(&self.answers).failure.clone())
    }
}
