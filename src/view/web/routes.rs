//! Which answer belongs to which request (FACTS 9.3 and 9.4).
//!
//! The id of a run in a path counts only when a directory of that very name lies among the runs (case H6).

use std::io;
use std::sync::Arc;

use super::cards::Which;
use super::gate::{self, Choice};
use super::http::{Answer, Request, Verb};
use super::run_api::OneRun;
use super::transcript::Projects;
use super::{Shared, Site, guards, pages};
use crate::record::RunId;
use crate::view::history::lookup::{self, LookupError};

/// The site, with what its answers need.
pub(super) struct Routes {
    site: Site,
    shared: Arc<Shared>,
    token: String,
    projects: Projects,
}

impl Routes {
    pub(super) fn new(site: Site, shared: Arc<Shared>) -> io::Result<Self> {
        let token = guards::token().map_err(|error| io::Error::other(error.to_string()))?;
        let projects = Projects(site.projects.clone());
        Ok(Routes { site, shared, token, projects })
    }

    pub(super) fn answer(&self, request: &mut Request) -> Answer {
        guards::dressed(guards::refusal(request).unwrap_or_else(|| self.route(request)))
    }

    fn route(&self, request: &mut Request) -> Answer {
        let path = request.path().to_owned();
        let Some(path) = path.strip_prefix('/') else { return missing() };
        match &self.site.run {
            Some(id) => self.of_run(id, path, request),
            None => self.of_all(path, request),
        }
    }

    fn of_all(&self, path: &str, request: &mut Request) -> Answer {
        if let Some(rest) = path.strip_prefix("run/") {
            let (name, below) =
                rest.split_once('/').map_or((rest, None), |(name, below)| (name, Some(below)));
            let Some(id) = self.listed(name) else { return missing() };
            return match below {
                Some(below) => self.of_run(&id, below, request),
                None => Answer::text(307, "the page of a run ends with a slash")
                    .with("Location", format!("/run/{id}/")),
            };
        }
        if request.verb() != Verb::Get {
            return not_allowed("GET, HEAD");
        }
        match path {
            "" => pages::page(pages::DASHBOARD, &self.token, &self.site),
            "api/cards" => self.cards(request),
            "api/totals" => listed(self.shared.cards.totals()),
            "api/cards/events" => {
                let shared = Arc::clone(&self.shared);
                self.shared.streams.open(move |stream| shared.cards.follow(stream))
            }
            // Those of a run's page have nothing to show here.
            "index.html" | "app.js" => missing(),
            path => pages::asset(path).unwrap_or_else(missing),
        }
    }

    fn cards(&self, request: &Request) -> Answer {
        let which = match request.parameter("of").as_deref() {
            None | Some("all") => Which::All,
            Some("open") => Which::Open,
            Some("settled") => Which::Settled,
            Some(_) => return Answer::text(400, "of can be all, open or settled"),
        };
        let limit = match request.parameter("limit").map(|limit| limit.parse()) {
            None => usize::MAX,
            Some(Ok(limit)) => limit,
            Some(Err(_)) => return Answer::text(400, "limit must be a number"),
        };
        listed(self.shared.cards.page(which, request.parameter("before").as_deref(), limit))
    }

    /// The run of that name, if there is one.
    fn listed(&self, name: &str) -> Option<RunId> {
        lookup::entries(&self.site.home).ok()?.runs.into_iter().find(|id| id.as_str() == name)
    }

    fn of_run(&self, id: &RunId, path: &str, request: &mut Request) -> Answer {
        let choice = match path {
            "api/gate/approve" => Some(Choice::Approve),
            "api/gate/reject" => Some(Choice::Reject),
            _ => None,
        };
        let run =
            OneRun { id, dir: self.site.home.run(id), probe: self.site.probe, projects: &self.projects };
        match (request.verb(), choice) {
            (Verb::Post, Some(choice)) => {
                let means = (self.site.probe, self.site.decide.as_deref());
                gate::post(request, (id, &run.dir), choice, &self.token, means)
            }
            (_, Some(_)) => not_allowed("POST"),
            (Verb::Get, None) => self.reading(&run, path, request),
            (_, None) => not_allowed("GET, HEAD"),
        }
    }

    fn reading(&self, run: &OneRun<'_>, path: &str, request: &Request) -> Answer {
        match path {
            "" | "index.html" => pages::page(pages::RUN, &self.token, &self.site),
            "api/graph" => run.graph(),
            "api/run" => run.run(),
            "api/goal" => run.goal(&self.site.home),
            "api/refused" => run.refused(),
            "api/events" => self.events(run.id, request),
            "api/result" => run.result(request),
            "api/failed" => run.failed(request),
            "api/attempts" => run.attempts(request),
            "api/said" => run.said(request),
            "api/path" => run.path(),
            "api/diff" => run.diff(request, self.site.lanes.as_deref()),
            "api/transcript" => run.transcript(request),
            path => pages::asset(path).unwrap_or_else(missing),
        }
    }

    fn events(&self, id: &RunId, request: &Request) -> Answer {
        // The parameter is for who begins a stream where another one ended; a browser cannot set the header itself.
        let seen = request.header("Last-Event-ID").map(str::to_owned).or_else(|| request.parameter("from"));
        let seen = seen.and_then(|seen| seen.parse().ok());
        let (shared, id) = (Arc::clone(&self.shared), id.clone());
        self.shared.streams.open(move |stream| shared.feeds.follow(&id, seen, stream))
    }
}

fn listed(json: Result<String, LookupError>) -> Answer {
    match json {
        Ok(json) => Answer::of(200, "application/json", json),
        Err(error) => Answer::text(500, error.to_string()),
    }
}

fn missing() -> Answer {
    Answer::text(404, "there is nothing here")
}

fn not_allowed(allowed: &str) -> Answer {
    Answer::text(405, format!("this takes {allowed} only")).with("Allow", allowed)
}
