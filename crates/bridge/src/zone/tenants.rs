//! How many tasks of each tenant wait, so that one cannot fill the zone.
//!
//! Guarded by the zone's lock. A tenant is counted by its whole hash, whether or not it has a line of its own
//! in the queue, and forgotten with its last task: there are no more entries than tasks that wait. A zone
//! without that limit counts nothing.

use std::collections::HashMap;

/// Room that is kept when no tenant has a task.
const ROOM_KEPT: usize = 64;

/// The tasks that wait, by tenant.
pub(super) struct Tenants {
    most: usize,
    waiting: HashMap<u64, usize>,
}

impl Tenants {
    /// At most `most` waiting tasks of each tenant; `usize::MAX`: as many as the zone's limits allow.
    pub(super) fn new(most: usize) -> Self {
        Self { most, waiting: HashMap::new() }
    }

    /// Count a task of that tenant; false, and nothing is counted, when as many as may be wait. Tasks
    /// without a tenant (0) are not counted.
    pub(super) fn admit(&mut self, tenant: u64) -> bool {
        if tenant == 0 || self.most == usize::MAX {
            return true;
        }
        let waiting = self.waiting.entry(tenant).or_default();
        let has_room = *waiting < self.most;
        *waiting += usize::from(has_room);
        has_room
    }

    /// A task of that tenant, which was counted, has left the queue.
    pub(super) fn left(&mut self, tenant: u64) {
        if tenant == 0 || self.most == usize::MAX {
            return;
        }
        let Some(waiting) = self.waiting.get_mut(&tenant) else { return };
        *waiting -= 1;
        if *waiting == 0 {
            self.waiting.remove(&tenant);
        }
        if self.waiting.is_empty() {
            self.waiting.shrink_to(ROOM_KEPT);
        }
    }
}
