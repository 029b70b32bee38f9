//! What a planned node is given on disk before each of its spawns: its private copies of staged agents and skills.
//!
//! The policy's directories are names that the run's record keeps; they lie where every node can write, and no spawn reads
//! them. [`Provisioned`] asks a [`Provision`] for directories of that spawn's own and puts them in their place
//! (docs/adr/0009).

use std::path::PathBuf;
use std::sync::Arc;

use crate::graph::Graph;
use crate::node::invocation::{End, Invocation, Invoked, Preflight, Runtime};
use crate::process::Cancel;

/// Makes what a spawn is given.
pub trait Provision: Send + Sync {
    /// Called directly before each spawn of a node, on its worker: the first, a retry's, a round's. The directories
    /// take the place of the policy's `plugin_dirs`, in order. `attempt` does not number rounds, so a copy needs a
    /// name of its own.
    ///
    /// # Errors
    /// Why the spawn cannot be provided for; it then does not happen, and the engine is named as the cause, unless
    /// `cancel` had fired, which ends this early.
    fn before_spawn(&self, invocation: &Invocation, cancel: &Cancel) -> Result<Provisions, String>;
}

/// What a spawn is given.
#[derive(Default)]
pub struct Provisions {
    /// Directories of this spawn's own.
    pub plugin_dirs: Vec<PathBuf>,
    /// What they lie in; dropped when the child has ended, to take them away again.
    pub held: Option<Box<dyn Held>>,
}

/// What a spawn was given, for as long as its child runs.
pub trait Held: Send {
    /// Asked when the child has ended: what became of it meanwhile, if somebody changed it. What was said under it then
    /// counts for nothing.
    fn altered(&self) -> Option<String>;
}

/// A runtime whose spawns are provided for.
pub struct Provisioned {
    inner: Arc<dyn Runtime>,
    provision: Arc<dyn Provision>,
}

impl Provisioned {
    /// `inner`, provided for by `provision`.
    pub fn new(inner: Arc<dyn Runtime>, provision: Arc<dyn Provision>) -> Self {
        Provisioned { inner, provision }
    }
}

impl Runtime for Provisioned {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn fresh_session(&self) -> Option<String> {
        self.inner.fresh_session()
    }

    fn announces_late(&self) -> bool {
        self.inner.announces_late()
    }

    fn preflight(&self, graph: &Graph) -> Preflight {
        self.inner.preflight(graph)
    }

    fn invoke(&self, invocation: &Invocation, cancel: &Cancel, announce: &mut dyn FnMut(&str)) -> Invoked {
        let Provisions { plugin_dirs, held } = match self.provision.before_spawn(invocation, cancel) {
            Ok(provisions) => provisions,
            Err(_) if cancel.is_fired() => return Invoked::unpaid(End::Cancelled),
            Err(why) => {
                let why = format!("the engine could not stage what it runs with: {why}");
                return Invoked::unpaid(End::Broken(why));
            }
        };
        let mut invocation = invocation.clone();
        invocation.policy.plugin_dirs = plugin_dirs;
        let mut invoked = self.inner.invoke(&invocation, cancel, announce);
        if let (End::Replied { .. }, Some(why)) = (&invoked.end, held.and_then(|held| held.altered())) {
            invoked.end = End::Broken(format!("{why} while it ran, so that its reply does not count"));
        }
        invoked
    }

    fn close(&self) {
        self.inner.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NodeId;
    use crate::graph::node::PermissionMode;
    use crate::node::Session;
    use crate::node::policy::Policy;
    use crate::process::Exit;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Keeps which directories it was given, and whether they were held at that moment.
    #[derive(Default)]
    struct Spy {
        seen: Mutex<Vec<(Vec<PathBuf>, bool)>>,
        held: Arc<AtomicBool>,
    }

    impl Runtime for Spy {
        fn name(&self) -> &'static str {
            "spy"
        }
        fn fresh_session(&self) -> Option<String> {
            None
        }
        fn preflight(&self, _: &Graph) -> Preflight {
            Preflight::default()
        }
        fn invoke(&self, invocation: &Invocation, _: &Cancel, _: &mut dyn FnMut(&str)) -> Invoked {
            let held = self.held.load(Ordering::SeqCst);
            self.seen.lock().expect("a lock").push((invocation.policy.plugin_dirs.clone(), held));
            Invoked::unpaid(End::Replied { exit: Exit::Code(0), note: String::new() })
        }
    }

    struct Lent(Arc<AtomicBool>, Option<&'static str>);

    impl Held for Lent {
        fn altered(&self) -> Option<String> {
            self.1.map(str::to_owned)
        }
    }

    impl Drop for Lent {
        fn drop(&mut self) {
            self.0.store(false, Ordering::SeqCst);
        }
    }

    struct Copies {
        held: Arc<AtomicBool>,
        dir: Result<&'static str, &'static str>,
        altered: Option<&'static str>,
    }

    impl Provision for Copies {
        fn before_spawn(&self, _: &Invocation, _: &Cancel) -> Result<Provisions, String> {
            let dir = self.dir.map_err(str::to_owned)?;
            self.held.store(true, Ordering::SeqCst);
            let lent = Lent(Arc::clone(&self.held), self.altered);
            Ok(Provisions { plugin_dirs: vec![dir.into()], held: Some(Box::new(lent)) })
        }
    }

    fn invoke(
        dir: Result<&'static str, &'static str>,
        altered: Option<&'static str>,
    ) -> (End, Vec<(Vec<PathBuf>, bool)>, bool) {
        let spy = Arc::new(Spy::default());
        let provision = Arc::new(Copies { held: Arc::clone(&spy.held), dir, altered });
        let runtime = Provisioned::new(Arc::clone(&spy) as _, provision);
        let invocation = Invocation {
            node: NodeId::parse("a").expect("an id"),
            attempt: 0,
            prompt: String::new(),
            cwd: PathBuf::new(),
            session: Session::Fresh(None),
            permission_mode: PermissionMode::Auto,
            policy: Policy { plugin_dirs: vec!["/run/skills-plugin".into()], ..Policy::default() },
            budget: None,
            agent: None,
            model: None,
            effort: None,
            timeout: std::time::Duration::from_secs(1),
            leave_running: false,
        };
        let invoked = runtime.invoke(&invocation, &Cancel::new().expect("a pipe"), &mut |_| {});
        let seen = spy.seen.lock().expect("a lock").clone();
        (invoked.end, seen, spy.held.load(Ordering::SeqCst))
    }

    #[test]
    fn a_spawn_gets_copies_of_its_own_for_as_long_as_it_runs() {
        let (end, seen, held) = invoke(Ok("/private/1"), None);
        assert_eq!((seen, held), (vec![(vec![PathBuf::from("/private/1")], true)], false));
        assert!(matches!(end, End::Replied { .. }));
    }

    #[test]
    fn what_was_said_under_something_else_than_planned_does_not_count() {
        let (end, seen, held) = invoke(Ok("/private/1"), Some("its agent was changed"));
        assert_eq!((seen.len(), held), (1, false));
        assert!(matches!(end, End::Broken(why) if why.starts_with("its agent was changed while it ran")));
    }

    #[test]
    fn what_cannot_be_staged_is_not_spawned() {
        let (end, seen, _) = invoke(Err("its source has changed"), None);
        assert!(matches!(end, End::Broken(why) if why.contains("the engine") && why.contains("has changed")));
        assert!(seen.is_empty());
    }
}
