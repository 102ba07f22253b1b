//! Calls of locks, semaphores, channels and counters.
//!
//! As those of stores, they read and write the words of the scratch.

use super::{Done, GIVEN, Misuse, ThreadState, double, put_bytes, put_double};
use crate::{
    Acquire, Call, Message, Put, Take,
    layout::{found, found_double, given, given_double, passed, wait},
    named::SyncObject,
};

impl ThreadState {
    pub fn semaphore_try(&mut self) -> Done {
        let given = self.given();
        let semaphore = self.semaphore(given[given::HANDLE])?;
        let outcome = semaphore.try_acquire(self.thread, given[given::TICKET], given[given::AMOUNT]);
        self.inbound.put(found::STATUS, outcome as u32);
        Ok(())
    }

    pub fn semaphore_release(&mut self) -> Done {
        let given = self.given();
        self.semaphore(given[given::HANDLE])?.release(self.thread, given[given::TICKET]);
        Ok(())
    }

    pub fn semaphore_acquire(
        &self,
        handle: u32,
        ticket: u32,
        amount: u32,
        blocks: bool,
    ) -> Result<Acquire, Misuse> {
        Ok(self.semaphore(handle)?.acquire(self.call(ticket, blocks), amount, blocks))
    }

    /// How a channel's call waits.
    fn waiting(&self, given: &[u32; GIVEN]) -> Option<Call> {
        let how = given[given::WAIT];
        (how != wait::NOT).then(|| self.call(given[given::TICKET], how == wait::BLOCKING))
    }

    /// channelPut, with a message in the scratch or elsewhere.
    pub fn channel_put(&mut self, elsewhere: Option<&[u8]>) -> Done {
        let given = self.given();
        // SAFETY: the slice ends with this call, which runs no JavaScript and does not write there.
        let inside = unsafe { self.out.data(given[given::LENGTH] as usize) };
        let bytes = elsewhere.or(inside).ok_or(Misuse("length beyond the scratch"))?;
        let message = Message { bytes: bytes.into(), keeps: self.attachments.take() };
        let outcome = self.channel(given[given::HANDLE])?.put(message, self.waiting(&given));
        let status = match outcome {
            Put::Done => passed::DONE,
            Put::Full => passed::NONE,
            Put::Queued => passed::QUEUED,
            Put::Closed => passed::CLOSED,
        };
        self.inbound.put(found::STATUS, status);
        Ok(())
    }

    pub fn channel_take(&mut self) -> Done {
        let given = self.given();
        let taken = self.channel(given[given::HANDLE])?.take(self.waiting(&given));
        self.receive(taken);
        Ok(())
    }

    pub fn channel_fetch(&mut self) -> Done {
        let given = self.given();
        let message = self.channel(given[given::HANDLE])?.fetch(self.thread, given[given::TICKET]);
        self.receive(message.map_or(Take::Empty, Take::Message));
        Ok(())
    }

    fn receive(&mut self, taken: Take) {
        self.read_soon = None;
        let status = match taken {
            Take::Message(message) => {
                self.read_soon = message.keeps;
                if put_bytes(&self.inbound, &message.bytes) {
                    passed::DONE
                } else {
                    self.large = Some(message.bytes.into());
                    passed::LARGE
                }
            }
            Take::Empty => passed::NONE,
            Take::Queued => passed::QUEUED,
            Take::Closed => passed::CLOSED,
        };
        self.inbound.put(found::STATUS, status);
    }

    /// counterDo.
    pub fn count(&mut self) -> Done {
        let given = self.given();
        let SyncObject::Counter(counter) = self.object(given[given::HANDLE])? else {
            return Err(Misuse("not a counter"));
        };
        let operand = double(&given, given_double::OPERAND) as i64;
        let expected = double(&given, given_double::EXPECTED) as i64;
        let outcome = counter.count(given[given::COUNTING], operand, expected);
        let (Ok(before) | Err(before)) = outcome;
        self.inbound.put(found::STATUS, u32::from(outcome.is_err()));
        put_double(&self.inbound, found_double::BEFORE, before as f64);
        Ok(())
    }
}
