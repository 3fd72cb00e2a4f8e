//! Does the same for many things, as many at once as there are cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What `work` gives for each of `items`, in their order. Nothing is begun after the first failure.
///
/// # Errors
/// The first failure in the order of `items`.
pub(crate) fn for_each<T: Sync, R: Send, E: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let share = || {
        let mut done = Vec::new();
        while let Some((index, item)) = take(items, &next) {
            let outcome = work(item);
            if outcome.is_err() {
                next.store(items.len(), Ordering::Relaxed);
            }
            done.push((index, outcome));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(share)).collect();
        let shares = workers.into_iter().map(|worker| worker.join());
        shares.flat_map(|share| share.expect("work that panics is a fault")).collect::<Vec<_>>()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

fn take<'a, T>(items: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, items.get(index)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_done_comes_back_in_order_whoever_did_it() {
        let items: Vec<u64> = (0..50).collect();
        let seen = Mutex::new(BTreeSet::new());
        let done = for_each(&items, |item| {
            seen.lock().unwrap().insert(format!("{:?}", thread::current().id()));
            thread::sleep(Duration::from_millis(50 - item));
            Ok::<_, ()>(item * 2)
        });
        assert_eq!(done.unwrap(), (0..50).map(|item| item * 2).collect::<Vec<_>>());
        let cores = thread::available_parallelism().unwrap().get();
        assert_eq!(seen.into_inner().unwrap().len(), cores.min(50));
    }

    #[test]
    fn after_a_failure_nothing_is_begun() {
        let items: Vec<usize> = (0..1000).collect();
        let begun = AtomicUsize::new(0);
        let done: Result<Vec<()>, usize> = for_each(&items, |item| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err(*item)
        });
        assert_eq!(done, Err(0));
        assert!(begun.into_inner() <= thread::available_parallelism().unwrap().get());
    }

    #[test]
    fn nothing_to_do_is_done() {
        assert_eq!(for_each(&[] as &[u8], |_| Err::<(), ()>(())), Ok(vec![]));
    }
}
