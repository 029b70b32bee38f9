//! Which build of the program serves: what a page carries in its metas, and what another server asks for (FACTS 9.1).

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A build of this program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// Its version, without a `v`.
    pub version: String,
    /// The revision of its sources; empty when nobody knows.
    pub revision: String,
    /// When it was made, RFC 3339; empty when nobody knows.
    pub built_at: String,
}

impl Build {
    /// This program, whose file is `executable`.
    pub fn of_program(executable: Option<&Path>, zone: &TimeZone) -> Self {
        let modified = executable.and_then(|path| path.metadata().ok()?.modified().ok());
        let moment = modified.and_then(|at| Timestamp::try_from(at).ok());
        let local =
            moment.map(|at| at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string());
        Build {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: option_env!("OMG_REVISION").unwrap_or_default().to_owned(),
            built_at: local.unwrap_or_default(),
        }
    }

    /// `v0.1.0 (abc1234, built 2026-01-02 03:04)`, without what is not known.
    pub fn label(&self) -> String {
        let moment = |text: &str| text.get(..16).map(|text| format!("built {}", text.replace('T', " ")));
        let parts = [(!self.revision.is_empty()).then(|| self.revision.clone()), moment(&self.built_at)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => format!("v{}", self.version),
            false => format!("v{} ({})", self.version, parts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_leaves_out_what_is_not_known() {
        let build = |revision: &str, built_at: &str| Build {
            version: "1.2".into(),
            revision: revision.into(),
            built_at: built_at.into(),
        };
        assert_eq!(build("", "").label(), "v1.2");
        assert_eq!(
            build("abc1234-dirty", "2026-01-02T03:04:05+01:00").label(),
            "v1.2 (abc1234-dirty, built 2026-01-02 03:04)"
        );
    }
}
