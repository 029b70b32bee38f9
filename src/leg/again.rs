//! What a later leg makes of where a run stands (DESIGN "Gate nodes and resume", FACTS 7.9).
//!
//! Pure but for the files that it reads back: payloads of loops, replies of nodes that were judged to fail.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use crate::graph::{Bounds, Graph, NodeId, NodeIx, Work};
use crate::record::standing::Standing;
use crate::record::{Record, RunDir, Snapshot, Usage, Verdict};
use crate::schedule::gate::Decision;
use crate::schedule::machine::Before;
use crate::schedule::nodes::Handed;
use crate::text::lossy::lossy;
use crate::text::money::Cost;

/// What a leg begins with.
#[derive(Debug, Default)]
pub struct Inherited {
    /// The leg, from 1.
    pub leg: u32,
    /// For the machine.
    pub before: Before,
    /// The records as they stood. What the leg does not come to run again stays as it is.
    pub stood: BTreeMap<String, Record>,
    /// The records that stay whatever the leg runs, markers included; what was cleared is carried instead.
    records: BTreeMap<String, Record>,
    /// What passed nodes left for others, by position.
    pub handed: Vec<Option<Handed>>,
    /// What declarers of feedback handed back.
    pub payloads: BTreeMap<NodeId, String>,
    /// What each node that runs again cost before.
    pub carried: BTreeMap<NodeId, (Cost, Usage)>,
    /// What people decided of gates.
    pub decisions: BTreeMap<NodeId, Decision>,
    /// The replies of nodes that were judged to fail, for the prompts that try again.
    pub replies: BTreeMap<NodeId, String>,
    /// The nodes whose failure was cleared, in id order.
    pub cleared: Vec<String>,
    /// Nodes whose attempt died with its engine: it was paid for, nobody knows how much.
    pub lost: Vec<NodeId>,
    /// Things a person should hear of.
    pub warnings: Vec<String>,
}

/// What the leg is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To apply decisions of gates.
    Decide(BTreeMap<NodeId, Decision>),
    /// To try again what failed and run what never ran.
    Retry,
}

/// The gates that wait for a person, in file order; an older snapshot names the first one only.
pub fn waiting(graph: &Graph, standing: &Standing) -> Vec<NodeId> {
    let gate = &standing.snapshot.gate;
    let named = |id: &NodeId| {
        gate.paused_at == id.as_str()
            || gate.waiting.iter().any(|it| it == id.as_str())
            || standing.waiting.contains(id.as_str())
    };
    let undecided = |id: &NodeId| !standing.records.contains_key(id.as_str());
    graph.nodes().iter().map(|node| &node.id).filter(|id| named(id) && undecided(id)).cloned().collect()
}

/// The bounds of a later leg: those of the leg before it, but for what this one was `given`; the next goes on with both.
pub fn bounds(snapshot: &Snapshot, given: Bounds) -> Bounds {
    snapshot.bounds.bounds().overridden_by(given)
}

impl Inherited {
    /// The first leg of a run of `graph`.
    pub fn first(graph: &Graph) -> Self {
        Inherited { leg: 1, handed: vec![None; graph.nodes().len()], ..Inherited::default() }
    }

    /// A later leg of a run that stands at `standing`.
    pub fn of(graph: &Graph, dir: &RunDir, standing: &Standing, purpose: &Purpose) -> Self {
        let mut next = Inherited {
            leg: standing.legs.count + 1,
            handed: vec![None; graph.nodes().len()],
            stood: standing.records.clone(),
            records: standing.records.clone(),
            ..Inherited::default()
        };
        next.decide(standing, purpose);
        if *purpose == Purpose::Retry {
            next.clear_failures(graph, dir, &standing.settled_in);
        }
        next.enter_loops(graph, dir);
        next.carry_unsettled(graph, standing);
        next.settle(graph);
        next.carry_bodies(graph);
        let asks = |id: &str| graph.find(id).is_some_and(|ix| !matches!(graph.node(ix).work, Work::Gate));
        next.before.executions =
            standing.attempts.iter().filter(|(id, _)| asks(id)).map(|(_, count)| count).sum();
        next
    }

    /// Whether anything is left to run.
    pub fn has_work(&self, graph: &Graph) -> bool {
        self.has_work_besides(graph, &[])
    }

    /// Whether anything but the gates `waiting` is left to run.
    pub fn has_work_besides(&self, graph: &Graph, waiting: &[NodeId]) -> bool {
        let before = &self.before;
        let settled = |ix: NodeIx| {
            [&before.passed, &before.rejected, &before.failed].iter().any(|ended| ended.contains(&ix.get()))
        };
        let passed = |ix: &NodeIx| self.before.passed.contains(&ix.get());
        graph.positions().any(|ix| {
            let node = graph.node(ix);
            !settled(ix) && !waiting.contains(&node.id) && node.parents.iter().all(passed)
        })
    }

    fn decide(&mut self, standing: &Standing, purpose: &Purpose) {
        let kept = standing.snapshot.gate.decisions.iter();
        self.decisions =
            kept.filter_map(|(id, word)| Some((NodeId::parse(id)?, Decision::parse(word)?))).collect();
        if let Purpose::Decide(new) = purpose {
            self.decisions.extend(new.clone());
        }
    }

    /// Failures are cleared, but for rejections. A judged failure of a loop's declarer after its rounds takes its whole body
    /// with it, so that the loop begins anew; but for what a leg after that failure ran: there it has begun already. A
    /// declarer that was only ended, or broke, is tried again in its round, on what the body made in it.
    fn clear_failures(&mut self, graph: &Graph, dir: &RunDir, settled_in: &BTreeMap<String, u32>) {
        let is_gate = |id: &str| graph.find(id).is_some_and(|ix| matches!(graph.node(ix).work, Work::Gate));
        let failed: Vec<(String, Record)> = self
            .records
            .iter()
            .filter(|(id, record)| record.verdict == Verdict::Fail && !is_gate(id))
            .map(|(id, record)| (id.clone(), record.clone()))
            .collect();
        // What a command printed is quoted to nobody.
        let asks = |id: &str| graph.find(id).is_some_and(|ix| matches!(graph.node(ix).work, Work::Model(_)));
        for (id, record) in failed {
            if record.judged && asks(&id) {
                self.read_reply(dir, &id);
            }
            let declarer =
                graph.find(&id).filter(|ix| record.round > 0 && graph.node(*ix).feedback.is_some());
            if declarer.is_some() && !record.judged {
                self.records.insert(id.clone(), record.into_marker());
                self.cleared.push(id);
                continue;
            }
            let body = declarer.map(|ix| graph.feedback_body(ix));
            for member in body.unwrap_or_default() {
                let member = graph.node(*member).id.as_str();
                if settled_in.get(member) <= settled_in.get(&id) && self.drop_record(member) && member != id {
                    self.cleared.push(member.to_owned());
                }
            }
            self.drop_record(&id);
            self.cleared.push(id);
        }
        self.cleared.sort();
        self.cleared.dedup();
    }

    /// A record that goes is money that stays. Whether there was one.
    fn drop_record(&mut self, id: &str) -> bool {
        let Some(record) = self.records.remove(id) else { return false };
        if let Some(id) = NodeId::parse(id) {
            self.carried.insert(id, (record.cost(), record.usage));
        }
        true
    }

    fn read_reply(&mut self, dir: &RunDir, id: &str) {
        let Some(node) = NodeId::parse(id) else { return };
        match fs::read(dir.failed(&node)) {
            Ok(bytes) => drop(self.replies.insert(node, lossy(bytes))),
            Err(error) => self.warnings.push(format!("node \"{id}\": its last reply is not quoted: {error}")),
        }
    }

    /// A loop under way goes on in its round: what its body did in earlier ones is superseded.
    fn enter_loops(&mut self, graph: &Graph, dir: &RunDir) {
        for declarer in graph.positions().filter(|ix| graph.node(*ix).feedback.is_some()) {
            let id = &graph.node(declarer).id;
            let Some(marker) = self.records.get(id.as_str()).filter(|record| !record.is_settled()) else {
                continue;
            };
            let round = marker.round;
            self.before.rounds.insert(declarer.get(), round);
            if let Ok(bytes) = fs::read(dir.feedback(id)) {
                self.payloads.insert(id.clone(), lossy(bytes));
            }
            for member in graph.feedback_body(declarer) {
                let id = graph.node(*member).id.as_str();
                if self.records.get(id).is_some_and(|record| record.round < round || !record.is_settled()) {
                    self.drop_record(id);
                }
            }
        }
    }

    /// An attempt that died with its engine was paid for, nobody knows how much.
    fn carry_unsettled(&mut self, graph: &Graph, standing: &Standing) {
        for (id, (cost, usage)) in &standing.unsettled {
            if let Some(id) = NodeId::parse(id) {
                let (before, tokens) = self.carried.remove(&id).unwrap_or_default();
                self.carried.insert(id, (before + *cost, tokens + *usage));
            }
        }
        for (id, attempts) in standing.lost(graph) {
            if !self.records.get(id.as_str()).is_some_and(Record::is_settled) {
                let (before, usage) = self.carried.remove(&id).unwrap_or_default();
                let lost = (0..attempts).map(|_| Cost::UNKNOWN).sum::<Cost>();
                self.lost.push(id.clone());
                self.carried.insert(id, (before + lost, usage));
            }
        }
    }

    /// A record of a loop's body that stays may yet be replaced by one of a later round, which has to carry its cost.
    fn carry_bodies(&mut self, graph: &Graph) {
        for ix in graph.positions().filter(|ix| graph.declarer_of(*ix).is_some()) {
            let id = &graph.node(ix).id;
            if let Some(record) = self.records.get(id.as_str()) {
                self.carried.entry(id.clone()).or_insert((record.cost(), record.usage));
            }
        }
    }

    fn settle(&mut self, graph: &Graph) {
        let mut rounds: HashMap<usize, u32> = std::mem::take(&mut self.before.rounds);
        for ix in graph.positions() {
            let Some(record) = self.records.get(graph.node(ix).id.as_str()) else { continue };
            match record.verdict {
                Verdict::Pass => {
                    self.before.passed.push(ix.get());
                    let path = Some(&record.artifact_path).filter(|path| !path.is_empty());
                    let session = Some(&record.session_id).filter(|session| !session.is_empty());
                    self.handed[ix.get()] =
                        Some(Handed { artifact: path.map(Into::into), session: session.cloned() });
                }
                Verdict::Fail if matches!(graph.node(ix).work, Work::Gate) => {
                    self.before.rejected.push(ix.get());
                }
                Verdict::Fail => self.before.failed.push(ix.get()),
                Verdict::Marker => {}
            }
            if graph.node(ix).feedback.is_some() && record.round > 0 {
                rounds.entry(ix.get()).or_insert(record.round);
            }
        }
        self.before.rounds = rounds;
        self.before.spent = self.records.values().map(Record::cost).sum::<Cost>()
            + self.carried.values().map(|(cost, _)| *cost).sum::<Cost>();
    }
}
