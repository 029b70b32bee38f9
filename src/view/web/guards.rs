//! Who is answered at all, and the headers of every answer (FACTS 9.2, cases H5 and H7).
//!
//! The loopback is what keeps others out; a browser on this machine is what lets them in again. The name in `Host` keeps
//! out a page whose name was rebound to this address; `Origin` and the token keep out one that sends forms here.

use subtle::ConstantTimeEq;

use super::http::{Answer, Request};
use crate::text::hex;

/// Nothing comes from elsewhere, nothing is inline, nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The headers of every answer, refusals included.
const HEADERS: [(&str, &str); 6] = [
    ("Content-Security-Policy", POLICY),
    ("X-Frame-Options", "DENY"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-cache"),
];

/// `answer` with the headers that every answer has.
pub(super) fn dressed(answer: Answer) -> Answer {
    HEADERS.iter().fold(answer, |answer, (name, value)| answer.with(name, *value))
}

/// Why a request is not answered, whatever it asks for.
pub(super) fn refusal(request: &Request) -> Option<Answer> {
    let host = request.header("Host").unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if !["127.0.0.1", "localhost"].contains(&name) {
        return Some(Answer::text(403, "this server is reached as 127.0.0.1 or localhost only"));
    }
    (request.has("Origin") && request.header("Origin") != Some(&format!("http://{host}")))
        .then(|| Answer::text(403, "a page of another origin gets nothing here"))
}

/// Why a request that [`refusal`] has nothing against may not change anything.
pub(super) fn refusal_to_change(request: &Request, token: &str) -> Option<Answer> {
    if !request.has("X-OMG-Token") {
        return Some(Answer::text(400, "the header X-OMG-Token is missing"));
    }
    let sent = request.header("X-OMG-Token").unwrap_or_default();
    (!bool::from(sent.as_bytes().ct_eq(token.as_bytes())))
        .then(|| Answer::text(403, "the token is not this server's; load the page again"))
}

/// A word that only the pages of this process know.
///
/// # Errors
/// When the system has no randomness.
pub(super) fn token() -> Result<String, getrandom::Error> {
    hex::random::<32>()
}
