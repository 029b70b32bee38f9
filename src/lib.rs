//! `omg` runs a graph of agent work on a person's own machine. The modules, in reading order, lowest floor first:

pub mod clock;
pub mod process;
pub mod text;

pub mod graph;

pub mod lint;
pub mod load;
pub mod starter;

pub mod node;
pub mod record;

pub mod schedule;

pub mod doctor;
pub mod leg;
pub mod plan;

pub mod trial;
pub mod view;

pub mod cli;
