//! Examples and properties of the schedule: random plans, random outcomes, nothing run twice, nothing lost.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const FREE: Bill = Bill { cost: Cost::ZERO, executions: 0 };
const FAILED: Ending = Ending::Failed { judged: false };
const JUDGED: Ending = Ending::Failed { judged: true };

fn plan(parents: &[&[UnitIx]], on_fail: OnFail) -> Plan {
    let units = parents.iter().map(|list| Unit { parents: list.to_vec(), ..Unit::default() }).collect();
    Plan { units, arcs: Vec::new(), on_fail, bounds: Bounds::default() }
}

fn fresh(plan: Plan) -> Machine {
    Machine::new(plan, &Before::default())
}

/// Starts whatever is ready, as if slots never ran out.
fn start_all(machine: &mut Machine) -> Vec<UnitIx> {
    std::iter::from_fn(|| match machine.step(Event::SlotFree) {
        Some(Action::Start(unit)) => Some(unit),
        _ => None,
    })
    .collect()
}

fn settle(machine: &mut Machine, unit: UnitIx, ending: Ending) -> Option<Action> {
    machine.step(Event::Settled(unit, ending, FREE))
}

fn usd(amount: f64) -> Money {
    Money::from_usd(amount).expect("a price")
}

#[test]
fn units_start_in_file_order_as_they_become_ready() {
    let mut machine = fresh(plan(&[&[3], &[], &[1], &[]], OnFail::Halt));
    assert_eq!(start_all(&mut machine), [1, 3]);
    settle(&mut machine, 1, Ending::Passed);
    settle(&mut machine, 3, Ending::Passed);
    assert_eq!(start_all(&mut machine), [2, 0]);
}

#[test]
fn a_unit_that_passed_before_never_runs_again() {
    let before = Before { passed: vec![0], ..Before::default() };
    let mut machine = Machine::new(plan(&[&[], &[0], &[1]], OnFail::Halt), &before);
    assert_eq!(start_all(&mut machine), [1]);
}

#[test]
fn e2_a_halt_cancels_what_runs_and_waits_for_it() {
    let mut machine = fresh(plan(&[&[], &[], &[0], &[1]], OnFail::Halt));
    assert_eq!(start_all(&mut machine), [0, 1]);
    assert_eq!(settle(&mut machine, 0, FAILED), Some(Action::Cancel(Blame::Halt(0))));
    assert!(!machine.is_done());
    assert_eq!(machine.step(Event::SlotFree), None);
    assert_eq!(settle(&mut machine, 1, Ending::Cancelled), None);
    assert!(machine.is_done());
    let closing = machine.close();
    assert_eq!(closing.outcome, Outcome::Failed { halted: Some(0), failed: vec![0] });
    assert_eq!(closing.skipped, [(2, Blame::Ancestor(0)), (3, Blame::Halt(0))]);
}

#[test]
fn e3_continue_skips_only_the_failed_subtree() {
    let mut machine = fresh(plan(&[&[], &[], &[0], &[2], &[3], &[1]], OnFail::Continue));
    assert_eq!(start_all(&mut machine), [0, 1]);
    assert_eq!(settle(&mut machine, 0, FAILED), None);
    settle(&mut machine, 1, Ending::Passed);
    assert_eq!(start_all(&mut machine), [5]);
    settle(&mut machine, 5, Ending::Passed);
    assert!(machine.is_done());
    let closing = machine.close();
    assert_eq!(closing.outcome, Outcome::Failed { halted: None, failed: vec![0] });
    assert_eq!(closing.skipped, [2, 3, 4].map(|unit| (unit, Blame::Ancestor(0))));
}

#[test]
fn a_stop_that_comes_when_all_is_done_changes_nothing() {
    let mut machine = fresh(plan(&[&[]], OnFail::Halt));
    start_all(&mut machine);
    assert_eq!(machine.step(Event::Stop), Some(Action::Cancel(Blame::Stop)));
    settle(&mut machine, 0, Ending::Passed);
    assert_eq!(machine.close().outcome, Outcome::Passed);
}

#[test]
fn what_cannot_be_recorded_does_not_start_and_what_runs_goes_on() {
    let mut machine = fresh(plan(&[&[], &[], &[0], &[]], OnFail::Halt));
    assert_eq!(machine.step(Event::SlotFree), Some(Action::Start(0)));
    assert_eq!(start_all(&mut machine), [1, 3]);
    machine.step(Event::NotStarted(3));
    machine.step(Event::NotStarted(1));
    assert!(!machine.is_done());
    assert_eq!(settle(&mut machine, 0, Ending::Passed), None);
    assert_eq!(start_all(&mut machine), [] as [UnitIx; 0]);
    assert!(machine.is_done());
    let closing = machine.close();
    assert_eq!(closing.outcome, Outcome::Unrecorded { failed: vec![] });
    assert_eq!(closing.skipped, [1, 2, 3].map(|unit| (unit, Blame::Unrecorded)));
}

#[test]
fn the_holder_of_a_resource_is_waited_for() {
    let mut plan = plan(&[&[], &[], &[]], OnFail::Halt);
    plan.units[0].exclusive = Some(7);
    plan.units[1].exclusive = Some(7);
    let mut machine = fresh(plan);
    assert_eq!(start_all(&mut machine), [0, 2]);
    settle(&mut machine, 0, Ending::Passed);
    assert_eq!(start_all(&mut machine), [1]);
}

#[test]
fn d2_a_waiting_gate_holds_back_its_descendants_only() {
    // 0 → gates 1, 2 → 3, 4; 5 stands alone.
    let mut machine = fresh(plan(&[&[], &[0], &[0], &[1], &[2], &[]], OnFail::Halt));
    assert_eq!(start_all(&mut machine), [0, 5]);
    settle(&mut machine, 0, Ending::Passed);
    assert_eq!(start_all(&mut machine), [1, 2]);
    settle(&mut machine, 1, Ending::Waiting);
    settle(&mut machine, 2, Ending::Waiting);
    assert!(!machine.is_done());
    settle(&mut machine, 5, Ending::Passed);
    assert!(machine.is_done());
    let closing = machine.close();
    assert_eq!(closing.outcome, Outcome::Paused(Pause { gates: vec![1, 2], ..Pause::default() }));
    assert_eq!(closing.skipped, []);
}

#[test]
fn a_halt_outranks_a_waiting_gate() {
    let mut machine = fresh(plan(&[&[], &[], &[0]], OnFail::Halt));
    start_all(&mut machine);
    settle(&mut machine, 0, Ending::Waiting);
    settle(&mut machine, 1, FAILED);
    assert_eq!(machine.close().outcome, Outcome::Failed { halted: Some(1), failed: vec![1] });
    assert_eq!(machine.close().skipped, [(0, Blame::Halt(1)), (2, Blame::Halt(1))]);
}

#[test]
fn a_rejected_gate_skips_its_subtree_and_never_halts() {
    let mut machine = fresh(plan(&[&[], &[0], &[]], OnFail::Halt));
    assert_eq!(start_all(&mut machine), [0, 2]);
    assert_eq!(settle(&mut machine, 0, Ending::Rejected), None);
    settle(&mut machine, 2, Ending::Passed);
    let closing = machine.close();
    assert_eq!(closing.outcome, Outcome::Failed { halted: None, failed: vec![0] });
    assert_eq!(closing.skipped, [(1, Blame::Rejected(0))]);
}

#[test]
fn what_failed_in_an_earlier_leg_is_no_rejection() {
    let before = Before { rejected: vec![0], failed: vec![1], ..Before::default() };
    let mut machine = Machine::new(plan(&[&[], &[], &[0], &[1], &[2, 3]], OnFail::Continue), &before);
    assert_eq!(start_all(&mut machine), Vec::<UnitIx>::new());
    let closing = machine.close();
    assert_eq!(closing.outcome, Outcome::Failed { halted: None, failed: vec![0, 1] });
    assert_eq!(closing.skipped, [(2, Blame::Rejected(0)), (3, Blame::Ancestor(1)), (4, Blame::Rejected(0))]);
}

#[test]
fn a_limit_drains_and_can_be_lifted() {
    let mut machine = fresh(plan(&[&[], &[], &[0], &[1]], OnFail::Halt));
    assert_eq!(start_all(&mut machine), [0, 1]);
    settle(&mut machine, 0, Ending::Limited);
    settle(&mut machine, 1, Ending::Passed);
    assert_eq!(start_all(&mut machine), Vec::<UnitIx>::new());
    assert!(machine.is_done() && machine.waits_for_limit());
    let paused = Outcome::Paused(Pause { limited: vec![0], ..Pause::default() });
    assert_eq!(machine.close().outcome, paused);
    machine.step(Event::Refilled);
    assert_eq!(start_all(&mut machine), [0, 3]);
}

/// impl 0 → review 1 (declares the arc) → publish 2.
fn loop_plan(max: u32) -> Plan {
    let mut plan = plan(&[&[], &[0], &[1]], OnFail::Halt);
    plan.arcs.push(Arc { declarer: 1, body: vec![0, 1], max });
    plan
}

#[test]
fn a_judged_failure_runs_the_body_again_until_its_rounds_are_spent() {
    let mut machine = fresh(loop_plan(2));
    for round in 1..=2 {
        assert_eq!(start_all(&mut machine), [0]);
        settle(&mut machine, 0, Ending::Passed);
        assert_eq!(start_all(&mut machine), [1]);
        assert_eq!(settle(&mut machine, 1, JUDGED), Some(Action::Fire { declarer: 1, round }));
        assert_eq!((machine.round(0), machine.round(1), machine.round(2)), (round, round, 0));
    }
    assert_eq!(start_all(&mut machine), [0]);
    settle(&mut machine, 0, Ending::Passed);
    start_all(&mut machine);
    assert_eq!(settle(&mut machine, 1, JUDGED), Some(Action::Cancel(Blame::Halt(1))));
}

#[test]
fn only_a_judged_failure_fires_and_a_pass_ends_the_loop() {
    let mut machine = fresh(loop_plan(2));
    start_all(&mut machine);
    settle(&mut machine, 0, Ending::Passed);
    start_all(&mut machine);
    settle(&mut machine, 1, JUDGED);
    start_all(&mut machine);
    settle(&mut machine, 0, Ending::Passed);
    start_all(&mut machine);
    settle(&mut machine, 1, Ending::Passed);
    assert_eq!(start_all(&mut machine), [2]);
    let mut machine = fresh(loop_plan(2));
    start_all(&mut machine);
    settle(&mut machine, 0, Ending::Passed);
    start_all(&mut machine);
    assert_eq!(settle(&mut machine, 1, FAILED), Some(Action::Cancel(Blame::Halt(1))));
}

#[test]
fn a_resumed_loop_goes_on_in_its_round() {
    let before = Before { rounds: HashMap::from([(1, 1)]), ..Before::default() };
    let mut machine = Machine::new(loop_plan(2), &before);
    assert_eq!((start_all(&mut machine), machine.round(0)), (vec![0], 1));
    settle(&mut machine, 0, Ending::Passed);
    start_all(&mut machine);
    assert_eq!(settle(&mut machine, 1, JUDGED), Some(Action::Fire { declarer: 1, round: 2 }));
}

fn paid(parents: &[&[UnitIx]], may_spend: f64, bounds: Bounds) -> Plan {
    let mut plan = plan(parents, OnFail::Halt);
    for unit in &mut plan.units {
        (unit.may_spend, unit.executions) = (Some(usd(may_spend)), 1);
    }
    plan.bounds = bounds;
    plan
}

fn bill(cost: f64) -> Bill {
    Bill { cost: Cost::known(usd(cost)), executions: 1 }
}

#[test]
fn a_unit_starts_only_when_the_cap_leaves_room_for_it() {
    let bounds = Bounds { spend: Some(usd(1.0)), ..Bounds::default() };
    let mut machine = fresh(paid(&[&[], &[], &[]], 0.4, bounds));
    // Two may spend 0.8 together; the third waits to see what they did.
    assert_eq!(start_all(&mut machine), [0, 1]);
    machine.step(Event::Settled(0, Ending::Passed, bill(0.1)));
    assert_eq!(start_all(&mut machine), [2]);
    machine.step(Event::Settled(1, Ending::Passed, bill(0.4)));
    machine.step(Event::Settled(2, Ending::Passed, bill(0.4)));
    assert_eq!(machine.close().outcome, Outcome::Passed);
}

#[test]
fn a_reached_cap_pauses() {
    let bounds = Bounds { spend: Some(usd(1.0)), ..Bounds::default() };
    let mut machine = fresh(paid(&[&[], &[0]], 0.6, bounds));
    assert_eq!(start_all(&mut machine), [0]);
    machine.step(Event::Settled(0, Ending::Passed, bill(0.6)));
    assert_eq!(start_all(&mut machine), Vec::<UnitIx>::new());
    assert!(machine.is_done());
    let Outcome::Paused(pause) = machine.close().outcome else { panic!("not paused") };
    assert_eq!((pause.cap, pause.short.map(|short| short.cap)), (Some(Cap::Spend), Some(Cap::Spend)));
    let bounds = Bounds { executions: Some(1), ..Bounds::default() };
    let mut machine = fresh(paid(&[&[], &[0]], 0.0, bounds));
    start_all(&mut machine);
    machine.step(Event::Settled(0, Ending::Passed, bill(9.0)));
    start_all(&mut machine);
    assert!(matches!(machine.close().outcome, Outcome::Paused(Pause { cap: Some(Cap::Executions), .. })));
}

#[test]
fn what_never_fits_is_passed_over_and_what_may_fit_later_is_not_overtaken() {
    let plan = |cap| {
        let mut plan = plan(&[&[], &[], &[]], OnFail::Halt);
        for (unit, executions) in [3, 6, 1].into_iter().enumerate() {
            plan.units[unit].executions = executions;
        }
        plan.bounds.executions = Some(cap);
        plan
    };
    let took = |executions| Bill { executions, ..FREE };
    let mut machine = fresh(plan(5));
    assert_eq!(start_all(&mut machine), [0, 2], "unit 1 never fits");
    machine.step(Event::Settled(0, Ending::Passed, took(1)));
    machine.step(Event::Settled(2, Ending::Passed, took(1)));
    assert_eq!(start_all(&mut machine), [] as [UnitIx; 0]);
    let Outcome::Paused(pause) = machine.close().outcome else { panic!("not paused") };
    let short = pause.short.expect("a unit that did not fit");
    assert_eq!((short.unit, short.executions, short.executed), (1, 6, 2));

    let mut machine = fresh(plan(8));
    assert_eq!(start_all(&mut machine), [0], "unit 1 fits once unit 0 has left some of its own");
    machine.step(Event::Settled(0, Ending::Passed, took(1)));
    assert_eq!(start_all(&mut machine), [1, 2]);
}

#[test]
fn time_that_is_up_drains() {
    let mut machine = fresh(plan(&[&[], &[0]], OnFail::Halt));
    start_all(&mut machine);
    assert_eq!(machine.step(Event::OutOfTime), None);
    settle(&mut machine, 0, Ending::Passed);
    assert_eq!(start_all(&mut machine), Vec::<UnitIx>::new());
    assert!(matches!(machine.close().outcome, Outcome::Paused(Pause { cap: Some(Cap::Wall), .. })));
}

/// What a unit will do each time it runs; the last repeats.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Pass,
    Fail,
    FailJudged,
    Reject,
    Wait,
    Limit,
}

/// A random run: a plan, and what each unit will do.
#[derive(Clone, Debug)]
struct Script {
    plan: Plan,
    doings: Vec<Vec<Doing>>,
    slots: usize,
    /// Which of the running units settles next, modulo how many run.
    picks: Vec<usize>,
    /// Stop after this many settlements.
    stop_after: Option<usize>,
    /// After this many settlements no start can be recorded.
    lose_after: Option<usize>,
}

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        16 => Just(Doing::Pass),
        2 => Just(Doing::Fail),
        2 => Just(Doing::FailJudged),
        1 => Just(Doing::Reject),
        1 => Just(Doing::Wait),
        1 => Just(Doing::Limit),
    ]
}

fn scripts() -> impl Strategy<Value = Script> {
    (1usize..30).prop_flat_map(|count| {
        let units = (0..count)
            .map(|unit| {
                let parents = proptest::collection::hash_set(0..unit.max(1), 0..=unit.min(3));
                (parents, proptest::option::weighted(0.2, 0usize..3)).prop_map(move |(parents, exclusive)| {
                    let mut parents: Vec<usize> = parents.into_iter().filter(|&p| p < unit).collect();
                    parents.sort_unstable();
                    Unit { parents, exclusive, ..Unit::default() }
                })
            })
            .collect::<Vec<_>>();
        let doings = proptest::collection::vec(proptest::collection::vec(doing(), 1..4), count);
        let picks = proptest::collection::vec(0usize..64, 8);
        let (stop, lose) =
            (proptest::option::weighted(0.2, 0..count), proptest::option::weighted(0.2, 0..count));
        let arcs = proptest::collection::vec((0..count, 0..count, 1u32..3), 0..4);
        (units, doings, 1usize..10, picks, proptest::bool::ANY, stop, lose, arcs).prop_map(
            |(units, doings, slots, picks, halts, stop_after, lose_after, wanted)| {
                let on_fail = if halts { OnFail::Halt } else { OnFail::Continue };
                let arcs = arcs_of(&units, &wanted);
                let plan = Plan { units, arcs, on_fail, bounds: Bounds::default() };
                Script { plan, doings, slots, picks, stop_after, lose_after }
            },
        )
    })
}

/// The wanted arcs that the rules of feedback allow: backward, disjoint, left only through the declarer.
fn arcs_of(units: &[Unit], wanted: &[(usize, usize, u32)]) -> Vec<Arc> {
    let mut arcs: Vec<Arc> = Vec::new();
    let above = |unit: usize| {
        let (mut seen, mut queue) = (HashSet::new(), vec![unit]);
        while let Some(next) = queue.pop() {
            queue.extend(units[next].parents.iter().copied().filter(|&parent| seen.insert(parent)));
        }
        seen
    };
    for &(target, declarer, max) in wanted {
        let ancestors = above(declarer);
        if !ancestors.contains(&target) {
            continue;
        }
        let body: Vec<usize> = (0..units.len())
            .filter(|&unit| {
                unit == target
                    || unit == declarer
                    || (ancestors.contains(&unit) && above(unit).contains(&target))
            })
            .collect();
        let inside = |unit: &usize| body.contains(unit);
        let leaks = units.iter().enumerate().any(|(unit, spec)| {
            !inside(&unit) && spec.parents.iter().any(|parent| inside(parent) && *parent != declarer)
        });
        if !leaks && !arcs.iter().any(|arc| arc.body.iter().any(inside)) {
            arcs.push(Arc { declarer, body, max });
        }
    }
    arcs
}

/// What a run of a script showed.
#[derive(Default)]
struct Seen {
    starts: HashMap<UnitIx, usize>,
    last: HashMap<UnitIx, Ending>,
    fires: HashMap<UnitIx, u32>,
    cancels: Vec<Blame>,
    /// Whether a start could not be recorded.
    lost: bool,
}

fn ending(script: &Script, seen: &Seen, unit: UnitIx) -> Ending {
    let doings = &script.doings[unit];
    let turn = seen.starts[&unit].min(doings.len()) - 1;
    match doings[turn] {
        _ if !seen.cancels.is_empty() => Ending::Cancelled,
        Doing::Pass => Ending::Passed,
        Doing::Fail => FAILED,
        Doing::FailJudged => JUDGED,
        Doing::Reject => Ending::Rejected,
        Doing::Wait => Ending::Waiting,
        Doing::Limit => Ending::Limited,
    }
}

fn play(script: &Script) -> (Machine, Seen) {
    let mut machine = fresh(script.plan.clone());
    let (mut seen, mut running, mut settled) = (Seen::default(), Vec::new(), 0);
    loop {
        while running.len() < script.slots {
            let Some(Action::Start(unit)) = machine.step(Event::SlotFree) else { break };
            for parent in &script.plan.units[unit].parents {
                assert_eq!(seen.last.get(parent), Some(&Ending::Passed), "{unit} before {parent}");
            }
            let held = |other: &UnitIx| script.plan.units[*other].exclusive;
            assert!(held(&unit).is_none() || !running.iter().any(|other| held(other) == held(&unit)));
            assert!(!running.contains(&unit), "{unit} runs twice at once");
            assert!(seen.cancels.is_empty(), "{unit} starts after the end began");
            assert!(!seen.lost, "{unit} starts though that cannot be recorded");
            if script.lose_after.is_some_and(|after| settled >= after) {
                let others = script.slots - running.len() - 1;
                let offered = std::iter::repeat_with(|| machine.step(Event::SlotFree)).take(others).flatten();
                let offered: Vec<Action> = offered.collect();
                for action in offered.iter().rev() {
                    let Action::Start(unit) = action else { panic!("{action:?}") };
                    machine.step(Event::NotStarted(*unit));
                }
                machine.step(Event::NotStarted(unit));
                seen.lost = true;
                break;
            }
            *seen.starts.entry(unit).or_default() += 1;
            running.push(unit);
        }
        if script.stop_after == Some(settled)
            && let Some(Action::Cancel(blame)) = machine.step(Event::Stop)
        {
            seen.cancels.push(blame);
        }
        if running.is_empty() {
            break;
        }
        let unit = running.swap_remove(script.picks[settled % script.picks.len()] % running.len());
        let end = ending(script, &seen, unit);
        seen.last.insert(unit, end);
        match settle(&mut machine, unit, end) {
            Some(Action::Cancel(blame)) => seen.cancels.push(blame),
            Some(Action::Fire { declarer, round }) => {
                assert_eq!((declarer, end), (unit, JUDGED));
                let fires = seen.fires.entry(unit).or_default();
                *fires += 1;
                assert_eq!(round, *fires);
                let arc = script.plan.arcs.iter().find(|arc| arc.declarer == unit).expect("an arc");
                assert!(*fires <= arc.max, "more rounds than allowed");
                for member in &arc.body {
                    seen.last.remove(member);
                }
            }
            _ => {}
        }
        settled += 1;
    }
    assert!(machine.is_done());
    (machine, seen)
}

fn has_above(script: &Script, seen: &Seen, unit: UnitIx, is: &dyn Fn(Ending) -> bool) -> bool {
    script.plan.units[unit].parents.iter().any(|&parent| {
        seen.last.get(&parent).is_some_and(|end| is(*end)) || has_above(script, seen, parent, is)
    })
}

fn has_failed(end: Ending) -> bool {
    matches!(end, Ending::Failed { .. })
}

fn stops_below(end: Ending) -> bool {
    !matches!(end, Ending::Passed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn a_unit_runs_once_for_each_round_and_is_accounted_for(script in scripts()) {
        let (machine, seen) = play(&script);
        let closing = machine.close();
        for (unit, starts) in &seen.starts {
            let arc = script.plan.arcs.iter().find(|arc| arc.body.contains(unit));
            let rounds = arc.map_or(0, |arc| seen.fires.get(&arc.declarer).copied().unwrap_or(0));
            prop_assert!(*starts <= rounds as usize + 1, "{unit} started {starts} times in {rounds} rounds");
        }
        let settled = |unit: &UnitIx| seen.last.get(unit).is_some_and(|end| !matches!(end, Ending::Waiting | Ending::Limited));
        let skipped: HashSet<UnitIx> = closing.skipped.iter().map(|(unit, _)| *unit).collect();
        prop_assert!(skipped.iter().all(|unit| !settled(unit)));
        if !matches!(closing.outcome, Outcome::Paused(_)) {
            let units = 0..script.plan.units.len();
            prop_assert!(units.clone().all(|unit| settled(&unit) != skipped.contains(&unit)));
        }
        prop_assert!(seen.cancels.len() <= 1);
    }

    #[test]
    fn the_outcome_follows_the_order_of_precedence(script in scripts()) {
        let (machine, seen) = play(&script);
        let any = |wanted: &dyn Fn(Ending) -> bool| seen.last.values().any(|end| wanted(*end));
        let all_passed = (0..script.plan.units.len()).all(|unit| seen.last.get(&unit) == Some(&Ending::Passed));
        let paused = any(&|end| matches!(end, Ending::Waiting | Ending::Limited));
        match (machine.close().outcome, seen.cancels.first()) {
            (Outcome::Passed, _) => prop_assert!(all_passed),
            (Outcome::Failed { halted: Some(unit), .. }, blame) => prop_assert_eq!(blame, Some(&Blame::Halt(unit))),
            (Outcome::Stopped, blame) => prop_assert_eq!(blame, Some(&Blame::Stop)),
            (Outcome::Paused(pause), blame) => {
                prop_assert!(paused && blame.is_none() && !seen.lost);
                for unit in pause.gates {
                    prop_assert_eq!(seen.last.get(&unit), Some(&Ending::Waiting));
                }
            }
            (Outcome::Unrecorded { .. }, blame) => prop_assert!(seen.lost && blame.is_none() && !all_passed),
            (Outcome::Failed { halted: None, failed }, blame) => {
                prop_assert!(!seen.lost && blame.is_none() && !paused && !failed.is_empty());
            }
        }
    }

    #[test]
    fn skips_name_the_true_cause(script in scripts()) {
        let (machine, seen) = play(&script);
        for (unit, blame) in machine.close().skipped {
            match blame {
                Blame::Ancestor(failed) => {
                    prop_assert!(seen.last.get(&failed).copied().is_some_and(has_failed));
                    prop_assert!(has_above(&script, &seen, unit, &has_failed));
                }
                Blame::Rejected(gate) => prop_assert_eq!(seen.last.get(&gate), Some(&Ending::Rejected)),
                Blame::Unrecorded => prop_assert!(seen.lost && seen.cancels.is_empty()),
                other => prop_assert_eq!(seen.cancels.first(), Some(&other)),
            }
        }
    }

    #[test]
    fn a_later_leg_names_the_same_causes(script in scripts()) {
        let (_, seen) = play(&script);
        let that = |is: &dyn Fn(Ending) -> bool| {
            let mut units: Vec<UnitIx> = seen.last.iter().filter(|(_, end)| is(**end)).map(|(unit, _)| *unit).collect();
            units.sort_unstable();
            units
        };
        let before = Before {
            passed: that(&|end| end == Ending::Passed),
            rejected: that(&|end| end == Ending::Rejected),
            failed: that(&has_failed),
            ..Before::default()
        };
        for (unit, blame) in Machine::new(script.plan.clone(), &before).close().skipped {
            match blame {
                Blame::Ancestor(failed) => prop_assert!(before.failed.contains(&failed)),
                Blame::Rejected(gate) => prop_assert!(before.rejected.contains(&gate)),
                other => prop_assert!(false, "{unit} is owed to {other:?}"),
            }
        }
    }

    #[test]
    fn without_an_early_end_everything_runs_that_nothing_blocks(mut script in scripts()) {
        script.plan.on_fail = OnFail::Continue;
        (script.stop_after, script.lose_after) = (None, None);
        for doings in &mut script.doings {
            for doing in doings.iter_mut().filter(|doing| matches!(doing, Doing::Limit)) {
                *doing = Doing::Pass;
            }
        }
        let (_, seen) = play(&script);
        for unit in 0..script.plan.units.len() {
            let blocked = has_above(&script, &seen, unit, &stops_below);
            prop_assert_eq!(seen.last.contains_key(&unit), !blocked);
        }
    }
}
