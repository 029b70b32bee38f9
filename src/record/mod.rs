//! What a run leaves on disk, and the only writer of run directories (RUN-FEED, `ARCHITECTURE` 5).
//!
//! Owns every file name, schema number and wire shape. Knows no schedule and no screen. Readers take these types
//! and never write.

pub mod event;
pub mod layout;
pub mod legs;
pub mod mint;
pub mod node_record;
pub mod observe;
pub mod snapshot;
pub mod snapshot_reader;
pub mod standing;
pub mod status;
pub mod stream;

pub mod artifact;
pub mod aside;
pub mod assessment;
pub mod attempts;
mod document;
pub mod excerpt;
pub mod feed;
mod goal;
mod indent;
pub mod index;
pub mod lock;
pub mod planning;
mod private;
pub mod prune;
pub mod scribe;
pub mod snapshot_writer;
pub mod staged;
pub mod typed;

pub use event::{Event, EventKind};
pub use feed::{Feed, FeedError};
pub use layout::{Home, RunDir, RunId};
pub use node_record::{Record, Verdict};
pub use scribe::Scribe;
pub use snapshot::Snapshot;
pub use snapshot_writer::{Durability, SnapshotError, SnapshotWriter};

pub use crate::graph::Provenance;
pub use crate::text::usage::Usage;
