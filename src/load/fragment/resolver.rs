//! Citations within citations: who cites what, how deep, and what each citing node becomes.
//!
//! Depth first, in the order of the file. At each level the fragment's own text is put into its namespace, then filled
//! in, then looked at for citations of its own. What goes wrong at a node is told, the node stays as a placeholder, and
//! the walk goes on.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::body::{Block, Body, Fragment, Key};
use super::citing::{Authored, Citing};
use super::definition::{self, PLACE_KEYS, WORK_KEYS, filled};
use super::library::{Library, Volume};
use super::loops::{self, Exits};
use super::splice::{Bindings, Namespace, Refusal, Room, Splicer, shared};
use super::{CHAIN_MAX, Grant, Resolved, Splice, authored};
use crate::graph::check::Label;
use crate::graph::id::is_segment;
use crate::lint::{self, Place};
use crate::load::citation::{Chain, Step, charged};
use crate::load::decode::described;
use crate::load::problem::{Problem, line_columns};
use crate::load::yaml::{Kind, Node, Span};

/// Puts the fragments of `nodes` in their places.
pub(super) fn resolve(nodes: &mut Vec<Node<'_>>, library: &mut Library<'_>) -> Resolved {
    let items = std::mem::take(nodes);
    let mut resolver = Resolver {
        library,
        authored: Authored::of(items.iter().filter_map(|item| item.get("id").and_then(filled))),
        out: Vec::with_capacity(items.len()),
        exits: Exits::new(),
        broken: Broken::default(),
        told: HashSet::new(),
        room: Room::default(),
        resolved: Resolved::default(),
    };
    for item in items {
        resolver.item(item);
        if resolver.resolved.too_large {
            break;
        }
    }
    resolver.finish(nodes)
}

/// What messages call the node at `at`.
pub(super) fn label(item: &Node<'_>, at: usize) -> Label {
    item.get("id").and_then(filled).map_or(Label::Place(at), |id| Label::Id(id.to_owned()))
}

struct Resolver<'l, 'f, 's> {
    library: &'l mut Library<'f>,
    authored: Authored,
    out: Vec<Node<'s>>,
    exits: Exits,
    broken: Broken,
    /// Fragments whose advice was given.
    told: HashSet<Rc<str>>,
    room: Room,
    resolved: Resolved,
}

/// Fragments that cannot be spliced in, in the order in which they were met, each with who cites it.
#[derive(Default)]
struct Broken {
    position: HashMap<String, usize>,
    list: Vec<(Volume, Vec<Chain>)>,
}

impl<'s> Resolver<'_, '_, 's> {
    /// A node of the graph's own file.
    fn item(&mut self, item: Node<'s>) {
        let at = self.out.len();
        let wrong = authored::check(&item, at, self.library.files(), &mut self.resolved.doubt);
        let is_wrong = !wrong.is_empty();
        let node = label(&item, at);
        self.resolved
            .problems
            .extend(wrong.into_iter().map(|problem| Problem { node: Some(node.clone()), ..problem }));
        if !super::cites(&item) {
            self.out.push(item);
            self.resolved.chains.push(None);
            return;
        }
        let entries = item.entries().unwrap_or_default();
        let entries = entries.into_iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
        let citing =
            Citing { label: node, entries, span: item.span, chain: None, namespace: None, is_alias: false };
        if is_wrong {
            self.placeholder(citing);
        } else {
            self.settle(citing);
        }
    }

    /// A node whose text is final: it is put out, or what it cites is put in its place.
    fn settle(&mut self, citing: Citing<'s>) {
        if citing.get("use").is_none() {
            if let Some((key, _)) = citing.entry("with") {
                let message = "with binds the values of a fragment, and no use: names one";
                self.tell(Problem::at(key.span, message), &citing);
                return self.placeholder(citing);
            }
            let Citing { entries, span, chain, .. } = citing;
            self.out.push(Node { kind: Kind::Mapping(entries), span });
            self.resolved.chains.push(chain);
            return;
        }
        match self.cited(&citing) {
            Ok(cited) => {
                for citing in cited {
                    self.settle(citing);
                    if self.resolved.too_large {
                        return;
                    }
                }
            }
            Err(problems) => {
                problems.into_iter().for_each(|problem| self.tell(problem, &citing));
                self.placeholder(citing);
            }
        }
    }

    /// Stands for what could not be resolved, so that nothing that names it is at fault.
    fn placeholder(&mut self, citing: Citing<'s>) {
        self.resolved.doubt.unresolved(self.out.len());
        let Citing { mut entries, span, chain, .. } = citing;
        entries.retain(|(key, _)| !matches!(key.text(), Some("use" | "with")));
        self.out.push(Node { kind: Kind::Mapping(entries), span });
        self.resolved.chains.push(chain);
    }

    fn tell(&mut self, problem: Problem, citing: &Citing<'_>) {
        let label = citing.label.clone();
        let problem = match &citing.chain {
            Some(chain) => charged(problem, label, chain, self.library.files()),
            None => Problem { node: Some(label), ..problem },
        };
        self.resolved.problems.push(problem);
    }

    /// What a citing node becomes: one node of a fragment of one node, else each of the fragment's.
    fn cited(&mut self, citing: &Citing<'s>) -> Result<Vec<Citing<'s>>, Vec<Problem>> {
        let Some(used) = citing.get("use") else { return Ok(Vec::new()) };
        let Some(fragment) = self.find(citing, used).map_err(|problem| vec![problem])? else {
            // What is wrong with the fragment is told once, with all its citers.
            return Err(Vec::new());
        };
        let bindings = citing.bindings(used, &fragment)?;
        let step = Step {
            node: citing.label.clone(),
            at: used.span,
            fragment: Rc::clone(&fragment.name),
            file: Some(fragment.file),
        };
        let chain = extended(citing.chain.as_ref(), step);
        self.advise(&fragment);
        match &fragment.body {
            Body::One(block) => {
                let one = self.one(citing, &fragment, block, &bindings, chain);
                Ok(vec![one.map_err(|refusal| self.refused(refusal, used, citing, &fragment))?])
            }
            Body::Many { blocks, exit, .. } => {
                let id = citing.joined(used, &fragment, &mut self.authored, self.library.files())?;
                let namespace = Namespace { citer: id.into(), fragment: Rc::clone(&fragment) };
                let many = self.many(citing, &namespace, blocks, &bindings, &chain);
                let many = many.map_err(|refusal| self.refused(refusal, used, citing, &fragment))?;
                self.exits.insert(namespace.citer.to_string(), namespace.id(exit));
                Ok(many)
            }
        }
    }

    /// The fragment that `used` names; `Ok(None)` when it is broken.
    fn find(&mut self, citing: &Citing<'s>, used: &Node<'s>) -> Result<Option<Rc<Fragment>>, Problem> {
        let Some(name) = filled(used) else {
            return Err(Problem::at(
                used.span,
                format!("use takes the name of a fragment, and this is {}", described(used)),
            ));
        };
        if !is_segment(name) {
            return Err(Problem::at(used.span, format!("use names {name:?}, which is no name of a fragment")).hint(
                "a fragment is called by its file's name without .yaml: letters, digits, \".\", \"_\" and \"-\", a letter or digit first",
            ));
        }
        if let Some((key, _)) =
            WORK_KEYS.into_iter().find_map(|word| citing.entry(word)).filter(|_| !citing.is_alias)
        {
            return Err(definition::beside_use(key.text().unwrap_or_default(), key.span));
        }
        let chain = citing.chain.as_deref().unwrap_or_default();
        if let Some(first) = chain.iter().position(|step| &*step.fragment == name) {
            let mut round: Vec<&str> = chain[first..].iter().map(|step| &*step.fragment).collect();
            round.push(name);
            return Err(Problem::at(used.span, format!("fragments cite each other: {}", round.join(" → "))));
        }
        if chain.len() == CHAIN_MAX {
            let names: Vec<&str> = chain.iter().map(|step| &*step.fragment).chain([name]).collect();
            let message = format!(
                "a chain of citations has at most {CHAIN_MAX}, and this is one more: {}",
                names.join(" → ")
            );
            return Err(Problem::at(used.span, message));
        }
        let volume = self.library.find(name);
        match volume {
            Volume::Good(fragment) => {
                if citing.is_alias && matches!(fragment.body, Body::Many { .. }) {
                    let message = format!(
                        "use names {name:?}, which declares several nodes, and a fragment of one node cannot hold them"
                    );
                    return Err(Problem::at(used.span, message)
                        .hint("cite it from the graph, or from a fragment of several nodes"));
                }
                Ok(Some(fragment))
            }
            Volume::Broken { file, .. } => {
                self.broken(name, &volume, citing, used, Some(file));
                Ok(None)
            }
            Volume::Missing(_) => {
                self.broken(name, &volume, citing, used, None);
                Ok(None)
            }
        }
    }

    /// Remembers one more citer of a fragment that cannot be spliced in.
    fn broken(
        &mut self,
        name: &str,
        volume: &Volume,
        citing: &Citing<'s>,
        used: &Node<'s>,
        file: Option<usize>,
    ) {
        let step = Step { node: citing.label.clone(), at: used.span, fragment: name.into(), file };
        let chain = extended(citing.chain.as_ref(), step);
        let Broken { position, list } = &mut self.broken;
        let at = *position.entry(name.to_owned()).or_insert_with(|| {
            list.push((volume.clone(), Vec::new()));
            list.len() - 1
        });
        list[at].1.push(chain);
    }

    fn advise(&mut self, fragment: &Fragment) {
        let is_sound = fragment.unused.is_empty() && fragment.allowance.is_none();
        if is_sound || !self.told.insert(Rc::clone(&fragment.name)) {
            return;
        }
        let files = self.library.files();
        let file = &files.get(fragment.file).name;
        let spans = fragment.unused.iter().map(|(_, span)| *span).chain(fragment.allowance);
        let places = line_columns(files, spans.map(|span| span.start).collect());
        let place = |span: Span| {
            let (line, column) = places.get(&span.start).copied().unwrap_or((1, 1));
            Place { file: file.clone(), line, column }
        };
        let name = &*fragment.name;
        let unused = fragment.unused.iter();
        let unused = unused.map(|(point, span)| lint::unused_substitution(name, point, place(*span)));
        let allowance =
            fragment.allowance.iter().map(|span| lint::allowance_of_a_fragment(name, place(*span)));
        self.resolved.advice.extend(unused.chain(allowance));
    }

    /// The citing node with the fragment's keys beside its own.
    fn one(
        &mut self,
        citing: &Citing<'s>,
        fragment: &Fragment,
        block: &Block,
        bindings: &Bindings<'s>,
        chain: Chain,
    ) -> Result<Citing<'s>, Refusal> {
        let own = citing.entries.iter().filter(|(key, _)| !matches!(key.text(), Some("use" | "with")));
        let mut entries: Vec<(Node<'s>, Node<'s>)> = own.cloned().collect();
        let words: HashSet<&str> = entries.iter().filter_map(|(key, _)| key.text()).collect();
        let mut splicer = Splicer { bindings, namespace: citing.namespace.as_ref(), room: &mut self.room };
        let spliced = splicer.entries(block, &words)?;
        let overrides = block.keys.iter().map(Key::word).filter(|word| words.contains(word));
        let overrides = overrides.map(str::to_owned).collect();
        let grants = grant(block, &spliced, &citing.label).into_iter().collect();
        self.disclose(citing, fragment, chain.len(), Vec::new(), overrides, grants);
        entries.extend(spliced);
        Ok(Citing {
            label: citing.label.clone(),
            entries,
            span: citing.span,
            chain: Some(chain),
            namespace: citing.namespace.clone(),
            is_alias: true,
        })
    }

    /// The fragment's nodes, each with what the citing node decides.
    fn many(
        &mut self,
        citing: &Citing<'s>,
        namespace: &Namespace,
        blocks: &[Block],
        bindings: &Bindings<'s>,
        chain: &Chain,
    ) -> Result<Vec<Citing<'s>>, Refusal> {
        self.room.take_nodes(blocks.len())?;
        let mut cited = Vec::with_capacity(blocks.len());
        let mut grants = Vec::new();
        let inherited = |word: &str| {
            let (key, value) = citing.entry(word)?;
            Some((Rc::new(key.clone()), Rc::new(value.clone())))
        };
        let parents = inherited("depends_on");
        let places: Vec<_> = PLACE_KEYS.into_iter().filter_map(inherited).collect();
        let id_key = Rc::new(Node::scalar("id", citing.span));
        for block in blocks {
            let id = namespace.id(&block.id);
            let mut entries = vec![(shared(&id_key), Node::scalar(id.clone(), block.id_span))];
            let parents = parents.as_ref().filter(|_| block.get("depends_on").is_none());
            entries.extend(parents.map(|(key, value)| (shared(key), shared(value))));
            let mut splicer = Splicer { bindings, namespace: Some(namespace), room: &mut self.room };
            let spliced = splicer.entries(block, &HashSet::new())?;
            let label = Label::Id(id);
            grants.extend(grant(block, &spliced, &label));
            entries.extend(spliced);
            entries.extend(places.iter().map(|(key, value)| (shared(key), shared(value))));
            cited.push(Citing {
                label,
                entries,
                span: block.span,
                chain: Some(chain.clone()),
                namespace: Some(namespace.clone()),
                is_alias: false,
            });
        }
        let ids = blocks.iter().map(|block| namespace.id(&block.id)).collect();
        self.disclose(citing, &namespace.fragment, chain.len(), ids, Vec::new(), grants);
        Ok(cited)
    }

    fn disclose(
        &mut self,
        citing: &Citing<'s>,
        fragment: &Fragment,
        depth: usize,
        nodes: Vec<String>,
        overrides: Vec<String>,
        grants: Vec<Grant>,
    ) {
        self.resolved.splices.push(Splice {
            node: name_of(&citing.label),
            fragment: fragment.name.to_string(),
            file: self.library.files().get(fragment.file).name.clone(),
            description: fragment.description.clone(),
            nodes,
            overrides,
            grants,
            depth,
        });
    }

    fn refused(
        &mut self,
        refusal: Refusal,
        used: &Node<'s>,
        citing: &Citing<'s>,
        fragment: &Fragment,
    ) -> Vec<Problem> {
        let name = &*fragment.name;
        let problem = match refusal {
            Refusal::NotText(bindings) => {
                let told = |(point, bound): (String, _)| {
                    let message = format!(
                        "{point} is bound to what is no text, and the fragment {name:?} puts it into a text"
                    );
                    Problem::at(bound, message).hint("bind a word, a number or a text")
                };
                return bindings.into_iter().map(told).collect();
            }
            Refusal::Undeclared { written, id } => {
                let around = citing.namespace.as_ref().map_or("", |namespace| &*namespace.fragment.name);
                Problem::at(
                    used.span,
                    format!("the fragment {name:?} reads {written}, and {around:?} declares no node {id:?}"),
                )
            }
            Refusal::NoRoom => {
                self.resolved.too_large = true;
                Problem::at(used.span, Room::spent())
            }
        };
        vec![problem]
    }

    /// Leads references to exits, and hands everything back.
    fn finish(self, nodes: &mut Vec<Node<'s>>) -> Resolved {
        let Resolver { library, mut out, exits, broken, mut resolved, .. } = self;
        for (volume, citers) in broken.list {
            match volume {
                Volume::Broken { problems, .. } => {
                    let (problems, citers) = (problems.iter().cloned(), Rc::<[Chain]>::from(citers));
                    resolved
                        .problems
                        .extend(problems.map(|problem| Problem { sites: Rc::clone(&citers), ..problem }));
                }
                Volume::Missing(problem) => resolved.problems.extend(missing(&problem, citers)),
                Volume::Good(_) => {}
            }
        }
        if !exits.is_empty() {
            for (at, node) in out.iter_mut().enumerate() {
                for problem in loops::redirect(node, &exits, library.files()) {
                    resolved.doubt.unresolved(at);
                    let label = label(node, at);
                    resolved.problems.push(match &resolved.chains[at] {
                        Some(chain) => charged(problem, label, chain, library.files()),
                        None => Problem { node: Some(label), ..problem },
                    });
                }
            }
            for splice in &mut resolved.splices {
                splice.nodes.retain(|id| !exits.contains_key(id));
            }
        }
        *nodes = out;
        resolved
    }
}

/// A fragment that is not there, told where it is cited first.
fn missing(problem: &Problem, citers: Vec<Chain>) -> Option<Problem> {
    let first = citers.first()?;
    let last = first.last()?;
    let node = (first.len() == 1).then(|| last.node.clone());
    Some(Problem { span: last.at, node, sites: citers.into(), ..problem.clone() })
}

fn extended(chain: Option<&Chain>, step: Step) -> Chain {
    chain.map_or(&[][..], |chain| chain).iter().cloned().chain([step]).collect()
}

fn name_of(label: &Label) -> String {
    match label {
        Label::Id(id) => id.clone(),
        place => place.to_string(),
    }
}

/// The tools of a node when bindings put them together.
fn grant(block: &Block, spliced: &[(Node<'_>, Node<'_>)], node: &Label) -> Option<Grant> {
    block.get("allowed_tools").filter(|key| key.is_bound)?;
    let (_, value) = spliced.iter().find(|(key, _)| key.text() == Some("allowed_tools"))?;
    let tools = value.items().unwrap_or_default().iter().filter_map(Node::text).map(str::to_owned);
    Some(Grant { node: name_of(node), tools: tools.collect() })
}
