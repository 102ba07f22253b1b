//! The calls for every task: submit, step, complete, help, drain.
//!
//! They have neither parameters nor results: small integers lie in the first words of the scratch buffers, in
//! the layout of [`crate::layout`]. JavaScript of the thread does not run during a call. The hot ones are
//! `#[inline]`: each is compiled where its one caller is, with what it calls inlined. Over 400 lines: they
//! share the words of the scratch and what ends or begins a task.

use super::Bridge;
use crate::{
    Broadcast, Failure, Help, Mail, Misuse, Next, Refusal, Status, Submission, Task, Worker, chains,
    layout::{
        FOUND, HEADER_BYTES, NO_TOKEN, OUTCOME, RECORD_BYTES, Step, UNKNOWN_FUNCTION, WAITED_TICKS, ended,
        flag, given, helped, refused, work,
    },
    registry, slow,
};

type Done = Result<(), Misuse>;

/// Words of the out scratch buffer that each call reads, in the order of the calls' patterns and of the words
/// that `put_work` writes.
const GIVEN: usize = 4;
const _: () = {
    assert!(matches!([given::ZONE, given::FN, given::LENGTH, given::CALL], [0, 1, 2, 3]));
    assert!(matches!([ended::TOKEN, ended::STATUS, ended::LENGTH], [0, 1, 2]));
    assert!(matches!([helped::CALL, helped::STEALS], [0, 1]));
    assert!(matches!([work::FN, work::LENGTH, work::TOKEN, work::SERIAL, work::LARGE], [0, 1, 2, 3, 4]));
    assert!(work::DEPTH == work::JOINED + 1 && work::WAITED == work::DEPTH + 1);
};

/// Longest sleep of one `help`: a thread can end only after the call.
const HELP_SLEEP: std::time::Duration = std::time::Duration::from_millis(5);
/// Longest poll for work before that sleep.
const HELP_SPIN: std::time::Duration = std::time::Duration::from_micros(50);

/// Functions from this number on are never marked as ready.
const READY_MAX: usize = 1 << 20;

impl Refusal {
    /// Its number in `layout::refused`.
    pub const fn number(self) -> i32 {
        match self {
            Self::Full => refused::FULL,
            Self::BytesFull => refused::BYTES_FULL,
            Self::TooLarge => refused::TOO_LARGE,
            Self::Closed => refused::CLOSED,
            Self::BroadcastsFull => refused::BROADCASTS_FULL,
            Self::TooDeep => refused::TOO_DEEP,
            Self::Deadlock => refused::DEADLOCK,
            Self::TenantFull => refused::TENANT_FULL,
        }
    }
}

impl Status {
    /// The status with that number; `Orphaned` for an unknown one.
    pub fn of_number(number: u32) -> Self {
        [Self::Done, Self::Failed, Self::Died, Self::Closed]
            .into_iter()
            .find(|status| *status as u32 == number)
            .unwrap_or(Self::Orphaned)
    }
}

#[inline]
fn put_words<const COUNT: usize>(memory: &mut [u8], words: [u32; COUNT]) {
    for (slot, word) in memory[..COUNT * 4].chunks_exact_mut(4).zip(words) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
}

impl Bridge {
    /// Given zone, function, length, call: send `length` bytes of the out scratch buffer as call number
    /// `call`. The outcome word becomes 0, or a refusal below 0.
    #[inline]
    pub fn submit(&mut self) -> Done {
        let [zone, function, length, call] = self.out.words();
        self.submit_given::<false>(zone, function, length, call)
    }

    /// As `submit`, for a function whose number the caller has looked up by its call site. Without one the
    /// outcome is `UNKNOWN_FUNCTION`.
    pub fn submit_known(&mut self, function: Option<u32>) -> Done {
        let [zone, _, length, call] = self.out.words();
        match function.filter(|&number| number > 0) {
            Some(function) => self.submit_given::<false>(zone, function, length, call),
            None => {
                self.out.put(OUTCOME, UNKNOWN_FUNCTION);
                Ok(())
            }
        }
    }

    #[inline]
    pub(super) fn submit_given<const ORDERED: bool>(
        &mut self,
        zone: u32,
        function: u32,
        length: u32,
        call: u32,
    ) -> Done {
        let bytes = self.given_bytes(length)?;
        let outcome = self.send::<ORDERED>(zone, function, call, bytes)?;
        self.out.put(OUTCOME, outcome as u32);
        Ok(())
    }

    #[inline]
    pub(super) fn given_bytes<'a>(&self, length: u32) -> Result<&'a [u8], Misuse> {
        // SAFETY: JavaScript waits for this call, with which the bytes end.
        unsafe { self.out.data(length as usize) }.ok_or(Misuse("length beyond the scratch"))
    }

    /// Send `bytes` as a call of `function`, in the order that the out scratch describes if it is `ORDERED`.
    /// Returns 0, or the number of a refusal.
    #[inline]
    pub(super) fn send<const ORDERED: bool>(
        &mut self,
        zone: u32,
        function: u32,
        call: u32,
        bytes: &[u8],
    ) -> Result<i32, Misuse> {
        // A thread marked as asleep stays marked: when another copy's prepare step or a callback of I/O calls
        // this, the thread's own prepare step may be over for this turn of the loop, and only sleeping
        // threads are woken.
        let attachments = self.attachments.take();
        let moved = attachments.as_ref().map_or(0, |attachments| attachments.moved);
        let task = self.task(call)?;
        let zone = &*self.zones.get(zone).ok_or(Misuse("no such zone"))?.zone;
        let (chain, depth) = chains::split(self.out.word(given::DEPTH));
        let depth = depth.unwrap_or_else(|| self.depth_of_stray().min(zone.limits().call_depth_max));
        if chain != chains::NONE
            && let Err(why) = Self::begin_wait(&mut self.waits, chain, zone, task)
        {
            zone.count_refusal(why);
            return Ok(why.number());
        }
        // SAFETY: JavaScript passes free call numbers only, so its owner, this thread, holds the idle task.
        unsafe {
            task.body(|body| {
                body.function = function;
                (body.depth, body.chain) = (depth, chain);
                body.attachments = attachments.map(|attachments| attachments.kept as _);
                body.bytes.set(bytes);
            });
        }
        let spin = zone.limits().spin;
        let order = ORDERED.then(|| self.order());
        let submission = Submission { task, bytes: bytes.len(), moved, order };
        let outcome = match &mut self.worker {
            Some(worker) => worker.submit(zone, submission),
            None => self
                .elsewhere(|worker| worker.submit(zone, submission))
                .unwrap_or_else(|| zone.submit(submission)),
        };
        match outcome {
            Ok(()) => {
                self.spin.set_limit(spin);
                self.sent();
                Ok(0)
            }
            Err(why) => {
                zone.count_refusal(why);
                // SAFETY: refused, so this thread still holds it.
                unsafe { task.body(|body| (body.attachments, _) = (None, body.bytes.shrink(0))) };
                self.end_wait(call);
                Ok(why.number())
            }
        }
    }

    /// Given token, status, length: end the running task `token` (unless it is `NO_TOKEN`) with `length`
    /// bytes of the out scratch buffer, then take the next step: the found word becomes its kind.
    #[inline]
    pub fn step(&mut self) -> Done {
        let [token, status, length, _]: [u32; GIVEN] = self.out.words();
        let had_turn = self.steps.add();
        if token != NO_TOKEN {
            let searches = !had_turn && self.looks();
            self.end(token, status, length, searches)?;
        }
        let kind = self.next(had_turn)?;
        self.inbound.put(FOUND, kind as u32);
        Ok(())
    }

    /// Given token, status, length: end a running task without taking another.
    #[inline]
    pub fn complete(&mut self) -> Done {
        let [token, status, length, _]: [u32; GIVEN] = self.out.words();
        self.end(token, status, length, false)
    }

    /// `searches`: the worker takes a task next, see `Worker::complete_and_search`.
    #[inline]
    fn end(&mut self, token: u32, status: u32, length: u32, searches: bool) -> Done {
        let bytes = self.given_bytes(length)?;
        self.finish(token, status, bytes, searches)
    }

    /// As `complete`, with the bytes from elsewhere.
    pub fn complete_with(&mut self, token: u32, status: u32, bytes: &[u8]) -> Done {
        self.finish(token, status, bytes, false)
    }

    #[inline]
    fn worker_mut(&mut self) -> Result<&mut Worker, Misuse> {
        self.worker.as_mut().ok_or(Misuse("not a worker"))
    }

    #[inline]
    fn finish(&mut self, token: u32, status: u32, bytes: &[u8], searches: bool) -> Done {
        let attachments = self.attachments.take();
        let worker = self.worker.as_mut().ok_or(Misuse("not a worker"))?;
        let fill = |body: &mut crate::Body| {
            body.status = Status::of_number(status);
            body.attachments = attachments.map(|attachments| attachments.kept as _);
            body.bytes.set(bytes);
        };
        if searches {
            worker.complete_and_search(token, fill)
        } else {
            worker.complete(token, fill)
        };
        Ok(())
    }

    #[inline]
    fn next(&mut self, had_turn: bool) -> Result<Step, Misuse> {
        self.wake_up();
        self.receiver.set_blocked(false);
        let worker = self.worker.as_mut().ok_or(Misuse("not a worker"))?;
        if had_turn && worker.has_work() {
            return Ok(Step::HadTurn);
        }
        let mut taken = worker.take();
        // Nothing else to do: poll for some microseconds before going back through the loop.
        if matches!(taken, Next::Nothing)
            && !had_turn
            && self.receiver.in_flight() == 0
            && self.is_free()
            && self.look()
        {
            taken = self.worker.as_mut().ok_or(Misuse("not a worker"))?.take();
        }
        if let Some(worker) = &self.worker {
            worker.found();
        }
        // SAFETY: JavaScript waits for this call and keeps no view that it reads across one.
        let memory = unsafe { self.inbound.write() };
        Ok(match taken {
            Next::Nothing => Step::Nothing,
            Next::Leave => {
                self.retire();
                Step::Leave
            }
            Next::Task { task, token, serial } => {
                self.active = true;
                if self.may_block() {
                    self.receiver.set_blocked(true);
                }
                put_task(memory, task, token, serial);
                Step::Task
            }
            Next::Broadcast(broadcast) => {
                self.active = true;
                put_work(memory, broadcast.function, &broadcast.bytes, NO_TOKEN, 0);
                put_words(&mut memory[work::DEPTH * 4..], [chains::broadcast_word(broadcast.chain)]);
                self.current = Some(broadcast);
                Step::Broadcast
            }
        })
    }

    /// As `submit`, on a worker of that zone, which waits for the call with `help`.
    pub fn join_fork(&mut self) -> Done {
        let [zone, function, length, call] = self.out.words();
        let bytes = self.given_bytes(length)?;
        let task = self.task(call)?;
        self.receiver.join(task);
        let outcome = self.send::<false>(zone, function, call, bytes);
        if outcome != Ok(0) {
            self.receiver.unjoin(task);
        }
        self.out.put(OUTCOME, outcome? as u32);
        Ok(())
    }

    /// Given call, steals: find work until that joined call returns. The found word becomes `MINE`, `JOINED`,
    /// `TASK` (run it, then complete it) or `NOTHING` (call again).
    pub fn help(&mut self) -> Done {
        let [call, steals, ..]: [u32; GIVEN] = self.out.words();
        let kind = self.help_with(call, steals != 0)?;
        self.inbound.put(FOUND, kind as u32);
        Ok(())
    }

    fn help_with(&mut self, call: u32, steals: bool) -> Result<Step, Misuse> {
        // After an `await` of I/O the thread is marked as asleep: it would go to sleep twice and wake up
        // once.
        self.wake_up();
        let task = self.task(call)?;
        let mut help = self.ask(task, steals)?;
        if matches!(help, Help::Nothing) {
            let begun = std::time::Instant::now();
            let may_spin = registry::machine().may_spin();
            while may_spin && matches!(help, Help::Nothing) && begun.elapsed() < HELP_SPIN {
                (0..64).for_each(|_| std::hint::spin_loop());
                help = self.ask(task, steals)?;
            }
        }
        if matches!(help, Help::Nothing) {
            let Self { worker, receiver, .. } = self;
            let worker = worker.as_mut().ok_or(Misuse("not a worker"))?;
            if worker.try_sleep_until(receiver, task) {
                // A wake-up of the mailbox unparks this thread; see uv::Waker.
                std::thread::park_timeout(HELP_SLEEP);
                worker.wake_up();
                receiver.wake_up();
            }
            help = self.ask(task, steals)?;
        }
        // SAFETY: JavaScript waits for this call and keeps no view that it reads across one.
        let memory = unsafe { self.inbound.write() };
        Ok(match help {
            Help::Nothing => Step::Nothing,
            Help::Mine => {
                self.put_away(task);
                Step::Mine
            }
            Help::Done => {
                // SAFETY: the task has returned to its owner, this self.
                let (status, bytes) = unsafe { task.body(|body| (body.status as u32, body.bytes.take())) };
                put_work(memory, status, &bytes, 0, 0);
                if memory[work::LARGE * 4] != 0 {
                    self.large.push((call, bytes));
                }
                self.keep_and_put_away(task);
                Step::Joined
            }
            Help::Task { task, token, serial } => {
                put_task(memory, task, token, serial);
                Step::Task
            }
        })
    }

    fn ask(&mut self, task: &'static Task, steals: bool) -> Result<Help, Misuse> {
        let Self { worker, ready, .. } = self;
        let worker = worker.as_mut().ok_or(Misuse("not a worker"))?;
        Ok(worker.help(task, steals, |function| ready.get(function as usize).copied().unwrap_or(false)))
    }

    /// Mark a function as loaded: this thread can call it without its event loop.
    pub fn function_ready(&mut self, number: u32) {
        let number = number as usize;
        if number < READY_MAX {
            if self.ready.len() <= number {
                self.ready.resize(number + 1, false);
            }
            self.ready[number] = true;
        }
    }

    /// A copy of the arguments of a running task, or of the broadcast (`NO_TOKEN`).
    pub fn task_bytes(&self, token: u32) -> Result<Vec<u8>, Misuse> {
        if token == NO_TOKEN {
            return Ok(self
                .current
                .as_ref()
                .map_or_else(Vec::new, |broadcast: &std::sync::Arc<Broadcast>| broadcast.bytes.to_vec()));
        }
        let running = self.worker.as_ref().and_then(|worker| worker.running(token));
        let task = running.ok_or(Misuse("no such task"))?;
        // SAFETY: this worker holds the task while it runs.
        Ok(unsafe { task.body(|body| body.bytes.as_slice().to_vec()) })
    }

    /// Send the caller of a running task, which goes on, mail of `kind` about its call. Returns false when
    /// that thread has ended. The mail arrives before the task does.
    pub fn notify_caller(&self, token: u32, kind: u32, facts: [u32; 2]) -> Result<bool, Misuse> {
        let running = self.worker.as_ref().and_then(|worker| worker.running(token));
        let task = running.ok_or(Misuse("no such task"))?;
        Ok(task.caller.send(Mail { kind, subject: task.call(), facts }))
    }

    /// End the broadcast that `step` returned.
    pub fn broadcast_done(&mut self, status: u32, bytes: &[u8]) -> Done {
        if let Some(broadcast) = self.current.take() {
            // It does not wait for what its function called and did not await.
            self.waits.retain(|(_, wait)| wait.chain != broadcast.chain);
        }
        let failure =
            (status != 0).then(|| Failure { status: Status::of_number(status), bytes: bytes.into() });
        self.worker_mut()?.broadcast_done(failure);
        Ok(())
    }

    /// Write as many results as fit into the inbound scratch buffer, flags into its first word, and the
    /// number of results into the found word.
    #[inline]
    pub fn drain(&mut self) -> Done {
        let count = self.drain_into();
        self.inbound.put(FOUND, count);
        Ok(())
    }

    /// As `drain`, after a brief poll for results that arrive at once.
    #[inline]
    pub fn linger(&mut self) -> Done {
        if self.poll_briefly() {
            return self.drain();
        }
        self.inbound.put(0, 0);
        self.inbound.put(FOUND, 0);
        Ok(())
    }

    #[inline]
    fn drain_into(&mut self) -> u32 {
        // SAFETY: as in next.
        let memory = unsafe { self.inbound.write() };
        let (mut count, mut at) = (0, HEADER_BYTES);
        while at + RECORD_BYTES <= memory.len() {
            let Some(task) = self.receiver.next_arrival() else { break };
            // SAFETY: the task has returned to its owner, this self.
            let (number, bytes) =
                unsafe { task.body(|body| (body.status as u32, body.bytes.as_slice().len())) };
            let fits = bytes <= memory.len() - HEADER_BYTES - RECORD_BYTES;
            if fits && at + RECORD_BYTES + bytes > memory.len() {
                self.receiver.put_back(task);
                break;
            }
            // SAFETY: as above.
            let slow = unsafe { task.body(|body| body.slow) };
            if slow != 0 {
                slow::returned(slow);
            }
            put_words(&mut memory[at..], [task.call(), number, bytes as u32, u32::from(!fits)]);
            at += RECORD_BYTES;
            if fits {
                // SAFETY: as above.
                unsafe { task.body(|body| memory[at..at + bytes].copy_from_slice(body.bytes.as_slice())) };
                at += bytes.next_multiple_of(8);
            } else {
                // SAFETY: as above.
                let large = unsafe { task.body(|body| body.bytes.take()) };
                self.large.push((task.call(), large));
            }
            self.keep_and_put_away(task);
            count += 1;
        }
        let mail = if self.receiver.mailbox().has_mail() { flag::MAIL } else { 0 };
        let attachments = if self.read_soon.is_empty() { 0 } else { flag::ATTACHMENTS };
        put_words(memory, [mail | attachments]);
        count
    }

    /// Free the task of a result that has been copied out. JavaScript reads the result next, so its
    /// attachments are kept until `drained`.
    #[inline]
    fn keep_and_put_away(&mut self, task: &'static Task) {
        // SAFETY: its owner, this thread, holds the task.
        if let Some(attachments) = unsafe { task.body(|body| body.attachments.take()) } {
            self.read_soon.push(attachments);
        }
        self.put_away(task);
    }

    /// Drop the attachments of the last drain's results, which have been read.
    pub fn drained(&mut self) {
        self.read_soon.clear();
    }

    /// The bytes of a drained result that did not fit.
    pub fn large_result(&mut self, call: u32) -> Result<Vec<u8>, Misuse> {
        let index = self.large.iter().position(|(other, _)| *other == call);
        Ok(self.large.swap_remove(index.ok_or(Misuse("no such result"))?).1)
    }

    /// Write the oldest piece of mail into the inbound scratch buffer; false without mail.
    pub fn mail(&mut self) -> bool {
        let mail = self.receiver.next_mail();
        if let Some(Mail { kind, subject, facts: [first, second] }) = mail {
            // SAFETY: JavaScript waits for this call and keeps no view that it reads across one.
            put_words(unsafe { self.inbound.write() }, [kind, subject, first, second]);
        }
        mail.is_some()
    }
}

#[inline(always)]
fn put_task(memory: &mut [u8], task: &'static Task, token: u32, serial: u32) {
    // SAFETY: this worker holds the task.
    let (word, waited) = unsafe {
        task.body(|body| {
            put_work(memory, body.function, body.bytes.as_slice(), token, serial);
            (chains::word(body.chain, body.depth), body.waited)
        })
    };
    let waited = (waited / u64::from(WAITED_TICKS)).min(u64::from(u32::MAX)) as u32;
    put_words(&mut memory[work::JOINED * 4..], [u32::from(task.is_joined()), word, waited]);
}

#[inline]
fn put_work(memory: &mut [u8], function: u32, bytes: &[u8], token: u32, serial: u32) {
    let fits = bytes.len() <= memory.len() - HEADER_BYTES;
    put_words(memory, [function, bytes.len() as u32, token, serial, u32::from(!fits)]);
    if fits {
        memory[HEADER_BYTES..HEADER_BYTES + bytes.len()].copy_from_slice(bytes);
    }
}
