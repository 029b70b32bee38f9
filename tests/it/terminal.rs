//! The program on a terminal: the live part draws, and leaves a clean screen. A pseudo-terminal comes from python3; a
//! machine without it skips these tests.

use std::process::{Command, Stdio};

use crate::env::{Ran, Running, TestEnv};

/// Runs the words after the size on a terminal of that size and copies what it is sent.
const ON_A_TERMINAL: &str = "
import fcntl, os, pty, struct, sys, termios
columns, words = int(sys.argv[1]), sys.argv[2:]
pid, master = pty.fork()
if pid == 0:
    size = struct.pack('HHHH', 40, columns, 0, 0)
    fcntl.ioctl(1, termios.TIOCSWINSZ, size)
    os.execv(words[0], words)
while True:
    try:
        data = os.read(master, 65536)
    except OSError:
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

/// `omg` on a terminal so wide; `None` without python3.
fn on_a_terminal(env: &TestEnv, columns: usize, words: &[&str]) -> Option<Ran> {
    let there = Command::new("python3").arg("-c").arg("import pty").stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut command = Command::new("python3");
    command.args(["-c", ON_A_TERMINAL, &columns.to_string(), env!("CARGO_BIN_EXE_omg")]).args(words);
    command.env_clear().current_dir(env.work()).stdin(Stdio::null());
    command.envs(env.command(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(Running::of(&mut command).wait())
}

/// What a terminal that is `width` columns wide shows after `sent`; knows what this program sends, and stops the test at anything else.
fn screen(sent: &str, width: usize) -> Vec<String> {
    let (mut rows, mut row, mut column) = (vec![Vec::new()], 0, 0);
    let mut rest = sent.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\u{1b}' => {
                assert_eq!(rest.next(), Some('['), "only CSI sequences");
                let mut number = String::new();
                let end = loop {
                    match rest.next().unwrap() {
                        c if c.is_ascii_digit() || c == ';' || c == '?' => number.push(c),
                        end => break end,
                    }
                };
                let count: usize = number.parse().unwrap_or(1);
                match end {
                    'm' | 'h' | 'l' => {}
                    'A' => row -= count.min(row),
                    'B' => row += count,
                    'C' => column += count,
                    'D' => column -= count.min(column),
                    'G' => column = count - 1,
                    'K' if number == "2" => rows[row].clear(),
                    'K' => rows[row].truncate(column),
                    'J' => {
                        rows[row].truncate(column);
                        rows.truncate(row + 1);
                    }
                    other => panic!("the screen of this test does not know CSI {number}{other}"),
                }
            }
            c => {
                // A full line wraps only when something more is written.
                if column == width {
                    (row, column) = (row + 1, 0);
                    rows.resize(rows.len().max(row + 1), Vec::new());
                }
                if rows[row].len() <= column {
                    rows[row].resize(column + 1, ' ');
                }
                rows[row][column] = c;
                column += 1;
            }
        }
        if rows.len() <= row {
            rows.resize(row + 1, Vec::new());
        }
    }
    rows.into_iter().map(|row| row.into_iter().collect::<String>().trim_end().to_owned()).collect()
}

const SLOW: &str = "name: slow\non_fail: continue\nnodes:\n  - {id: first, prompt: \"@sleep 0.4\\n@say one\"}\n  \
    - {id: second, prompt: \"@sleep 0.6\\n@exit 3\"}\n  - {id: third, prompt: x, depends_on: [second]}\n";

#[test]
fn the_live_part_draws_and_leaves_a_clean_screen() {
    let mut env = TestEnv::new();
    env.set("TERM", "xterm-256color");
    env.write("g.yaml", SLOW);
    let Some(ran) = on_a_terminal(&env, 120, &["run", "g.yaml"]) else { return };
    let ran = ran.exits(1);
    assert!(ran.stdout.contains("0/3 settled"), "{:?}", ran.stdout);
    assert_eq!(
        ran.stdout.matches("\u{1b}[?25l").count(),
        ran.stdout.matches("\u{1b}[?25h").count(),
        "the cursor"
    );
    let screen = screen(&ran.stdout, 120);
    let text = screen.join("\n");
    for line in ["▶ first  running…", "▶ second  running…"] {
        assert_eq!(screen.iter().filter(|shown| *shown == line).count(), 1, "{line}:\n{text}");
    }
    assert!(!text.contains("settled"), "the live part is still there:\n{text}");
    let passed = screen.iter().position(|line| line.starts_with("✓ first  PASS")).unwrap();
    let failed = screen.iter().position(|line| line.starts_with("✗ second  FAILED: exit code 3")).unwrap();
    let ledger = screen.iter().position(|line| line.starts_with("NODE ")).unwrap();
    assert!(passed < failed && failed < ledger, "{text}");
    assert!(screen.iter().all(|line| line.chars().count() <= 120), "{text}");
    assert!(text.trim_end().ends_with("--retry-failed"), "the hint is the last line:\n{text}");
}

#[test]
fn a_narrow_terminal_is_not_overrun() {
    let mut env = TestEnv::new();
    env.set("TERM", "xterm-256color");
    env.write(
        "g.yaml",
        SLOW.replace("@exit 3", "@sh echo a long story that goes on and on until it is over >&2\\n@exit 3"),
    );
    env.omg(&["run", "g.yaml"]).exits(1);
    for words in [&["show", "latest"][..], &["runs", "list"]] {
        let Some(ran) = on_a_terminal(&env, 80, words) else { return };
        let home = env.home().display().to_string();
        for line in screen(&ran.exits(0).stdout, 80).iter().filter(|line| !line.starts_with(&home)) {
            assert!(line.chars().count() <= 80, "{words:?}: {line}");
        }
    }
}

#[test]
fn b13_a_terminal_that_wants_no_colour_gets_no_escape_byte() {
    for (variable, value, flags) in
        [("NO_COLOR", "1", &[][..]), ("TERM", "dumb", &[]), ("IGNORED", "1", &["--color", "never"])]
    {
        let mut env = TestEnv::new();
        env.set("TERM", "xterm-256color").set(variable, value);
        env.write("g.yaml", SLOW.replace("@sleep 0.", "no sleep "));
        env.write("bad.yaml", "nodes: [{id: a, promt: x}]");
        for words in [
            &["run", "g.yaml"][..],
            &["show", "latest"],
            &["runs", "list"],
            &["lint", "bad.yaml"],
            &["--help"],
            &["rn"],
        ] {
            let Some(ran) = on_a_terminal(&env, 100, &[words, flags].concat()) else { return };
            assert!(!ran.stdout.contains('\u{1b}'), "{variable} {words:?}: {:?}", ran.stdout);
        }
    }
}

#[test]
fn b6_a_terminal_gets_none_of_a_child_s_escapes() {
    let mut env = TestEnv::new();
    env.set("TERM", "xterm-256color");
    env.write("g.yaml", "name: \"ev\\e]0;il\\a\"\nnodes: [{id: x, prompt: \"@sh printf '\\\\033]0;pwn\\\\007\\\\033[2J' >&2\\n@raw \\e[2Jx\\n@exit 3\"}]");
    let Some(ran) = on_a_terminal(&env, 100, &["run", "g.yaml"]) else { return };
    let ran = ran.exits(1);
    assert!(
        !ran.stdout.contains("\u{1b}]") && !ran.stdout.contains("\u{1b}[2J") && !ran.stdout.contains('\u{7}')
    );
    assert!(ran.stdout.contains("␛]0;pwn␇"), "{:?}", ran.stdout);
}
