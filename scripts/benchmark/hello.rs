//! The smallest Rust program: what starting a process costs at least.

fn main() {
    println!("hello");
}
