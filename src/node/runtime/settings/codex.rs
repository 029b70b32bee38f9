//! The settings of the `codex` CLI: `config.toml`, and a `.env` file in its own directory.
//!
//! A provider of a model counts only when some file chooses it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use crate::node::checkout;

use super::{Effect, Finding, Origin, Place, Whereabouts, effect_of};

/// Where the managers of a machine put them, below the root.
const MANAGED: [&str; 2] = ["etc/codex/managed_config.toml", "etc/codex/config.toml"];
/// The provider that is codex's own.
const OWN_PROVIDER: &str = "openai";
/// Addresses of servers at the top of a file.
const ADDRESSES: [&str; 2] = ["openai_base_url", "chatgpt_base_url"];
/// What a chosen provider may say.
const PROVIDER_KEYS: [(&str, Effect); 4] = [
    ("base_url", Effect::Redirects),
    ("env_key", Effect::Bills),
    ("experimental_bearer_token", Effect::Bills),
    ("auth", Effect::Bills),
];
/// Keys that ask for a login by key, and the word that does.
const METHODS: [(&str, &str); 2] = [("preferred_auth_method", "apikey"), ("forced_login_method", "api")];

/// What there is to be told.
pub(super) fn findings(at: &Whereabouts) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut texts = Vec::new();
    for place in places(at) {
        match place.read() {
            None => {}
            Some(Err(finding)) => found.push(finding),
            Some(Ok(text)) => texts.push((place, text)),
        }
    }
    let mut files = Vec::new();
    for (place, text) in &texts {
        match DeTable::parse(text) {
            Ok(table) => files.push((place, table.into_inner())),
            Err(error) => {
                let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
                found.push(place.unreadable(format!("is not TOML (line {line})")));
            }
        }
    }
    let profiles: BTreeSet<&str> = files.iter().filter_map(|(_, file)| word(file, "profile")).collect();
    let mut providers = BTreeSet::from([OWN_PROVIDER]);
    for (_, file) in &files {
        providers.extend(word(file, "model_provider"));
        providers.extend(chosen(file, &profiles).map(|(_, provider)| provider));
    }
    for (place, file) in &files {
        found.extend(look(place, file, &profiles, &providers));
    }
    found.extend(at.config.iter().flat_map(|config| variables(config)));
    found
}

fn places(at: &Whereabouts) -> Vec<Place> {
    let place = |origin: Origin| move |path| Place { path, origin, cli: "codex" };
    let managed = MANAGED.map(|name| at.system.join(name)).map(place(Origin::Managed));
    if at.is_isolated {
        // `--ignore-user-config` leaves out the person's file, which is also what trusts a project's.
        return managed.into();
    }
    let own = at.config.iter().map(|config| config.join("config.toml")).map(place(Origin::Own));
    let own_path = at.config.as_ref().map(|config| config.join("config.toml"));
    let project: BTreeSet<PathBuf> = at.directories.iter().flat_map(|dir| up_to_repository(dir)).collect();
    let project = project.into_iter().filter(|path| Some(path) != own_path.as_ref());
    managed.into_iter().chain(own).chain(project.map(place(Origin::Project))).collect()
}

/// codex reads the files of a directory and of those above it, up to the top of the repository.
fn up_to_repository(dir: &Path) -> Vec<PathBuf> {
    let top = checkout::top(dir).unwrap_or(dir);
    let within = dir.ancestors().take_while(|above| above.starts_with(top));
    within.map(|above| above.join(".codex/config.toml")).collect()
}

fn look(
    place: &Place,
    file: &DeTable<'_>,
    profiles: &BTreeSet<&str>,
    providers: &BTreeSet<&str>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    if word(file, "model_provider").is_some_and(|provider| provider != OWN_PROVIDER) {
        found.push(place.sets("model_provider", Effect::Redirects));
    }
    let foreign = chosen(file, profiles).filter(|(_, provider)| *provider != OWN_PROVIDER);
    found.extend(
        foreign
            .map(|(profile, _)| place.sets(format!("profiles.{profile}.model_provider"), Effect::Redirects)),
    );
    let addresses = ADDRESSES.iter().filter(|key| word(file, key).is_some());
    found.extend(addresses.map(|key| place.sets(*key, Effect::Redirects)));
    let by_key = METHODS.iter().filter(|(key, method)| word(file, key) == Some(*method));
    found.extend(by_key.map(|(key, _)| place.sets(*key, Effect::Bills)));
    for name in providers {
        let provider = table(file, "model_providers").and_then(|all| table(all, name));
        let set = PROVIDER_KEYS.iter().filter(|(key, _)| provider.is_some_and(|it| it.contains_key(*key)));
        found.extend(set.map(|(key, effect)| place.sets(format!("model_providers.{name}.{key}"), *effect)));
    }
    let set = table(file, "shell_environment_policy").and_then(|policy| table(policy, "set"));
    found.extend(set.into_iter().flatten().filter_map(|(name, value)| {
        let name = name.get_ref();
        let effect = effect_of(name, value.get_ref().as_str().unwrap_or_default())?;
        Some(place.sets(format!("shell_environment_policy.set.{name}"), effect))
    }));
    found
}

/// The profiles that some file chooses and that this one fills, with the provider that each names.
fn chosen<'f>(
    file: &'f DeTable<'_>,
    profiles: &BTreeSet<&'f str>,
) -> impl Iterator<Item = (&'f str, &'f str)> {
    let all = table(file, "profiles");
    let named: Vec<_> = profiles
        .iter()
        .filter_map(|profile| Some((*profile, word(table(all?, profile)?, "model_provider")?)))
        .collect();
    named.into_iter()
}

fn table<'f, 'i>(file: &'f DeTable<'i>, key: &str) -> Option<&'f DeTable<'i>> {
    file.get(key)?.get_ref().as_table()
}

/// A text that is not empty.
fn word<'f>(file: &'f DeTable<'_>, key: &str) -> Option<&'f str> {
    file.get(key).and_then(|value| DeValue::as_str(value.get_ref())).filter(|text| !text.is_empty())
}

/// What the `.env` of codex's own directory sets: `NAME=value`, a line each.
fn variables(config: &Path) -> Vec<Finding> {
    let place = Place { path: config.join(".env"), origin: Origin::Own, cli: "codex" };
    let text = match place.read() {
        None => return Vec::new(),
        Some(Err(finding)) => return vec![finding],
        Some(Ok(text)) => text,
    };
    let set = text.lines().filter_map(|line| {
        let line = line.trim();
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let effect = effect_of(name.trim(), value.trim().trim_matches(['"', '\'']))?;
        Some((name.trim(), effect))
    });
    let mut told = BTreeSet::new();
    set.filter(|(name, _)| told.insert(*name)).map(|(name, effect)| place.sets(name, effect)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::World;
    use crate::node::runtime::RuntimeKind;

    fn check(files: &[(&str, &str)], wanted: &[&str]) {
        let world = World::new();
        for (file, text) in files {
            world.write(file, text);
        }
        assert_eq!(world.found(RuntimeKind::Codex, "home/.codex"), wanted, "{files:?}");
    }

    #[test]
    fn a_provider_counts_when_it_is_chosen() {
        let file = "home/.codex/config.toml";
        let provider =
            "[model_providers.mine]\nbase_url = \"http://secret\"\nenv_key = \"K\"\nname = \"x\"\n";
        check(&[(file, provider)], &[]);
        check(&[(file, &format!("model_provider = \"openai\"\n{provider}"))], &[]);
        check(
            &[(file, &format!("model_provider = \"mine\"\n{provider}"))],
            &[
                "home/.codex/config.toml: model_provider Redirects",
                "home/.codex/config.toml: model_providers.mine.base_url Redirects",
                "home/.codex/config.toml: model_providers.mine.env_key Bills",
            ],
        );
        let profile = "profile = \"work\"\n[profiles.work]\nmodel_provider = \"mine\"\n[profiles.other]\nmodel_provider = \"x\"\n";
        check(&[(file, profile)], &["home/.codex/config.toml: profiles.work.model_provider Redirects"]);
        check(
            &[(file, "model_provider = \"mine\""), ("root/etc/codex/config.toml", provider)],
            &[
                "root/etc/codex/config.toml: model_providers.mine.base_url Redirects",
                "root/etc/codex/config.toml: model_providers.mine.env_key Bills",
                "home/.codex/config.toml: model_provider Redirects",
            ],
        );
    }

    #[test]
    fn other_ways_to_another_payer_or_server_are_told() {
        check(
            &[(
                "home/.codex/config.toml",
                "openai_base_url = \"http://x\"\nforced_login_method = \"api\"\npreferred_auth_method = \"chatgpt\"\n\
                 [shell_environment_policy.set]\nOPENAI_API_KEY = \"k\"\nEDITOR = \"vi\"\n",
            )],
            &[
                "home/.codex/config.toml: openai_base_url Redirects",
                "home/.codex/config.toml: forced_login_method Bills",
                "home/.codex/config.toml: shell_environment_policy.set.OPENAI_API_KEY Bills",
            ],
        );
        check(
            &[(
                "home/.codex/.env",
                "# x\nexport OPENAI_API_KEY='k'\nOPENAI_API_KEY=l\nEMPTY=\nOPENAI_BASE_URL=\"\"\n",
            )],
            &["home/.codex/.env: OPENAI_API_KEY Bills"],
        );
    }

    #[test]
    fn auto_with_the_configuration_ignored_what_is_managed_and_its_variables_are_in_play() {
        let world = World::new();
        let managed = "root/etc/codex/managed_config.toml";
        let providers = "[model_providers.x]\nenv_key = \"K\"\n";
        world.write(managed, &format!("openai_base_url = \"http://x\"\n{providers}"));
        world.write("home/.codex/config.toml", "model_provider = \"x\"");
        world.write("project/.codex/config.toml", "chatgpt_base_url = \"x\"");
        world.write("home/.codex/.env", "OPENAI_API_KEY=k");
        assert_eq!(
            world.found_isolated(RuntimeKind::Codex, "home/.codex"),
            [
                format!("{managed}: openai_base_url Redirects"),
                "home/.codex/.env: OPENAI_API_KEY Bills".to_owned()
            ],
            "and a provider that only the person's file chooses is chosen by nobody"
        );
        let all = world.found(RuntimeKind::Codex, "home/.codex");
        assert!(
            all.len() == 5 && all.contains(&format!("{managed}: model_providers.x.env_key Bills")),
            "{all:?}"
        );
    }

    #[test]
    fn the_files_of_a_repository_are_looked_at_up_to_its_top() {
        let key = "openai_base_url = \"http://x\"";
        check(
            &[("project/.codex/config.toml", key)],
            &["project/.codex/config.toml: openai_base_url Redirects"],
        );
        check(&[(".codex/config.toml", key)], &[]);
        check(
            &[(".codex/config.toml", key), (".git/HEAD", "")],
            &[".codex/config.toml: openai_base_url Redirects"],
        );
    }

    #[test]
    fn a_file_that_is_not_toml_is_told_with_its_line_alone_and_the_others_are_still_read() {
        check(
            &[
                ("home/.codex/config.toml", "a = 1\nopenai_base_url = sk-secret\n"),
                ("project/.codex/config.toml", "chatgpt_base_url = \"x\""),
            ],
            &[
                "home/.codex/config.toml: is not TOML (line 2)",
                "project/.codex/config.toml: chatgpt_base_url Redirects",
            ],
        );
    }
}
