//! The course of a goal that may take several cycles: plan, run, have it judged, and again with what remains (FACTS 8.12).
//!
//! A value with no clock, child and file in it: what came of each cycle goes in, whether another one begins comes out.
//! Everything that was paid stays in the sum, and one unknown price makes the sum unknown.

use crate::plan::assess::Verdict;
use crate::record::RunId;
use crate::text::money::{Cost, Money};
use crate::text::usage::Usage;

/// What something cost, and its tokens.
pub type Spent = (Cost, Usage);

/// What bounds a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many cycles at most, from 1.
    pub cycles: u32,
    /// No cycle after the first begins once this is spent.
    pub spend: Option<Money>,
}

/// A cycle that was planned, run and judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Its run.
    pub run: RunId,
    /// Whether every node of it passed.
    pub has_passed: bool,
    /// What the run cost, its planning included.
    pub ran: Spent,
    /// What judging it cost.
    pub judged: Spent,
    /// The judge's word.
    pub verdict: Verdict,
}

/// How far a cycle came that ended the goal before it was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halfway {
    /// It came to no graph that could be begun.
    Unplanned,
    /// Its run did not come to its end.
    Unfinished,
    /// Its run ended and was not judged: nobody asked, or there was no verdict in the reply.
    Unjudged {
        /// What asking cost.
        judged: Spent,
    },
}

/// The cycle that broke the goal off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// Its run, if it has one.
    pub run: Option<RunId>,
    /// How far it came.
    pub halfway: Halfway,
    /// What planning and running it cost.
    pub ran: Spent,
}

/// What is next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The cycle of this number, from 1.
    Begin {
        /// Its number.
        cycle: u32,
        /// What the judge of the one before found to remain.
        remaining: Option<&'a str>,
    },
    /// Nothing more.
    End(End),
}

/// Why a goal is at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The judge says that it is reached.
    Met,
    /// There were as many cycles as were allowed.
    Exhausted,
    /// What it may spend is spent.
    OverBudget,
    /// Some price is not known, so that nobody can tell whether more may be spent.
    Unmeasurable,
    /// A cycle did not come to a verdict.
    Broken,
}

/// A goal under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    limits: Limits,
    cycles: Vec<Cycle>,
    incomplete: Option<Incomplete>,
}

impl Course {
    /// A goal that nothing was done for yet.
    pub fn new(limits: Limits) -> Self {
        Course { limits, cycles: Vec::new(), incomplete: None }
    }

    /// What is next. A goal that is at its end stays there.
    pub fn next(&self) -> Step<'_> {
        if self.incomplete.is_some() {
            return Step::End(End::Broken);
        }
        let Some(last) = self.cycles.last() else { return Step::Begin { cycle: 1, remaining: None } };
        if last.verdict.is_met {
            return Step::End(End::Met);
        }
        if self.cycles.len() >= self.limits.cycles as usize {
            return Step::End(End::Exhausted);
        }
        let (spent, _) = self.total();
        match self.limits.spend {
            Some(limit) if spent.known >= limit => Step::End(End::OverBudget),
            Some(_) if spent.is_unknown() => Step::End(End::Unmeasurable),
            _ => Step::Begin { cycle: self.number(), remaining: Some(&last.verdict.remaining) },
        }
    }

    /// Takes a cycle that came to its verdict.
    pub fn complete(&mut self, cycle: Cycle) {
        self.cycles.push(cycle);
    }

    /// Takes the cycle that did not, which ends the goal.
    pub fn break_off(&mut self, incomplete: Incomplete) {
        self.incomplete = Some(incomplete);
    }

    /// The cycles that were judged, in order.
    pub fn cycles(&self) -> &[Cycle] {
        &self.cycles
    }

    /// The cycle that broke it off, if one did.
    pub fn incomplete(&self) -> Option<&Incomplete> {
        self.incomplete.as_ref()
    }

    /// What bounds it.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The run that the others are grouped by.
    pub fn first_run(&self) -> Option<&RunId> {
        let first = self.cycles.first().map(|cycle| &cycle.run);
        first.or_else(|| self.incomplete.as_ref().and_then(|cycle| cycle.run.as_ref()))
    }

    /// The number of the cycle after those that were judged.
    pub fn number(&self) -> u32 {
        u32::try_from(self.cycles.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Everything that was paid: planning, runs, judges, that of the cycle which broke it off as well.
    pub fn total(&self) -> Spent {
        let cycles = self.cycles.iter().flat_map(|cycle| [cycle.ran, cycle.judged]);
        let incomplete = self.incomplete.iter().flat_map(|cycle| match cycle.halfway {
            Halfway::Unjudged { judged } => [cycle.ran, judged],
            Halfway::Unplanned | Halfway::Unfinished => [cycle.ran, Spent::default()],
        });
        cycles.chain(incomplete).fold(Spent::default(), |sum, each| (sum.0 + each.0, sum.1 + each.1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(number: usize) -> RunId {
        RunId::parse(&format!("20260102-030405.{number:09}-1")).expect("an id")
    }

    fn cents(cents: u32) -> Spent {
        let cost = Cost::known(Money::from_usd(f64::from(cents) / 100.0).expect("a price"));
        (cost, Usage { input_tokens: cents.into(), ..Usage::default() })
    }

    fn cycle(number: usize, ran: Spent, judged: Spent, is_met: bool) -> Cycle {
        let remaining = if is_met { String::new() } else { format!("after {number}") };
        let verdict = Verdict { is_met, remaining, evidence: String::new() };
        Cycle { run: run(number), has_passed: true, ran, judged, verdict }
    }

    fn course(cycles: u32, spend: Option<u32>) -> Course {
        Course::new(Limits { cycles, spend: spend.map(|spend| cents(spend).0.known) })
    }

    #[test]
    fn a_goal_goes_on_with_what_remains_until_it_is_met() {
        let mut course = course(3, None);
        assert_eq!(course.next(), Step::Begin { cycle: 1, remaining: None });
        course.complete(cycle(1, cents(3), cents(1), false));
        assert_eq!(course.next(), Step::Begin { cycle: 2, remaining: Some("after 1") });
        course.complete(cycle(2, cents(3), cents(1), true));
        assert_eq!(course.next(), Step::End(End::Met));
        assert_eq!(course.total(), cents(8));
    }

    #[test]
    fn auto_66_a_ceiling_is_looked_at_between_cycles() {
        let after = |spend, ran| {
            let mut course = course(3, Some(spend));
            course.complete(cycle(1, ran, cents(1), false));
            match course.next() {
                Step::End(end) => Some(end),
                Step::Begin { .. } => None,
            }
        };
        let unknown = (Cost::UNKNOWN, Usage::default());
        assert_eq!(after(4, cents(3)), Some(End::OverBudget), "reached counts");
        assert_eq!(after(5, cents(3)), None);
        assert_eq!(after(5, unknown), Some(End::Unmeasurable));
        assert_eq!(after(1, unknown), Some(End::OverBudget), "what is known is enough");
        let mut met = course(3, Some(1));
        met.complete(cycle(1, unknown, cents(9), true));
        assert_eq!(met.next(), Step::End(End::Met));
    }

    #[test]
    fn a_cycle_without_a_verdict_ends_it_and_counts() {
        for (halfway, total) in
            [(Halfway::Unplanned, 6), (Halfway::Unfinished, 6), (Halfway::Unjudged { judged: cents(5) }, 11)]
        {
            let mut course = course(3, None);
            course.complete(cycle(1, cents(3), cents(1), false));
            course.break_off(Incomplete { run: Some(run(2)), halfway, ran: cents(2) });
            assert_eq!((course.next(), course.total()), (Step::End(End::Broken), cents(total)));
            assert_eq!(course.first_run(), Some(&run(1)));
        }
    }

    /// What may come of one cycle.
    #[derive(Clone, Debug)]
    enum Fate {
        Judged { met: bool },
        Unjudged,
        Unplanned,
        Unfinished,
    }

    fn fate() -> impl Strategy<Value = (Fate, Option<u32>, Option<u32>)> {
        let fate = prop_oneof![
            8 => proptest::bool::weighted(0.2).prop_map(|met| Fate::Judged { met }),
            1 => Just(Fate::Unjudged),
            1 => Just(Fate::Unplanned),
            1 => Just(Fate::Unfinished),
        ];
        let price = || prop_oneof![6 => (0_u32..200).prop_map(Some), 1 => Just(None)];
        (fate, price(), price())
    }

    proptest! {
        #[test]
        fn a_goal_ends_within_its_bounds_and_forgets_no_cent(
            fates in proptest::collection::vec(fate(), 6),
            cycles in 1_u32..6,
            spend in proptest::option::of(1_u32..600),
        ) {
            let mut course = course(cycles, spend);
            let (mut known, mut unknown, mut begun) = (0, 0, 0);
            let mut broken = false;
            let mut met = false;
            for (fate, ran, judged) in &fates {
                let Step::Begin { cycle: number, remaining } = course.next() else { break };
                begun += 1;
                prop_assert_eq!(number, begun);
                prop_assert_eq!(remaining.is_some(), begun > 1);
                prop_assert!(!met && !broken, "nothing begins after the end");
                if let Some(spend) = spend.filter(|_| begun > 1) {
                    prop_assert!(known < spend && unknown == 0, "{known} of {spend}, {unknown} unknown");
                }
                let price = |cents_: &Option<u32>| cents_.map_or((Cost::UNKNOWN, Usage::default()), cents);
                let mut pay = |paid: &Option<u32>| match paid {
                    Some(paid) => known += paid,
                    None => unknown += 1,
                };
                pay(ran);
                let halfway = match fate {
                    Fate::Judged { met: is_met } => {
                        pay(judged);
                        met = *is_met;
                        course.complete(cycle(begun as usize, price(ran), price(judged), *is_met));
                        continue;
                    }
                    Fate::Unjudged => {
                        pay(judged);
                        Halfway::Unjudged { judged: price(judged) }
                    }
                    Fate::Unplanned => Halfway::Unplanned,
                    Fate::Unfinished => Halfway::Unfinished,
                };
                broken = true;
                course.break_off(Incomplete { run: None, halfway, ran: price(ran) });
            }
            prop_assert!(begun <= cycles);
            let (total, _) = course.total();
            prop_assert_eq!(total.known, cents(known).0.known);
            prop_assert_eq!(total.unknown, unknown);
            let Step::End(end) = course.next() else { panic!("it goes on after {begun} of {cycles}") };
            prop_assert_eq!(end == End::Broken, broken);
            prop_assert_eq!(end == End::Met, met);
        }
    }
}
