//! The lines that a person typed into chats, kept for the next one's editor (`cache/chat-history`).
//!
//! One line an entry, 0600, and nothing that was not typed. Losing it loses nothing.

use std::io::{self, BufRead, BufReader, Write};

use crate::record::{Home, private};

/// How many lines are remembered.
pub const LINES_MAX: usize = 1000;
/// A longer line is not remembered.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// The lines that were kept under `home`, oldest first, at most [`LINES_MAX`].
///
/// # Errors
/// When they are there and cannot be read.
pub fn read(home: &Home) -> io::Result<Vec<String>> {
    let file = match private::open_to_read(&home.typed()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let each: Vec<Vec<u8>> = BufReader::new(file).split(b'\n').collect::<Result<_, _>>()?;
    // A line that is damaged takes none of the others with it.
    let lines: Vec<String> = each.into_iter().filter_map(|line| String::from_utf8(line).ok()).collect();
    if lines.len() <= 2 * LINES_MAX {
        return Ok(last(lines));
    }
    let lines = last(lines);
    // Only ever appended to, it would grow for ever.
    let mut anew = private::temporary(&home.cache(), "chat-history.tmp-")?;
    anew.write_all((lines.join("\n") + "\n").as_bytes())?;
    anew.persist(home.typed()).map_err(|refused| refused.error)?;
    Ok(lines)
}

/// Keeps one more line.
///
/// # Errors
/// When it cannot be written.
pub fn add(home: &Home, line: &str) -> io::Result<()> {
    if line.len() > LINE_BYTES_MAX || line.contains('\n') {
        return Ok(());
    }
    private::create_directories(&home.cache())?;
    // In one write, so that two chats at the same time do not mix their lines.
    private::open_to_append(&home.typed())?.write_all(format!("{line}\n").as_bytes())
}

fn last(mut lines: Vec<String>) -> Vec<String> {
    lines.split_off(lines.len().saturating_sub(LINES_MAX))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_typed_is_there_the_next_time_and_nobody_elses_to_read() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(&dir.path().join("deep/home"));
        assert!(read(&home).unwrap().is_empty());
        add(&home, "first").unwrap();
        add(&home, "zweite Zeile ü").unwrap();
        add(&home, &"x".repeat(LINE_BYTES_MAX + 1)).unwrap();
        assert_eq!(read(&home).unwrap(), ["first", "zweite Zeile ü"]);
        assert_eq!(fs::metadata(home.typed()).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn it_does_not_grow_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let lines: Vec<String> = (0..2 * LINES_MAX).map(|n| n.to_string()).collect();
        fs::create_dir(home.cache()).unwrap();
        fs::write(home.typed(), lines.join("\n") + "\n").unwrap();
        assert_eq!(read(&home).unwrap().len(), LINES_MAX);
        add(&home, "one more").unwrap();
        let kept = read(&home).unwrap();
        assert_eq!((kept.len(), kept.last().unwrap().as_str()), (LINES_MAX, "one more"));
        assert_eq!(fs::read_to_string(home.typed()).unwrap().lines().count(), LINES_MAX);
        assert_eq!(fs::metadata(home.typed()).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_line_costs_none_of_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        fs::create_dir(home.cache()).unwrap();
        fs::write(home.typed(), b"first\n\xff\xfe\nlast\n").unwrap();
        assert_eq!(read(&home).unwrap(), ["first", "last"]);
    }

    #[test]
    fn a_planted_link_is_neither_read_nor_written() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        fs::create_dir(home.cache()).unwrap();
        fs::write(dir.path().join("victim"), "mine").unwrap();
        std::os::unix::fs::symlink(dir.path().join("victim"), home.typed()).unwrap();
        read(&home).unwrap_err();
        add(&home, "x").unwrap_err();
        assert_eq!(fs::read_to_string(dir.path().join("victim")).unwrap(), "mine");
    }
}
