//! Access control: only pages of this machine with the token of the address are served.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use axum::http::{HeaderMap, Uri, header};

/// Credentials that a request must present.
#[derive(Debug)]
pub struct Guard {
    token: String,
    hosts: [String; 2],
}

impl Guard {
    /// Creates a guard with a new token.
    pub fn new(port: u16) -> Result<Self> {
        Ok(Self { token: random_name()?, hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")] })
    }

    /// Returns the secret part of the address.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the reason to reject a request, if there is one. The host check prevents DNS rebinding, the origin
    /// check excludes other pages in the same browser, and the token excludes everyone who does not know the address.
    pub fn refusal(&self, target: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        let text = |name| headers.get(name).and_then(|v: &axum::http::HeaderValue| v.to_str().ok());
        let known = |host: &str| self.hosts.iter().any(|h| h == host);
        // With two hosts, or another one in the target, a proxy and this server could interpret the request differently.
        let single = headers.get_all(header::HOST).iter().count() == 1;
        let addressed = target.authority().is_none_or(|authority| known(authority.as_str()));
        if !(single && addressed && text(header::HOST).is_some_and(known)) {
            return Some("this server only accepts requests to 127.0.0.1");
        }
        let origin = headers.get(header::ORIGIN);
        // A sandboxed report has the origin "null" and must not access the server.
        if origin.is_some()
            && !text(header::ORIGIN).and_then(|o| o.strip_prefix("http://")).is_some_and(known)
        {
            return Some("requests from other pages are refused");
        }
        let first = target.path().trim_start_matches('/').split('/').next().unwrap_or_default();
        if !same(first.as_bytes(), self.token.as_bytes()) {
            return Some("the address has no valid token: open the address that 'inertial serve' printed");
        }
        None
    }
}

/// Compares two byte strings in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

/// Returns 128 random bits in hexadecimal.
pub fn random_name() -> Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| anyhow!("cannot get random numbers: {e}"))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
