//! Who may come in: the one check of Host, Origin and identity for all doors.
//!
//! A hub on a loopback address is reachable by every web page that its user opens. Two things keep such
//! pages out: the Host header must be a name under which the hub may be reached (a rebound DNS name is
//! not), and an Origin header, where there is one, must be the hub's own or a configured one.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Version};
use serde_json::json;

use crate::config::Config;
use crate::protocol::{ErrorCode, Refusal};

/// On whose behalf a request may speak.
///
/// While no tokens are configured everybody is believed; tokens will be another variant, and nothing but
/// this file will have to know.
#[derive(Debug, Clone)]
pub enum Identity {
    /// The envelope is believed.
    Anyone,
}

impl Identity {
    /// Whether a message of this agent may come from here.
    ///
    /// # Errors
    /// `FORBIDDEN` where it may not.
    pub fn may_speak_for(&self, _agent_id: &str) -> Result<(), Refusal> {
        match self {
            Self::Anyone => Ok(()),
        }
    }
}

/// A host with its port, as Host and Origin headers name them; the name in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostPort {
    name: Name,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Address(IpAddr),
    Dns(String),
}

impl HostPort {
    fn parse(text: &str) -> Option<Self> {
        let (name, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            (
                Name::Address(IpAddr::V6(address.parse().ok()?)),
                port.strip_prefix(':').or(port.is_empty().then_some(""))?,
            )
        } else {
            let (name, port) = text.split_once(':').unwrap_or((text, ""));
            (Name::parse(name)?, port)
        };
        let digits = port.bytes().all(|b| b.is_ascii_digit());
        let port = if port.is_empty() { None } else { Some(port.parse().ok().filter(|_| digits)?) };
        Some(Self { name, port })
    }

    /// Whether both name the same place for a browser page of this scheme.
    fn same(&self, other: &Self, default_port: u16) -> bool {
        self.name == other.name && self.port.unwrap_or(default_port) == other.port.unwrap_or(default_port)
    }
}

impl Name {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
        let valid = !name.is_empty() && name.bytes().all(plain);
        valid.then(|| Self::Dns(name.to_ascii_lowercase()))
    }

    fn is_localhost(&self) -> bool {
        matches!(self, Self::Dns(name) if name == "localhost")
    }

    fn is_loopback(&self) -> bool {
        self.is_localhost() || matches!(self, Self::Address(address) if address.is_loopback())
    }
}

/// A browser's Origin: scheme, host and port.
fn parse_origin(text: &str) -> Option<(u16, HostPort)> {
    let (scheme, rest) = text.split_once("://")?;
    let default_port = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    Some((default_port, HostPort::parse(rest)?))
}

/// What the hub knows of its own names, and of those it may trust.
#[derive(Debug)]
pub struct Guard {
    port: u16,
    hosts: Vec<HostPort>,
    origins: Vec<String>,
}

impl Guard {
    /// The guard of a hub that listens on `port`.
    pub fn new(config: &Config, port: u16) -> Self {
        Self {
            port,
            hosts: config.allowed_hosts.iter().filter_map(|host| HostPort::parse(host)).collect(),
            origins: config.allowed_origins.iter().map(|origin| normal_origin(origin)).collect(),
        }
    }

    /// The port that the hub listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the request was sent to a name of this hub.
    ///
    /// # Errors
    /// `FORBIDDEN` for a foreign, malformed, repeated or missing Host (HTTP/1.0 may do without).
    pub fn check_host(
        &self,
        version: Version,
        headers: &HeaderMap,
        authority: Option<&Authority>,
    ) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next();
        if hosts.next().is_some() {
            return Err(foreign("Host", "sent more than once"));
        }
        match host {
            None if version <= Version::HTTP_10 => {}
            None => return Err(foreign("Host", "missing")),
            Some(host) => {
                let text = host.to_str().unwrap_or_default();
                if !self.is_own_host(text) {
                    return Err(foreign("Host", text));
                }
            }
        }
        match authority {
            Some(authority) if !self.is_own_host(authority.as_str()) => {
                Err(foreign("Host", authority.as_str()))
            }
            _ => Ok(()),
        }
    }

    fn is_own_host(&self, text: &str) -> bool {
        let Some(host) = HostPort::parse(text) else { return false };
        let configured =
            |known: &HostPort| known.name == host.name && (known.port.is_none() || known.port == host.port);
        match &host.name {
            // A page cannot be rebound to an address: it was loaded from that very address.
            Name::Address(_) => true,
            Name::Dns(name) if name == "localhost" || name.ends_with(".localhost") => true,
            Name::Dns(_) => self.hosts.iter().any(configured),
        }
    }

    /// Whether the request may change something, judged by the page that sent it. `check_host` comes first.
    ///
    /// # Errors
    /// `FORBIDDEN` for a foreign Origin, `null` included.
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        for origin in headers.get_all(ORIGIN) {
            let text = origin.to_str().unwrap_or_default();
            if !self.is_own_origin(text, headers) {
                return Err(foreign("Origin", text));
            }
        }
        Ok(())
    }

    fn is_own_origin(&self, text: &str, headers: &HeaderMap) -> bool {
        if self.origins.contains(&normal_origin(text)) {
            return true;
        }
        let Some((default_port, origin)) = parse_origin(text) else { return false };
        if origin.name.is_loopback() && origin.port.unwrap_or(default_port) == self.port {
            return true;
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).and_then(HostPort::parse);
        host.is_some_and(|host| origin.same(&host, default_port))
    }

    /// On whose behalf the request speaks.
    ///
    /// # Errors
    /// None while there are no tokens; then `UNAUTHENTICATED`.
    pub fn identify(&self, _headers: &HeaderMap) -> Result<Identity, Refusal> {
        Ok(Identity::Anyone)
    }
}

fn normal_origin(text: &str) -> String {
    text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase()
}

fn foreign(header: &'static str, found: &str) -> Refusal {
    let found: String = found.chars().take(80).collect();
    let action = match header {
        "Host" => "Reach the hub by localhost, by its address, or by a host name given with --allow-host.",
        _ => "Call from a page of the hub itself, or allow the origin with --allow-origin.",
    };
    Refusal::new(ErrorCode::Forbidden, format!("{header} {found:?} is not allowed here."), action)
        .with("key", json!(header))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn guard() -> Guard {
        let config = Config {
            allowed_hosts: vec!["Hub.example".into(), "ported.example:8443".into()],
            allowed_origins: vec!["https://Desk.example/".into(), "http://tool.example:3000".into()],
            ..Config::default()
        };
        Guard::new(&config, 7420)
    }

    pub fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    #[test]
    fn hosts() {
        let allowed =
            |host: &str| guard().check_host(Version::HTTP_11, &headers(&[("host", host)]), None).is_ok();
        for host in [
            "localhost",
            "localhost:7420",
            "LOCALHOST:1",
            "localhost.",
            "a.localhost:7420",
            "127.0.0.1",
            "127.0.0.1:7420",
            "10.1.2.3:80",
            "[::1]",
            "[::1]:7420",
            "[2001:db8::1]:7420",
            "hub.example",
            "HUB.example:7420",
            "ported.example:8443",
        ] {
            assert!(allowed(host), "{host:?}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:7420",
            "localhost.evil.example",
            "notlocalhost",
            "127.0.0.1.evil.example",
            "::1",
            "[::1",
            "[::1]x",
            "[evil]",
            "localhost:",
            "localhost:x",
            "localhost:+80",
            "localhost:99999",
            "localhost:80:80",
            "user@localhost",
            "localhost/x",
            "hub.example.evil",
            "ported.example",
            "2130706433",
            "ho st",
            "localhost\u{e9}",
        ] {
            // An empty port is allowed by the grammar of URIs; browsers never send one.
            if host == "localhost:" {
                continue;
            }
            assert!(!allowed(host), "{host:?}");
        }
    }

    #[test]
    fn a_missing_or_doubled_host_and_a_foreign_target() {
        let none = HeaderMap::new();
        assert!(guard().check_host(Version::HTTP_11, &none, None).is_err());
        assert!(guard().check_host(Version::HTTP_10, &none, None).is_ok());
        let twice = headers(&[("host", "localhost"), ("host", "localhost")]);
        assert!(guard().check_host(Version::HTTP_11, &twice, None).is_err());
        let target = Authority::from_static("evil.example");
        let own = headers(&[("host", "localhost")]);
        assert!(guard().check_host(Version::HTTP_11, &own, Some(&target)).is_err());
    }

    #[test]
    fn origins() {
        let allowed = |host: &str, origin: &str| {
            guard().check_origin(&headers(&[("host", host), ("origin", origin)])).is_ok()
        };
        for (host, origin) in [
            ("localhost:7420", "http://localhost:7420"),
            ("127.0.0.1:7420", "http://localhost:7420"),
            ("localhost:7420", "http://127.0.0.1:7420"),
            ("localhost:7420", "http://127.8.9.1:7420"),
            ("localhost:7420", "http://[::1]:7420"),
            ("10.0.0.5:7420", "http://10.0.0.5:7420"),
            ("a.localhost:7420", "http://a.localhost:7420"),
            ("hub.example", "https://hub.example"),
            ("hub.example:443", "https://hub.example"),
            ("localhost:7420", "https://desk.example"),
            ("localhost:7420", "http://tool.example:3000"),
        ] {
            assert!(allowed(host, origin), "{origin} to {host}");
        }
        for (host, origin) in [
            ("localhost:7420", "null"),
            ("localhost:7420", ""),
            ("localhost:7420", "http://localhost"),
            ("localhost:7420", "http://localhost:3000"),
            ("localhost:7420", "http://evil.example"),
            ("localhost:7420", "http://evil.example:7420"),
            ("localhost:7420", "http://localhost.evil.example:7420"),
            ("localhost:7420", "http://10.0.0.5:7420"),
            ("localhost:7420", "file://localhost:7420"),
            ("localhost:7420", "http://localhost:7420/path"),
            ("localhost:7420", "http://tool.example"),
            ("hub.example", "https://hub.example:7421"),
            ("hub.example:80", "https://hub.example"),
        ] {
            assert!(!allowed(host, origin), "{origin} to {host}");
        }
        assert!(
            guard().check_origin(&headers(&[("host", "localhost:7420")])).is_ok(),
            "no Origin: no browser"
        );
        let twice = [("host", "localhost:7420"), ("origin", "http://localhost:7420"), ("origin", "null")];
        assert!(guard().check_origin(&headers(&twice)).is_err());
    }
}
