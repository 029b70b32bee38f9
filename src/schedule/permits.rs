//! Slots as a counting semaphore: a bounded channel that holds one token a slot (`ARCHITECTURE` 4).

use crossbeam_channel::{Receiver, Sender, bounded};

/// The slots of a run.
#[derive(Debug)]
pub struct Permits {
    home: Sender<()>,
    free: Receiver<()>,
}

impl Permits {
    /// `slots` free slots.
    pub fn new(slots: usize) -> Self {
        let (home, free) = bounded(slots);
        for _ in 0..slots {
            home.try_send(()).expect("the channel holds as many tokens as there are slots");
        }
        Permits { home, free }
    }

    /// Takes a slot if one is free.
    pub fn try_take(&self) -> Option<Permit> {
        self.free.try_recv().ok().map(|()| Permit { home: self.home.clone() })
    }
}

/// A slot that is held; dropping it frees it.
#[derive(Debug)]
pub struct Permit {
    home: Sender<()>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        // The channel has room: this token came from it. It is gone only when the run is over.
        self.home.try_send(()).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_more_permits_than_slots() {
        let permits = Permits::new(2);
        let first = permits.try_take();
        let second = permits.try_take();
        assert!(first.is_some() && second.is_some());
        assert!(permits.try_take().is_none());
        drop(first);
        assert!(permits.try_take().is_some());
    }
}
