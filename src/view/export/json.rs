//! The run as one JSON document: that of `omg show RUN --json`, and the timeline (docs/EXPORT.md).

use std::io::Write;

use serde::Serialize;

use super::timeline::Timeline;
use super::{Export, ExportError};
use crate::view::history::run_json;
use crate::view::history::show::Document;

/// The document.
#[derive(Serialize)]
struct Exported<'a> {
    #[serde(flatten)]
    shown: Document<'a>,
    timeline: Timeline,
}

/// Writes the document.
pub(super) fn write(export: &Export, out: &mut dyn Write) -> Result<(), ExportError> {
    let document = Exported { shown: export.shown.document(), timeline: Timeline::read(export)? };
    out.write_all(run_json::print(&document).as_bytes())?;
    Ok(())
}
