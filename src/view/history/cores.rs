//! Work over many runs at once: each is a few files, and somebody waits for all of them.

use std::thread;

/// Fewer items than this are done before a thread has begun.
const SHARE_MIN: usize = 16;

/// Does `work` on each of `items`, on as many threads as there are cores. A share that no thread could be had for stays
/// undone: the caller sees to what it finds undone.
pub(crate) fn on_every_core<T: Send>(items: &mut [T], work: impl Fn(&mut T) + Sync) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(cores).max(SHARE_MIN);
    let all = |share: &mut [T]| share.iter_mut().for_each(&work);
    thread::scope(|scope| {
        let mut shares = items.chunks_mut(share);
        let own = shares.next();
        for share in shares {
            let beside = thread::Builder::new().name("runs".to_owned());
            beside.spawn_scoped(scope, || all(share)).ok();
        }
        own.map(all);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once() {
        for count in [0, 1, SHARE_MIN, 1000] {
            let mut items = vec![0; count];
            on_every_core(&mut items, |item| *item += 1);
            assert_eq!(items, vec![1; count]);
        }
    }
}
