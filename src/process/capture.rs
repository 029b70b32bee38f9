//! Sinks that keep what a child printed: all of it, its end, its two ends, or nothing.
//!
//! Everything but [`Whole`] holds a bounded amount whatever the child prints (case B2). Knows no file: who spools
//! to disk brings a sink of its own.

use std::collections::VecDeque;
use std::io;

use crate::process::{Flow, Sink};

/// How much of a standard error stream is kept: enough for any last words, small enough for ten children.
pub const TAIL_BYTES: usize = 32 * 1024;

/// The most that a model's CLI may print: far above any reply, and ten at once still fit into memory.
pub const OUTPUT_BYTES_MAX: usize = 256 << 20;

/// Keeps every byte.
#[derive(Debug, Default)]
pub struct Whole(pub Vec<u8>);

impl Sink for Whole {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        self.0.extend_from_slice(bytes);
        Ok(Flow::More)
    }
}

/// Keeps every byte up to a limit; a child that prints more has said nothing that can be used, and is ended.
#[derive(Debug, Default)]
pub struct Bounded {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Bounded {
    /// What was printed, or `None` when that was more than [`OUTPUT_BYTES_MAX`].
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        (!self.is_over).then_some(self.bytes)
    }
}

impl Sink for Bounded {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        if self.is_over || self.bytes.len() + bytes.len() > OUTPUT_BYTES_MAX {
            *self = Bounded { bytes: Vec::new(), is_over: true };
            return Ok(Flow::Enough);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(Flow::More)
    }
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Sink for Discard {
    fn take(&mut self, _: &[u8]) -> io::Result<Flow> {
        Ok(Flow::More)
    }
}

/// Keeps the last bytes.
#[derive(Debug)]
pub struct Tail {
    ring: VecDeque<u8>,
    limit: usize,
    total: u64,
}

impl Default for Tail {
    fn default() -> Self {
        Tail::new(TAIL_BYTES)
    }
}

impl Tail {
    /// A tail of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Tail { ring: VecDeque::new(), limit, total: 0 }
    }

    /// How many bytes have passed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The bytes kept.
    pub fn into_bytes(self) -> Vec<u8> {
        self.ring.into()
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(self.limit)..];
        let surplus = (self.ring.len() + bytes.len()).saturating_sub(self.limit);
        self.ring.drain(..surplus);
        self.ring.extend(bytes);
    }
}

impl Sink for Tail {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        self.push(bytes);
        Ok(Flow::More)
    }
}

/// Keeps the first and the last bytes.
#[derive(Debug)]
pub struct HeadTail {
    head: Vec<u8>,
    head_limit: usize,
    tail: Tail,
}

impl HeadTail {
    /// Keeps at most `head` bytes from the front and `tail` from the end.
    pub fn new(head: usize, tail: usize) -> Self {
        HeadTail { head: Vec::new(), head_limit: head, tail: Tail::new(tail) }
    }

    /// The front, how many bytes are missing after it, and the end.
    pub fn into_parts(self) -> (Vec<u8>, u64, Vec<u8>) {
        let missing = self.tail.total - self.tail.ring.len() as u64;
        (self.head, missing, self.tail.into_bytes())
    }
}

impl Sink for HeadTail {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        let front = bytes.len().min(self.head_limit - self.head.len());
        self.head.extend_from_slice(&bytes[..front]);
        self.tail.push(&bytes[front..]);
        Ok(Flow::More)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn check_tail(limit: usize, chunks: &[&str], kept: &str) {
        let mut tail = Tail::new(limit);
        for chunk in chunks {
            tail.take(chunk.as_bytes()).unwrap();
        }
        assert_eq!(tail.total() as usize, chunks.concat().len());
        assert_eq!(String::from_utf8(tail.into_bytes()).unwrap(), kept);
    }

    #[test]
    fn a_tail_keeps_the_end() {
        check_tail(4, &[], "");
        check_tail(4, &["ab"], "ab");
        check_tail(4, &["ab", "cd"], "abcd");
        check_tail(4, &["ab", "cd", "e"], "bcde");
        check_tail(4, &["ab", "cdefghi"], "fghi");
        check_tail(0, &["ab"], "");
    }

    #[test]
    fn b2_a_tail_never_grows_past_its_limit() {
        let mut tail = Tail::new(1000);
        for _ in 0..10_000 {
            tail.take(&[b'e'; 700]).unwrap();
        }
        assert!(tail.ring.capacity() <= 4096, "{}", tail.ring.capacity());
    }

    fn check_ends(chunks: &[&str], parts: (&str, u64, &str)) {
        let mut ends = HeadTail::new(3, 3);
        for chunk in chunks {
            ends.take(chunk.as_bytes()).unwrap();
        }
        assert_eq!(ends.into_parts(), (parts.0.into(), parts.1, parts.2.into()));
    }

    #[test]
    fn two_ends_never_overlap_and_count_the_gap() {
        check_ends(&["ab"], ("ab", 0, ""));
        check_ends(&["abcde"], ("abc", 0, "de"));
        check_ends(&["ab", "cdefgh"], ("abc", 2, "fgh"));
        check_ends(&["abcdef", "g"], ("abc", 1, "efg"));
    }
}
