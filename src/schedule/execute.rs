//! One attempt of a command node: its output is the artifact, its exit code is judged like any node's.

use std::io::{self, Write};

use crate::node::judge::{self, Answer, Fault};
use crate::node::shell::ShellRequest;
use crate::process::{Flow, Sink};
use crate::record::artifact::Pending;
use crate::record::attempts::Said;
use crate::record::excerpt::{CUT_BYTES, KEPT_BYTES_MAX};
use crate::schedule::ask::is_zero;
use crate::schedule::attempt::{Course, not_kept};
use crate::schedule::prepare::Prepared;
use crate::text::regexp::{Pattern, Stream};
use crate::text::sanitize::stderr_tail;

impl Course<'_> {
    /// Runs the command, spooling its output to the artifact's place.
    pub(crate) fn execute(&mut self, prepared: &Prepared) -> Result<(), Fault> {
        self.keep(Said::Prompt, prepared.text.as_bytes());
        let pending = Pending::create(self.work.run_dir.path()).map_err(not_kept)?;
        let stream = self.node.check.result_matches.as_ref().map(Pattern::stream);
        let mut output = Output { pending, stream };
        let verdict = self.run_command(prepared, &mut output);
        let Output { pending, stream } = output;
        let verdict = verdict.and_then(|(exit, note)| {
            let matches = stream.is_none_or(Stream::finish);
            judge::judge(&self.node.check, Answer { exit, note: &note, matches })
        });
        let verdict = verdict.and_then(|()| match &prepared.verify {
            Some(verify) => self.verify(verify, prepared),
            None => Ok(()),
        });
        match verdict {
            Ok(()) => {
                let path = self.work.run_dir.artifact(&self.node.id);
                self.carried = pending.commit_artifact(&path).map_err(not_kept)?;
                Ok(())
            }
            Err(fault) => {
                self.told.reply = pending.excerpt(KEPT_BYTES_MAX - CUT_BYTES).unwrap_or_default();
                self.keep(Said::Reply, self.told.reply.as_bytes());
                Err(fault)
            }
        }
    }

    fn run_command(
        &mut self,
        prepared: &Prepared,
        output: &mut Output,
    ) -> Result<(crate::process::Exit, String), Fault> {
        let request = ShellRequest {
            node: self.node.id.clone(),
            attempt: self.attempt,
            command: prepared.text.clone(),
            cwd: prepared.cwd.clone(),
            env: prepared.env.clone(),
            timeout: self.timeout(),
            leave_running: self.node.leave_running,
        };
        let ran = self
            .work
            .shell
            .run(&request, output, self.work.halt.cancel())
            .map_err(|error| judge::not_started(&error))?;
        self.keep(Said::Stderr, ran.stderr.as_bytes());
        self.leaky |= ran.leaky;
        self.left_running.extend(&ran.left_running);
        match judge::command_ended(ran.how, request.timeout) {
            Some(fault) => Err(fault),
            None => {
                let note = if is_zero(ran.exit) { String::new() } else { stderr_tail(&ran.stderr) };
                Ok((ran.exit, note))
            }
        }
    }
}

/// A command's standard output on its way to the artifact.
struct Output {
    pending: Pending,
    stream: Option<Stream>,
}

impl Sink for Output {
    fn take(&mut self, bytes: &[u8]) -> io::Result<Flow> {
        if let Some(stream) = &mut self.stream {
            stream.feed(bytes);
        }
        self.pending.write_all(bytes)?;
        Ok(Flow::More)
    }
}
