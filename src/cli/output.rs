//! A stream that remembers that it could not be written to: what a command prints may be its whole result.

use std::io::{self, Write};

use super::Failure;

/// Standard output. Its first error is kept, so that a command need not look at each write.
pub(super) struct Output {
    stream: Box<dyn Write + Send>,
    failed: Option<Failure>,
    is_lost: bool,
}

impl Output {
    /// An output to `stream`.
    pub(super) fn new(stream: impl Write + Send + 'static) -> Self {
        Output { stream: Box::new(stream), failed: None, is_lost: false }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// When anything that was printed could not be written; a reader that has seen enough is no failure.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        self.flush().ok();
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Whether something that was printed reached nobody, a reader that has seen enough included.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn remember(&mut self, error: &io::Error) {
        self.is_lost |= error.kind() != io::ErrorKind::Interrupted;
        if !matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::BrokenPipe) {
            self.failed.get_or_insert_with(|| Failure::output(error));
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes);
        written.inspect_err(|error| self.remember(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stream.flush();
        flushed.inspect_err(|error| self.remember(error))
    }
}
