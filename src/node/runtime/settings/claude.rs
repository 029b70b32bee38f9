//! The settings of the `claude` CLI: JSON with an `env` block and a helper for keys.

use serde_json::Value;

use super::{Effect, Finding, Origin, Place, Whereabouts, effect_of};

/// Where the managers of a machine put them, below the root.
const MANAGED: [&str; 2] =
    ["etc/claude-code/managed-settings.json", "Library/Application Support/ClaudeCode/managed-settings.json"];
/// Where a directory has them; claude looks in no directory above.
const PROJECT: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// What there is to be told.
pub(super) fn findings(at: &Whereabouts) -> Vec<Finding> {
    places(at).iter().flat_map(look).collect()
}

fn places(at: &Whereabouts) -> Vec<Place> {
    let place = |origin: Origin| move |path| Place { path, origin, cli: "claude" };
    let managed = MANAGED.map(|name| at.system.join(name)).map(place(Origin::Managed));
    if at.is_isolated {
        // `--setting-sources ""` leaves out the person's and the project's.
        return managed.into();
    }
    let config = at.config.iter();
    let own = config.flat_map(|config| {
        // The CLI's own notes, which may hold an `env` block as well, lie beside its directory unless that was moved.
        let notes = at.home.as_ref().filter(|home| home.join(".claude") == *config).unwrap_or(config);
        [config.join("settings.json"), notes.join(".claude.json")]
    });
    let project = at.directories.iter().flat_map(|dir| PROJECT.map(|name| dir.join(name)));
    managed
        .into_iter()
        .chain(own.map(place(Origin::Own)))
        .chain(project.map(place(Origin::Project)))
        .collect()
}

fn look(place: &Place) -> Vec<Finding> {
    let text = match place.read() {
        None => return Vec::new(),
        Some(Err(finding)) => return vec![finding],
        Some(Ok(text)) if text.trim().is_empty() => return Vec::new(),
        Some(Ok(text)) => text,
    };
    match serde_json::from_str::<Value>(&text) {
        Ok(settings) => look_at(place, &settings),
        Err(error) => {
            vec![place.unreadable(format!("is not JSON (line {}, column {})", error.line(), error.column()))]
        }
    }
}

fn look_at(place: &Place, settings: &Value) -> Vec<Finding> {
    let env = settings.get("env").and_then(Value::as_object);
    let variables = env.into_iter().flatten().filter_map(|(name, value)| {
        let effect = effect_of(name, &written(value))?;
        Some(place.sets(format!("env.{name}"), effect))
    });
    let helper = settings.get("apiKeyHelper").filter(|value| !written(value).trim().is_empty());
    variables.chain(helper.map(|_| place.sets("apiKeyHelper", Effect::Bills))).collect()
}

/// A value as a variable would hold it.
fn written(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::World;
    use crate::node::runtime::RuntimeKind;

    fn check(file: &str, text: &str, wanted: &[&str]) {
        let world = World::new();
        world.write(file, text);
        assert_eq!(world.found(RuntimeKind::Claude, "home/.claude"), wanted, "{file}: {text}");
    }

    #[test]
    fn auto_without_sources_only_what_is_managed_is_in_play() {
        let world = World::new();
        let key = r#"{"env":{"ANTHROPIC_API_KEY":"k"}}"#;
        let managed = "root/etc/claude-code/managed-settings.json";
        for file in [
            managed,
            "home/.claude/settings.json",
            "home/.claude.json",
            "project/.claude/settings.local.json",
        ] {
            world.write(file, key);
        }
        assert_eq!(world.found(RuntimeKind::Claude, "home/.claude").len(), 4);
        let told = [format!("{managed}: env.ANTHROPIC_API_KEY Bills")];
        assert_eq!(world.found_isolated(RuntimeKind::Claude, "home/.claude"), told);
    }

    #[test]
    fn only_settings_that_change_the_payer_or_the_server_are_told_each_key_once() {
        let file = "project/.claude/settings.json";
        for harmless in
            [r#"{"env":{"EDITOR":"vi"},"hooks":{}}"#, "", "{}", "[]", r#"{"env":[],"apiKeyHelper":null}"#]
        {
            check(file, harmless, &[]);
        }
        check(
            file,
            r#"{"env":{"ANTHROPIC_API_KEY":"k","X":"y","CLAUDE_CODE_USE_BEDROCK":1},"apiKeyHelper":"x"}"#,
            &[
                "project/.claude/settings.json: env.ANTHROPIC_API_KEY Bills",
                "project/.claude/settings.json: env.CLAUDE_CODE_USE_BEDROCK Redirects",
                "project/.claude/settings.json: apiKeyHelper Bills",
            ],
        );
    }

    #[test]
    fn every_file_that_claude_loads_is_looked_at_and_no_other() {
        for file in [
            "root/etc/claude-code/managed-settings.json",
            "root/Library/Application Support/ClaudeCode/managed-settings.json",
            "home/.claude/settings.json",
            "home/.claude.json",
            "project/.claude/settings.json",
            "project/.claude/settings.local.json",
        ] {
            check(file, r#"{"apiKeyHelper":"x"}"#, &[&format!("{file}: apiKeyHelper Bills")]);
        }
        for file in
            ["project/below/.claude/settings.json", ".claude/settings.json", "home/.claude/.claude.json"]
        {
            check(file, r#"{"apiKeyHelper":"x"}"#, &[]);
        }
    }

    #[test]
    fn a_directory_that_was_moved_holds_the_notes_too() {
        let world = World::new();
        world.write("moved/.claude.json", r#"{"env":{"ANTHROPIC_AUTH_TOKEN":"x"}}"#);
        world.write("home/.claude.json", r#"{"env":{"ANTHROPIC_AUTH_TOKEN":"x"}}"#);
        let found = world.found(RuntimeKind::Claude, "moved");
        assert_eq!(found, ["moved/.claude.json: env.ANTHROPIC_AUTH_TOKEN Bills"]);
    }

    #[test]
    fn a_file_that_is_not_json_is_told_with_its_place_alone() {
        check(
            "home/.claude/settings.json",
            "{\n  \"env\": sk-secret }",
            &["home/.claude/settings.json: is not JSON (line 2, column 10)"],
        );
        check("home/.claude/settings.json", "\u{feff}{}", &[]);
    }
}
