//! One token that the workers take in the order of the chunks they hold.
//!
//! A worker that reaches its turn works on the shared state alone, then passes the token on.
//! Whoever waits sleeps; nobody spins. A worker that fails (or panics) while it holds the
//! token, or says so, breaks the row: all who wait go home.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many condition variables the waiters are spread over, so that passing the token wakes
/// one worker rather than all.
const SEATS: usize = 64;

/// The token and the state that belongs to it.
#[derive(Debug)]
pub struct Turns<T> {
    inner: Mutex<Inner<T>>,
    seats: [Condvar; SEATS],
}

#[derive(Debug)]
struct Inner<T> {
    next: u64,
    broken: bool,
    state: T,
}

impl<T> Turns<T> {
    /// The first turn is number 0.
    pub fn new(state: T) -> Turns<T> {
        Turns {
            inner: Mutex::new(Inner {
                next: 0,
                broken: false,
                state,
            }),
            seats: std::array::from_fn(|_| Condvar::new()),
        }
    }

    /// Waits for turn `number`; `None` when the row is broken.
    pub fn wait(&self, number: u64) -> Option<Turn<'_, T>> {
        let mut inner = self.lock();
        while inner.next != number && !inner.broken {
            inner = self.seats[number as usize % SEATS]
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
        (!inner.broken).then_some(Turn {
            turns: self,
            inner,
            passed: false,
        })
    }

    /// Breaks the row from outside.
    pub fn break_up(&self) {
        self.lock().broken = true;
        for seat in &self.seats {
            seat.notify_all();
        }
    }

    /// The state, out of turn: for when all turns are over.
    pub fn state(&self) -> State<'_, T> {
        State(self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // A panic while the token was held has broken the row; the flag says so.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state, locked.
#[derive(Debug)]
pub struct State<'a, T>(MutexGuard<'a, Inner<T>>);

impl<T> Deref for State<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0.state
    }
}

impl<T> DerefMut for State<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.state
    }
}

/// The token in hand. Dropping it without [`Turn::pass`] breaks the row.
#[derive(Debug)]
pub struct Turn<'a, T> {
    turns: &'a Turns<T>,
    inner: MutexGuard<'a, Inner<T>>,
    passed: bool,
}

impl<T> Turn<'_, T> {
    /// Passes the token to the next.
    pub fn pass(mut self) {
        self.passed = true;
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner.state
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner.state
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        if self.passed {
            self.inner.next += 1;
            let next = self.inner.next;
            self.turns.seats[next as usize % SEATS].notify_all();
        } else {
            self.inner.broken = true;
            for seat in &self.turns.seats {
                seat.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_order_whoever_waits_first() {
        let turns = Turns::new(Vec::new());
        std::thread::scope(|scope| {
            for number in (0..20u64).rev() {
                let turns = &turns;
                scope.spawn(move || {
                    let mut turn = turns.wait(number).unwrap();
                    turn.push(number);
                    turn.pass();
                });
            }
        });
        assert_eq!(*turns.state(), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_turn_that_is_dropped_sends_all_others_home() {
        let turns = Turns::new(());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| turns.wait(1).is_none());
            drop(turns.wait(0).unwrap());
            assert!(waiter.join().unwrap());
        });
        assert!(turns.wait(0).is_none());
    }
}
