//! Nodes that plant, edit, link and delete while their siblings start.
