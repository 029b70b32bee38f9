//! Where everything stands: layers by the longest path, the order in a layer by barycentres, rows as straight as room
//! allows.
//!
//! An edge that crosses layers is held apart from the nodes there by a stand-in in each. Every step is linear in nodes,
//! edges and stand-ins but for the sorting of layers, and the number of sweeps is fixed.

use super::Drawing;

/// More stand-ins than this are left out, and long edges drawn straight: nobody follows one across such a picture.
const STAND_INS_MAX: usize = 20_000;
/// How often the order in the layers is improved, once down and once up each time.
const ORDER_SWEEPS: usize = 4;
/// How often the rows are.
const ROW_SWEEPS: usize = 4;
/// Half the room of a node and of a stand-in, in rows.
const HALF: [f64; 2] = [0.5, 0.3];

/// A node, or the stand-in of an edge.
#[derive(Default)]
struct Place {
    layer: usize,
    /// The places before and after it, in the layers beside its own; further ones where stand-ins are left out.
    before: Vec<usize>,
    after: Vec<usize>,
    stands_in: bool,
    row: f64,
}

/// Gives everything in `drawing` its place.
pub(super) fn place(drawing: &mut Drawing) {
    let layers = layers(drawing);
    let mut places: Vec<Place> =
        layers.iter().map(|layer| Place { layer: *layer, ..Place::default() }).collect();
    let chains = chain(drawing, &mut places);
    let mut by_layer: Vec<Vec<usize>> = vec![Vec::new(); layers.iter().max().map_or(0, |last| last + 1)];
    for (at, place) in places.iter().enumerate() {
        by_layer[place.layer].push(at);
    }
    order(&places, &mut by_layer);
    rows(&mut places, &by_layer);
    drawing.layers = by_layer.len();
    for layer in &by_layer {
        let nodes = layer.iter().filter(|at| !places[**at].stands_in);
        for (position, at) in nodes.enumerate() {
            let spot = &mut drawing.nodes[*at];
            (spot.layer, spot.position, spot.row) = (places[*at].layer, position, places[*at].row);
        }
    }
    for (edge, chain) in drawing.edges.iter_mut().zip(chains) {
        edge.via = chain.into_iter().map(|at| places[at].row).collect();
    }
}

/// The longest way from a root to each node.
fn layers(drawing: &Drawing) -> Vec<usize> {
    let count = drawing.nodes.len();
    let (mut missing, mut after) = (vec![0_usize; count], vec![Vec::new(); count]);
    for edge in &drawing.edges {
        missing[edge.to] += 1;
        after[edge.from].push(edge.to);
    }
    let mut layers = vec![0; count];
    let mut ready: Vec<usize> = (0..count).filter(|at| missing[*at] == 0).collect();
    while let Some(at) = ready.pop() {
        for &next in &after[at] {
            layers[next] = layers[next].max(layers[at] + 1);
            missing[next] -= 1;
            if missing[next] == 0 {
                ready.push(next);
            }
        }
    }
    layers
}

/// Joins the places along each edge, with stand-ins where it crosses layers; returns the stand-ins by edge.
fn chain(drawing: &Drawing, places: &mut Vec<Place>) -> Vec<Vec<usize>> {
    let span = |from: usize, to: usize, places: &[Place]| places[to].layer - places[from].layer - 1;
    let needed: usize = drawing.edges.iter().map(|edge| span(edge.from, edge.to, places)).sum();
    let mut chains = Vec::with_capacity(drawing.edges.len());
    for edge in &drawing.edges {
        let length = if needed > STAND_INS_MAX { 0 } else { span(edge.from, edge.to, places) };
        let (mut last, mut chain) = (edge.from, Vec::with_capacity(length));
        for _ in 0..length {
            let next = places.len();
            places.push(Place { layer: places[last].layer + 1, stands_in: true, ..Place::default() });
            join(places, last, next);
            chain.push(next);
            last = next;
        }
        join(places, last, edge.to);
        chains.push(chain);
    }
    chains
}

fn join(places: &mut [Place], from: usize, to: usize) {
    places[from].after.push(to);
    places[to].before.push(from);
}

/// Orders each layer by where its neighbours stand, from the first layer to the last and back.
fn order(places: &[Place], by_layer: &mut [Vec<usize>]) {
    let mut standing = vec![0.0; places.len()];
    by_layer.iter().for_each(|layer| number(layer, &mut standing));
    for _ in 0..ORDER_SWEEPS {
        for layer in by_layer.iter_mut().skip(1) {
            sort(layer, &mut standing, |at| &places[at].before);
        }
        for layer in by_layer.iter_mut().rev().skip(1) {
            sort(layer, &mut standing, |at| &places[at].after);
        }
    }
}

fn number(layer: &[usize], standing: &mut [f64]) {
    let mut next = 0.0;
    for &at in layer {
        standing[at] = next;
        next += 1.0;
    }
}

fn sort<'p>(layer: &mut [usize], standing: &mut [f64], beside: impl Fn(usize) -> &'p Vec<usize>) {
    let keys: Vec<f64> = layer.iter().map(|&at| mean(beside(at), standing).unwrap_or(standing[at])).collect();
    let mut keyed: Vec<(f64, usize)> = keys.into_iter().zip(layer.iter().copied()).collect();
    // The sort is stable, so that what is equal keeps its order.
    keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (place, (_, at)) in layer.iter_mut().zip(keyed) {
        *place = at;
    }
    number(layer, standing);
}

fn mean(places: &[usize], values: &[f64]) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a graph has far fewer than 2^52 edges")]
    let count = places.len() as f64;
    (!places.is_empty()).then(|| places.iter().map(|at| values[*at]).sum::<f64>() / count)
}

/// Gives every place a row: as near to its neighbours as those beside it allow.
fn rows(places: &mut [Place], by_layer: &[Vec<usize>]) {
    let mut rows = vec![0.0; places.len()];
    let half = |at: usize, places: &[Place]| HALF[usize::from(places[at].stands_in)];
    for layer in by_layer {
        let wanted: Vec<f64> = vec![0.0; layer.len()];
        spread(layer, &wanted, &mut rows, |at| half(at, places));
    }
    for sweep in 0..ROW_SWEEPS {
        let down = sweep % 2 == 0;
        for step in 0..by_layer.len() {
            let layer = &by_layer[if down { step } else { by_layer.len() - 1 - step }];
            let beside = |at: usize| if down { &places[at].before } else { &places[at].after };
            let wanted: Vec<f64> =
                layer.iter().map(|&at| mean(beside(at), &rows).unwrap_or(rows[at])).collect();
            spread(layer, &wanted, &mut rows, |at| half(at, places));
        }
    }
    let first = rows.iter().copied().fold(f64::INFINITY, f64::min);
    for (place, row) in places.iter_mut().zip(rows) {
        place.row = ((row - first) * 100.0).round() / 100.0;
    }
}

/// Puts a layer's places in their order, each as near to where it is wanted as the room between them allows: the least
/// squares, found by pooling neighbours that would overlap.
fn spread(layer: &[usize], wanted: &[f64], rows: &mut [f64], half: impl Fn(usize) -> f64) {
    let mut offsets = Vec::with_capacity(layer.len());
    let mut offset = 0.0;
    for (nth, &at) in layer.iter().enumerate() {
        offset += if nth == 0 { 0.0 } else { half(layer[nth - 1]) + half(at) };
        offsets.push(offset);
    }
    // Pools of neighbours that stand as close as they may: the sum of what they want, and how many they are.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    #[expect(clippy::cast_precision_loss, reason = "a layer has far fewer than 2^52 places")]
    let level = |(sum, count): (f64, usize)| sum / count as f64;
    for (wanted, offset) in wanted.iter().zip(&offsets) {
        let mut pool = (wanted - offset, 1);
        while let Some(last) = pools.pop_if(|last| level(*last) >= level(pool)) {
            pool = (last.0 + pool.0, last.1 + pool.1);
        }
        pools.push(pool);
    }
    let mut nth = 0;
    for pool in pools {
        for _ in 0..pool.1 {
            rows[layer[nth]] = level(pool) + offsets[nth];
            nth += 1;
        }
    }
}
