//! A thread's own small numbers for what it has opened.
//!
//! A number that was dropped is used again: finding a free one takes no search.

/// Values of a thread under small numbers.
#[derive(Debug)]
pub struct Handles<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Handles<T> {
    /// Keep `thing`; its number.
    pub fn put(&mut self, thing: T) -> u32 {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[handle as usize] = Some(thing);
        handle
    }

    /// What has that number.
    #[inline]
    #[must_use]
    pub fn get(&self, handle: u32) -> Option<&T> {
        self.places.get(handle as usize)?.as_ref()
    }

    /// Drop the number; what had it.
    pub fn take(&mut self, handle: u32) -> Option<T> {
        let thing = self.places.get_mut(handle as usize)?.take()?;
        self.free.push(handle);
        Some(thing)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_number_belongs_to_one_thing_until_it_is_dropped_once() {
        let mut handles = Handles::default();
        assert_eq!(['a', 'b', 'c'].map(|thing| handles.put(thing)), [0, 1, 2]);
        assert_eq!((handles.take(1), handles.take(1), handles.take(9)), (Some('b'), None, None));
        assert_eq!((handles.get(0), handles.get(1), handles.get(2)), (Some(&'a'), None, Some(&'c')));
        assert_eq!((handles.put('d'), handles.put('e')), (1, 3));
        assert_eq!(handles.get(1), Some(&'d'));
    }
}
