//! A channel whose taker is a link: mail for each message that it waits for, and not when the link itself
//! ends.

use corespun_bridge::{
    Mailbox, Receiver, Wake,
    layout::mail,
    link::{Conduit, Conduits, Leaving},
    registry,
};

use crate::{
    Call, Channel, Fact, Notify, Put, Take,
    named::{SYNC_OBJECTS, SyncObject},
};

struct Nobody;

impl Wake for Nobody {
    fn wake(&self) {}
}

impl Notify for Nobody {
    fn leave(&self, _: u32, _: Fact) {}
    fn wake(&self) {}
}

fn opened() -> (Receiver, &'static Mailbox) {
    let mut receiver = registry::take_receiver();
    receiver.open(Box::new(Nobody));
    let mailbox = receiver.mailbox();
    (receiver, mailbox)
}

fn message(byte: u8) -> Leaving {
    Leaving::Message([byte].into())
}

#[test]
fn a_link_is_notified_of_each_message_that_it_waits_for() {
    let (mut receiver, mailbox) = opened();
    let number = Conduits::make(&*SYNC_OBJECTS, 2);
    let channel = SYNC_OBJECTS.find(number).expect("a new channel");
    assert_eq!(channel.take(5, mailbox), Leaving::Nothing);
    assert!(channel.put(&[1]) && channel.put(&[2]) && channel.put(&[3]));
    let piece = receiver.next_mail().expect("mail");
    assert_eq!((piece.kind, piece.subject), (mail::SHARED, 5));
    assert_eq!(receiver.next_mail(), None);
    assert!(!channel.put(&[4]), "one was set aside, two wait");
    assert_eq!([1, 2, 3].map(|_| channel.take(5, mailbox)), [message(1), message(2), message(3)]);
    assert_eq!(channel.take(5, mailbox), Leaving::Nothing);
    assert_eq!(channel.take(5, mailbox), Leaving::Nothing);
    assert!(channel.put(&[5]));
    assert!(receiver.next_mail().is_some());
    assert_eq!(receiver.next_mail(), None, "asked twice, it waits once");
    channel.close(5, mailbox);
    assert_eq!(channel.take(5, mailbox), Leaving::Ended);
    assert!(channel.put(&[6]), "a closed channel drops it");
    Conduits::forget(&*SYNC_OBJECTS, number);
    assert!(SYNC_OBJECTS.find(number).is_none());
}

#[test]
fn a_link_that_ends_sends_itself_no_mail_and_notifies_others() {
    let (mut receiver, mailbox) = opened();
    let number = Conduits::make(&*SYNC_OBJECTS, 2);
    let channel = SYNC_OBJECTS.find(number).expect("a new channel");
    assert_eq!(channel.take(9, mailbox), Leaving::Nothing);
    channel.close(9, mailbox);
    assert_eq!(receiver.next_mail(), None);
    Conduits::forget(&*SYNC_OBJECTS, number);
}

#[test]
fn what_is_closed_notifies_the_link_that_waits() {
    let (mut receiver, mailbox) = opened();
    let object = SyncObject::Channel(Channel::new(1));
    assert_eq!(object.take(3, mailbox), Leaving::Nothing);
    let SyncObject::Channel(channel) = &object else { panic!("not a channel") };
    channel.close();
    assert_eq!(receiver.next_mail().map(|piece| piece.facts[0]), Some(Fact::Closed as u32));
    assert_eq!(object.take(3, mailbox), Leaving::Ended);
}

#[test]
fn other_objects_are_channels_that_have_ended() {
    let (_, mailbox) = opened();
    let object = SyncObject::Semaphore(crate::Semaphore::new(1));
    assert!(object.put(&[1]));
    object.close(1, mailbox);
    assert_eq!(object.take(1, mailbox), Leaving::Ended);
}

#[test]
fn a_taker_that_is_woken_may_take_at_once() {
    // As the waker of a process does, in the thread that closes.
    struct Takes(std::sync::Arc<Channel>);
    impl Notify for Takes {
        fn leave(&self, _: u32, _: Fact) {}
        fn wake(&self) {
            assert!(matches!(self.0.take(None), Take::Closed | Take::Empty));
        }
    }
    let channel = std::sync::Arc::new(Channel::new(1));
    let notify = std::sync::Arc::new(Takes(std::sync::Arc::clone(&channel)));
    let call = Call { thread: 1, ticket: 1, notify };
    assert!(matches!(channel.take(Some(call)), Take::Queued));
    channel.close();
    assert_eq!(channel.put(crate::Message { bytes: [1].into(), keeps: None }, None), Put::Closed);
}
