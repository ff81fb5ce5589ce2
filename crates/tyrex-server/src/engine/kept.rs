//! A small cache that evicts the least recently used entry.

use std::sync::{Arc, Mutex, PoisonError};

/// Entries within a limit on their number and their total size.
#[derive(Debug)]
pub(super) struct Kept<T> {
    most: usize,
    largest: usize,
    /// Each with its size; the most recently used one is last.
    all: Mutex<Vec<(usize, Arc<T>)>>,
}

impl<T> Kept<T> {
    pub(super) fn new(most: usize, largest: usize) -> Self {
        Self { most, largest, all: Mutex::default() }
    }

    /// The matching entry, from the cache or made now. It is made without the lock, so other
    /// threads do not wait; if two threads make the same entry, both get the same one.
    pub(super) fn get<E>(
        &self,
        fits: impl Fn(&T) -> bool,
        size: impl Fn(&T) -> usize,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let lock = || self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = lock();
        if let Some(place) = all.iter().position(|(_, kept)| fits(kept)) {
            all[place..].rotate_left(1);
            return Ok(Arc::clone(&all[all.len() - 1].1));
        }
        drop(all);
        let made = Arc::new(make()?);
        let mut all = lock();
        // Another thread may have added the same entry.
        all.retain(|(_, kept)| !fits(kept));
        all.push((size(&made), Arc::clone(&made)));
        let sum = |all: &[(usize, Arc<T>)]| -> usize { all.iter().map(|(size, _)| size).sum() };
        while all.len() > 1 && (all.len() > self.most || sum(&all) > self.largest) {
            all.remove(0);
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(kept: &Kept<usize>, wanted: usize) -> (usize, bool) {
        let mut made = false;
        let found = kept.get(
            |own| *own == wanted,
            |own| *own,
            || {
                made = true;
                Ok::<_, ()>(wanted)
            },
        );
        (*found.unwrap(), made)
    }

    #[test]
    fn the_one_used_longest_ago_goes_first() {
        let kept = Kept::new(2, 100);
        assert_eq!(get(&kept, 1), (1, true));
        assert_eq!(get(&kept, 2), (2, true));
        assert_eq!(get(&kept, 1), (1, false));
        assert_eq!(get(&kept, 3), (3, true));
        assert_eq!(get(&kept, 1), (1, false));
        assert_eq!(get(&kept, 2), (2, true));
    }

    #[test]
    fn what_is_too_large_pushes_the_others_out_but_is_kept_itself() {
        let kept = Kept::new(8, 100);
        get(&kept, 60);
        get(&kept, 30);
        assert_eq!(get(&kept, 200), (200, true));
        assert_eq!(get(&kept, 200), (200, false));
        assert_eq!(get(&kept, 30), (30, true));
    }
}
