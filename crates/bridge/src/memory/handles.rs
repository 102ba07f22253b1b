//! A thread's own small numbers for what it has opened.
//!
//! A number that was dropped is used again: finding a free one takes no search.

/// Values of a thread under small numbers.
pub struct Handles<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Handles<T> {
    /// Keep `value`; its number.
    pub fn put(&mut self, value: T) -> u32 {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.values.push(None);
            self.values.len() as u32 - 1
        });
        self.values[handle as usize] = Some(value);
        handle
    }

    #[inline]
    pub fn get(&self, handle: u32) -> Option<&T> {
        self.values.get(handle as usize)?.as_ref()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().flatten()
    }

    /// Drop the number; what had it.
    pub fn take(&mut self, handle: u32) -> Option<T> {
        let value = self.values.get_mut(handle as usize)?.take()?;
        self.free.push(handle);
        Some(value)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
