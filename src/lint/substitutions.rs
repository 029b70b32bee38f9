//! Substitution points that a fragment declares and does not use. Found while fragments are read; a run says so too.

use super::Sweep;
use super::advice::{Advice, Place, Remarks};

pub(super) const SWEEP: Sweep = Sweep {
    id: "OMG100",
    name: "unused-substitution",
    summary: "a fragment declares a substitution point that nothing in its file uses",
    why: "Whoever cites the fragment must bind the point, and what they bind has no effect. Use it as `{{ with.NAME }}`, or take it \
          out of `substitutions`. Every run of a graph that cites the fragment says so too.",
    bad: "fragment: check\ndescription: runs the tests\nsubstitutions: [target, focus]\nnode:\n  type: command\n  command: \"make {{ \
          with.target }}\"\n",
    good: "fragment: check\ndescription: runs the tests\nsubstitutions: [target]\nnode:\n  type: command\n  command: \"make {{ \
           with.target }}\"\n",
    look: None,
};

/// The remark on the point `point` of a fragment, which stands at `place`.
pub fn unused_substitution(fragment: &str, point: &str, place: Place) -> Advice {
    let mut remarks = Remarks::of(&SWEEP);
    let detail = format!(
        "the fragment {fragment:?} declares {point:?} and uses it nowhere: what binds it has no effect"
    );
    remarks.graph("substitutions", detail).place = Some(place);
    remarks.into_list().remove(0)
}
