//! Whether a CLI is logged in, as far as its own files and the environment tell: no CLI is asked, because what it would do
//! to find out is not known to be free. Reads that something is there, never what.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Cli, Finding};
use crate::node::runtime::RuntimeKind;

/// The variable by which claude is given the login of a subscription.
const TOKEN: &str = "CLAUDE_CODE_OAUTH_TOKEN";

pub(super) fn look(cli: &Cli, environment: &[(OsString, OsString)]) -> Finding {
    let by_variable = environment.iter().any(|(name, value)| name == TOKEN && !value.is_empty());
    match (cli.kind, &cli.whereabouts.config) {
        (RuntimeKind::Claude, _) if by_variable => Finding::ok("login", format!("claude: by {TOKEN}")),
        (_, None) => unknown(cli.kind, "there is no home directory to look in"),
        (RuntimeKind::Codex, Some(config)) => codex(config),
        (_, Some(config)) => claude(cli, config),
    }
}

fn claude(cli: &Cli, config: &Path) -> Finding {
    let credentials = config.join(".credentials.json");
    if json(&credentials).is_some_and(|all| has_text(&all["claudeAiOauth"], &["accessToken", "refreshToken"]))
    {
        return Finding::ok("login", format!("claude: a subscription, by {}", credentials.display()));
    }
    let beside = cli.whereabouts.home.iter().map(|home| home.join(".claude.json"));
    let notes =
        beside.chain([config.join(".claude.json")]).filter_map(|path| json(&path)).collect::<Vec<_>>();
    if notes.iter().any(|all| has_text(all, &["primaryApiKey"])) {
        return Finding::warning(
            "login",
            "claude: by a key of the Console, which is billed for each token",
            "log in with a subscription (claude, then /login) unless that is what you want",
        );
    }
    let why = match cfg!(target_os = "macos") {
        true => "its login is kept in the keychain",
        false => "no login was found where it keeps one",
    };
    unknown(RuntimeKind::Claude, why)
}

fn codex(config: &Path) -> Finding {
    let path = config.join("auth.json");
    let Some(auth) = json(&path) else {
        return unknown(RuntimeKind::Codex, "no login was found where it keeps one");
    };
    if has_text(&auth["tokens"], &["access_token", "refresh_token"]) {
        return Finding::ok("login", format!("codex: a subscription, by {}", path.display()));
    }
    if has_text(&auth, &["OPENAI_API_KEY"]) {
        return Finding::warning(
            "login",
            format!("codex: by the API key in {}, which is billed for each token", path.display()),
            "codex logout, then codex login, unless that is what you want",
        );
    }
    unknown(RuntimeKind::Codex, "its auth.json holds no login")
}

fn unknown(kind: RuntimeKind, why: &str) -> Finding {
    let login = match kind {
        RuntimeKind::Codex => "codex login",
        _ => "claude, then /login",
    };
    let what = format!("{}: cannot be told ({why})", kind.as_str());
    Finding::warning("login", what, format!("if prompts fail for want of one: {login}"))
}

fn json(path: &Path) -> Option<Value> {
    // A pipe would be waited for.
    path.metadata().ok().filter(fs::Metadata::is_file)?;
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn has_text(object: &Value, keys: &[&str]) -> bool {
    keys.iter().any(|key| object[*key].as_str().is_some_and(|text| !text.is_empty()))
}
