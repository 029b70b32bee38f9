//! Ids and positions of nodes.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest segment of a node id, in bytes (DECISIONS 3).
pub const SEGMENT_BYTES_MAX: usize = 200;

/// The longest id, in bytes: with `.out` behind it, it names a file, and a disk allows 255.
pub const ID_BYTES_MAX: usize = 250;

/// A node's id: one or more segments joined by `/`; a person writes one segment, a spliced fragment several.
///
/// Cheap to clone. Ordered by text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// Builds an id from `text`, or `None` when a segment is not `[A-Za-z0-9][A-Za-z0-9._-]*` of at most
    /// 200 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        text.split('/').all(is_segment).then(|| Self(text.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as one path element: `/` becomes `~`, which no id contains (RUN-FEED).
    pub fn file_stem(&self) -> String {
        self.0.replace('/', "~")
    }
}

/// Whether `text` may stand as one segment of a node id, or as a worktree or fragment name.
pub fn is_segment(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= SEGMENT_BYTES_MAX
        && bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl Borrow<str> for NodeId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A node's position in its graph's file order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeIx(u32);

impl NodeIx {
    /// The position `at`; a graph never holds more than `u32::MAX` nodes (the loader's limit is far below).
    pub fn new(at: usize) -> Self {
        Self(u32::try_from(at).expect("the loader bounds the number of nodes"))
    }

    /// The position as an index.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}
