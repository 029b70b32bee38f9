//! Server-sent events: how a frame is written, and what every stream owes to its reader.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::http::{self, Answer, Stream};

/// How often a stream with nothing to tell says that it is alive. It is also how a reader that has gone is found.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);
/// How many streams there may be at a time.
const STREAMS_MAX: usize = 256;
/// What a reader is told about when to come back, in milliseconds.
const RETRY_MS: u32 = 1000;
/// How many frames may wait for one reader.
pub(super) const QUEUE: usize = 256;

/// A frame as it goes over the wire, made once for all readers.
pub(super) type Bytes = Arc<[u8]>;

/// A frame. `data` is one line of JSON.
pub(super) fn frame(id: Option<u64>, event: Option<&str>, data: &str) -> Bytes {
    http::chunk(text(id, event, data).as_bytes())
}

/// The text of a frame.
pub(super) fn text(id: Option<u64>, event: Option<&str>, data: &str) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let event = event.map(|event| format!("event: {event}\n")).unwrap_or_default();
    format!("{id}{event}data: {data}\n\n")
}

/// A frame that tells why a stream ends.
pub(super) fn failure(error: &dyn std::fmt::Display) -> Bytes {
    frame(None, Some("stream_error"), &serde_json::json!({ "error": error.to_string() }).to_string())
}

/// A frame that means nothing.
pub(super) fn heartbeat() -> Bytes {
    http::chunk(b":\n\n")
}

/// How many streams are open.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    open: Mutex<usize>,
    closed: Condvar,
}

/// The place of one stream among them.
struct Place(Arc<Count>);

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.closed.notify_all();
    }
}

impl Streams {
    /// A stream that `run` fills, or a refusal when there are too many.
    pub(super) fn open(&self, run: impl FnOnce(&mut Stream) -> io::Result<()> + Send + 'static) -> Answer {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        if *open >= STREAMS_MAX {
            return Answer::text(503, "too many open views of this server; close some")
                .with("Retry-After", "5");
        }
        *open += 1;
        drop(open);
        let place = Place(Arc::clone(&self.0));
        let body = move |stream: &mut Stream| {
            let _place = place;
            stream.send(&http::chunk(format!("retry: {RETRY_MS}\n\n").as_bytes()))?;
            run(stream)
        };
        let headers =
            vec![("Content-Type", "text/event-stream".to_owned()), ("X-Accel-Buffering", "no".to_owned())];
        Answer::Stream(headers, Box::new(body))
    }

    /// Waits until all are closed, at most for `patience`.
    pub(super) fn settle(&self, patience: Duration) {
        let open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.closed.wait_timeout_while(open, patience, |open| *open > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_names_what_it_has() {
        assert_eq!(text(Some(7), None, "{}"), "id: 7\ndata: {}\n\n");
        assert_eq!(text(None, Some("card"), "{}"), "event: card\ndata: {}\n\n");
    }

    #[test]
    fn a_stream_too_many_is_refused_and_a_closed_one_makes_room() {
        let streams = Streams::default();
        let mut open: Vec<Answer> = (0..STREAMS_MAX).map(|_| streams.open(|_| Ok(()))).collect();
        let is_refused = |answer: Answer| matches!(answer, Answer::Whole(whole) if whole.status == 503);
        assert!(is_refused(streams.open(|_| Ok(()))));
        open.pop();
        assert!(!is_refused(streams.open(|_| Ok(()))));
    }
}
