//! Planned graphs: what a goal becomes, and what each spawn of it is given.

mod ceiling;
