//! Random git activity in lanes, and every way in which a run can end.

use super::*;

/// A small generator, so that a seed is a test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Shell functions: `w KIND` writes fresh contents to a fresh file, `over` to one that is always the same, and `c` commits
/// what was written; every blob's name is logged.
const WRITER: &str = r#"
n=0
log() { n=$((n+1)); echo "$LANE $$ $n" > "$f"; git hash-object --no-filters "$f" >> "$LOG"; }
w() { f=$1-$$-$n$2; log; }
over() { f=same; log; }
add() { git add "$f"; }
c() { git add "$f"; git commit -q -m "$n" "$@"; }
"#;

const DEEDS: [&str; 16] = [
    "w file; c",
    "over; c",
    "over; c --amend",
    "git checkout -q --detach; w detached; c",
    "git checkout -q -b side-$LANE-$$-$n; w side; c",
    "git branch -m renamed-$LANE-$$-$n",
    "w stash; add; git stash -q",
    "w stash; git stash -q -u",
    "w stash; add; git stash -q; git stash drop -q",
    "w staged; add; git reset -q --hard",
    "over; add; over; c",
    "w gone; c; git reset -q --hard HEAD~1",
    "w ignored .log",
    "w untracked",
    "b=$(git rev-parse HEAD); git checkout -q --detach; over; c; t=$(git rev-parse HEAD); \
     git checkout -q $b; over; c; git rebase -q $t",
    "b=$(git rev-parse HEAD); git checkout -q -b tmp-$LANE-$$-$n; t=$(git branch --show-current); w tmp; c; \
     git checkout -q $b; git branch -q -D $t",
];

fn script(dice: &mut Dice, name: &str, log: &Path, ending: &str) -> String {
    let mut script = format!("LANE={name}\nLOG={}\n{WRITER}", log.display());
    for _ in 0..2 + dice.roll(7) {
        // Things that lie about keep the directory, and then nothing can be lost: most lanes have none.
        let deed = match dice.roll(DEEDS.len() as u64) as usize {
            13 | 14 if dice.roll(3) > 0 => 12,
            other => other,
        };
        script += DEEDS[deed];
        script += "\n";
    }
    script + ending
}

/// Every blob in the log is reachable, or lies in a directory that was kept.
fn check_nothing_lost(env: &TestEnv, log: &Path, told: &str) {
    let mut found = reachable(env);
    for entry in fs::read_dir(env.run_dir().join("worktrees")).into_iter().flatten() {
        let dir = entry.unwrap().path();
        let held = git(&dir, &["rev-list", "--objects", "--no-object-names", "--indexed-objects", "HEAD"]);
        found.extend(lines(&held).into_iter().map(str::to_owned));
        for list in [["ls-files", "-z", "--others"], ["ls-files", "-z", "--modified"]] {
            for file in
                git(&dir, &list).split('\0').filter(|file| !file.is_empty() && dir.join(file).is_file())
            {
                found.insert(git(&dir, &["hash-object", file]));
            }
        }
    }
    let text = fs::read_to_string(log).unwrap();
    let written: Vec<&str> = lines(&text);
    assert!(!written.is_empty() || !told.contains("w "), "{told}");
    let lost: Vec<&&str> = written.iter().filter(|sha| !found.contains(**sha)).collect();
    assert!(
        lost.is_empty(),
        "{told}\nlost {lost:?} of {written:?}; the lanes are in {}",
        env.run_dir().display()
    );
}

#[test]
fn whatever_is_done_in_lanes_and_however_the_run_ends_nothing_is_lost() {
    for seed in 0..16 {
        let (env, mut dice) = (repository(), Dice(seed * 7919 + 1));
        let log = env.path("written.log");
        fs::write(&log, "").unwrap();
        let (begun, go) = (env.path("begun.log"), env.path("go.log"));
        let wait =
            format!("echo x >> {}; while test ! -e {}; do sleep 0.02; done", begun.display(), go.display());
        let ending = ["true", "exit 3", wait.as_str(), wait.as_str()][seed as usize % 4];
        let nodes = ["one", "two"].map(|name| {
            let text = script(&mut dice, name, &log, ending).replace('\n', "\n      ");
            format!("  - id: {name}\n    type: command\n    worktree: {name}\n    command: |\n      {text}\n")
        });
        let graph = format!("on_fail: continue\nnodes:\n{}", nodes.concat());
        env.write("g.yaml", &graph);
        let running = env.start(&["run", "g.yaml"]);
        if seed % 4 >= 2 {
            env.until("both are done", || {
                fs::read_to_string(&begun).is_ok_and(|text| text.lines().count() == 2)
            });
            running.signal(if seed % 4 == 2 { Signal::INT } else { Signal::KILL });
        }
        let mut ran = running.wait();
        if ran.code == -9 {
            fs::write(&go, "").unwrap();
            env.until("the nodes have ended", || env.pids_of("while test").is_empty());
            ran = env.omg(&["resume", "latest", "--retry-failed"]);
        }
        check_nothing_lost(&env, &log, &format!("seed {seed}\n{graph}\n{}", ran.stderr));
    }
}
