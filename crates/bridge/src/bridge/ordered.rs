//! Calls with an order, and calls of many bytes, which may have one: not the hot ones.
//!
//! The order lies in the words of the out scratch from `given::ORDER` on, which JavaScript clears afterwards.

use super::Bridge;
use crate::{
    Misuse, Order, Priority,
    layout::{given, order},
};

impl Bridge {
    /// As `submit`, in the given order.
    pub fn submit_ordered(&mut self) -> Result<(), Misuse> {
        let [zone, function, length, call] = self.out.words();
        self.submit_given::<true>(zone, function, length, call)
    }

    /// Send `bytes` as a call of `function`, in the given order if there is one. Returns 0, or the number of
    /// a refusal.
    pub fn send_large(&mut self, zone: u32, function: u32, call: u32, bytes: &[u8]) -> Result<i32, Misuse> {
        match self.out.word(given::ORDER) {
            0 => self.send::<false>(zone, function, call, bytes),
            _ => self.send::<true>(zone, function, call, bytes),
        }
    }

    /// The given order and weight.
    pub(super) fn order(&self) -> (Order, u32) {
        let [word, worker, low, high] = [given::ORDER, given::WORKER, given::TENANT, given::TENANT_HIGH]
            .map(|index| self.out.word(index));
        let priority = match word & 3 {
            order::HIGH => Priority::High,
            order::LOW => Priority::Low,
            _ => Priority::Normal,
        };
        let tenant = u64::from(high) << 32 | u64::from(low);
        let moves = word & order::MOVES != 0;
        let exclusive = word & order::EXCLUSIVE != 0;
        let worker = worker as u16;
        let order = Order { tenant, worker, moves, exclusive, priority, ..Order::default() };
        (order, (word >> order::WEIGHT_SHIFT).max(1))
    }
}
