//! A run as one file to keep or to hand on, in the formats of [`FORMATS`].
//!
//! What is said of a run comes from [`history`](crate::view::history) and, for the page, from [`web`](crate::view::web);
//! here it is only written down otherwise. A run that goes on is written as it stands, and each format says so. Texts of
//! children are data in all of them.

mod bundle;
mod fates;
mod html;
mod json;
mod junit;
mod markdown;
mod timeline;
mod trace;

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::record::snapshot_reader::{Outline, SnapshotError};
use crate::record::status::Status;
use crate::record::stream::StreamError;
use crate::record::{Home, RunDir, RunId};
use crate::view::history::show::Shown;
use crate::view::history::{Prober, ReadError};
use crate::view::web::{Build, Shape};

/// One way to write a run.
pub struct Format {
    /// What it is called.
    pub name: &'static str,
    /// What it is for, in a line.
    pub about: &'static str,
    /// What the name of such a file ends with.
    pub ending: &'static str,
    /// Whether a person reads it as it is, on a terminal.
    pub is_legible: bool,
    write: fn(&Export, &mut dyn Write) -> Result<(), ExportError>,
}

/// Every format.
pub const FORMATS: [Format; 5] = [
    Format {
        name: "html",
        ending: "html",
        about: "The page of the run in one file, for a browser without a network",
        is_legible: false,
        write: html::write,
    },
    Format {
        name: "trace",
        ending: "trace.json",
        about: "What ran when, for Perfetto or chrome://tracing",
        is_legible: false,
        write: trace::write,
    },
    Format {
        name: "junit",
        ending: "xml",
        about: "JUnit's XML, one case a node, for CI systems",
        is_legible: true,
        write: junit::write,
    },
    Format {
        name: "markdown",
        ending: "md",
        about: "A summary for a comment or a job's page",
        is_legible: true,
        write: markdown::write,
    },
    Format {
        name: "json",
        ending: "json",
        about: "The document of `show --json`, with every attempt",
        is_legible: true,
        write: json::write,
    },
];

/// Why a run could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Its feed cannot be read.
    #[error(transparent)]
    Feed(#[from] StreamError),
    /// The output takes no more.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The system has no randomness.
    #[error("there is no randomness for the page: {0}")]
    Randomness(getrandom::Error),
}

/// A run that was read to be written.
pub struct Export {
    shown: Shown,
    home: Home,
    dir: RunDir,
    probe: Prober,
    shape: Shape,
    at: Timestamp,
    zone: TimeZone,
    build: Build,
}

impl Export {
    /// Reads the run `id` of `home`. `at` is the moment of it, `zone` that of the times that people read.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub fn read(
        id: RunId,
        home: &Home,
        probe: Prober,
        (at, zone): (Timestamp, TimeZone),
        build: Build,
    ) -> Result<Self, ReadError> {
        let dir = home.run(&id);
        let shown = Shown::read(id, &dir, probe)?;
        let shape = match Outline::<Shape>::read(&dir) {
            Ok(outline) => outline.graph,
            Err(SnapshotError::Missing { .. }) => Shape::default(),
            Err(error) => return Err(error.into()),
        };
        Ok(Export { shown, home: home.clone(), dir, probe, shape, at, zone, build })
    }

    /// Whether more of the run is to come.
    pub fn is_in_flight(&self) -> bool {
        self.shown.run.status.is_some_and(Status::is_in_flight)
    }

    /// Writes it to `out`.
    ///
    /// # Errors
    /// When something of it cannot be read, or `out` takes no more.
    pub fn write(&self, format: &Format, out: &mut dyn Write) -> Result<(), ExportError> {
        (format.write)(self, out)
    }

    fn id(&self) -> &RunId {
        &self.shown.run.id
    }

    fn status(&self) -> &'static str {
        self.shown.run.status.map_or("UNKNOWN", Status::as_str)
    }
}
