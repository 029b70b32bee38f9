//! A drawing as one JSON document: `schema` 1, the graph's title, and the [`Drawing`] as it is.

use serde::Serialize;

use super::Drawing;

/// The number of the shape.
const SCHEMA: u32 = 1;

/// The document, with a newline at its end. `run` is the id of the run that the drawing is of.
pub fn print(drawing: &Drawing, run: Option<&str>) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        run_id: Option<&'a str>,
        #[serde(flatten)]
        drawing: &'a Drawing,
    }
    let document = Document { schema: SCHEMA, run_id: run, drawing };
    serde_json::to_string_pretty(&document).expect("text and numbers always encode") + "\n"
}
