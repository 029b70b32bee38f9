//! A stand-in for `claude -p` and, called as `codex`, for `codex exec --json`: its prompt says how to behave.
//!
//! One directive a line, `@key value`; lines inside a quoted previous attempt are skipped. `FAKE_LOG=FILE` appends
//! one JSON line per spawn. `FAKE_CUES=FILE` holds lines `TEXT => @directive`, followed when the prompt holds TEXT. Every
//! claude spawn costs $0.01; codex reports tokens only. A question for the version alone is answered and not logged.
//!
//! Replies: `@say T` · `@echo` · `@reply-n A|B|C` (the n-th spawn's) · `@big N` · `@ansi` · `@readstdin` ·
//! `@raw T` · `@empty` · `@badutf8` · `@iserror` · `@cost X` · `@nocost` · `@session ID` · `@tokens IN OUT` (codex's). Ends: `@exit N` ·
//! `@sleep S` · `@kill N` · `@ignoreterm` · `@ignoreint`. Side effects: `@bigerr N` · `@orphan S` ·
//! `@orphansid S` · `@touch FILE` · `@append FILE` · `@sh CMD`. `@on N DIRECTIVE` is for the n-th spawn alone.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a test program, not part of the tool")]

mod behaviour;
mod invocation;

use std::io::{self, Write};

use behaviour::Behaviour;
use invocation::Invocation;
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let call = Invocation::read()?;
    if call.args == ["--version"] {
        println!("{}", if call.codex { "codex-cli 0.171.0" } else { "2.1.332 (Claude Code)" });
        return Ok(());
    }
    call.log()?;
    let behaviour = Behaviour::act(&call)?;
    let mut stdout = io::stdout().lock();
    match &behaviour.raw {
        Some(raw) => stdout.write_all(raw)?,
        None if call.codex => codex_events(&behaviour, &mut stdout)?,
        None => stdout.write_all(envelope(&behaviour).to_string().as_bytes())?,
    }
    stdout.flush()?;
    std::process::exit(behaviour.code)
}

/// Claude's one result object.
fn envelope(it: &Behaviour) -> Value {
    let subtype = if it.is_error { "error_during_execution" } else { "success" };
    let mut envelope = json!({"type": "result", "subtype": subtype, "is_error": it.is_error,
        "result": it.reply, "session_id": it.session});
    if let Some(cost) = it.cost {
        envelope["total_cost_usd"] = json!(cost);
    }
    envelope["usage"] = json!({"input_tokens": 1, "output_tokens": 1});
    envelope
}

/// Codex's events, one a line.
fn codex_events(it: &Behaviour, to: &mut impl Write) -> io::Result<()> {
    let (input, output) = it.tokens;
    let usage = json!({"input_tokens": input, "cached_input_tokens": 0, "output_tokens": output, "reasoning_output_tokens": 0});
    let events = [
        json!({"type": "thread.started", "thread_id": it.session}),
        json!({"type": "turn.started"}),
        json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": it.reply}}),
        json!({"type": "turn.completed", "usage": usage}),
    ];
    events.iter().try_for_each(|event| writeln!(to, "{event}"))
}
