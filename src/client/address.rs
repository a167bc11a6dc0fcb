//! Where a hub is: a URL, taken apart.

use std::fmt;
use std::str::FromStr;

/// Whether a text can name a Field (wire, section 5).
pub fn is_field_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Why a text is no hub's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedAddress(String);

impl fmt::Display for MalformedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MalformedAddress {}

/// A hub and, where named, one of its Fields.
///
/// ```
/// use akashik_hub::client::HubAddress;
///
/// let address: HubAddress = "http://127.0.0.1:7420/v1/fields/lab".parse()?;
/// assert_eq!(address.websocket(), "ws://127.0.0.1:7420/v1/fields/lab/ws");
/// # Ok::<(), akashik_hub::client::MalformedAddress>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubAddress {
    /// Host and port as they stand in a `Host` header; IPv6 in brackets, the port always given.
    authority: String,
    /// What stands before `/v1`, for a hub behind a proxy; mostly empty. Never ends in a slash.
    base: String,
    field: Option<String>,
}

impl HubAddress {
    /// `host:port`, to connect to and for the `Host` header.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The Field that the address names.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The same hub, another Field.
    ///
    /// # Errors
    /// When the name is none that a Field can have.
    pub fn with_field(mut self, field: &str) -> Result<Self, MalformedAddress> {
        if !is_field_name(field) {
            return Err(MalformedAddress(format!(
                "{field:?} is no Field name: 1 to 64 letters, digits, '_' and '-'"
            )));
        }
        self.field = Some(field.to_owned());
        Ok(self)
    }

    /// The path of what stands under `/v1/` of the Field.
    pub fn path(&self, rest: &str) -> String {
        match &self.field {
            None => format!("{}/v1/{rest}", self.base),
            Some(field) => format!("{}/v1/fields/{field}/{rest}", self.base),
        }
    }

    /// The WebSocket's URL.
    pub fn websocket(&self) -> String {
        format!("ws://{}{}", self.authority, self.path("ws"))
    }
}

impl fmt::Display for HubAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.base)?;
        self.field.as_ref().map_or(Ok(()), |field| write!(f, "/v1/fields/{field}"))
    }
}

impl FromStr for HubAddress {
    type Err = MalformedAddress;

    fn from_str(text: &str) -> Result<Self, MalformedAddress> {
        let wrong = |why: &str| MalformedAddress(format!("{text:?} is no hub's address: {why}"));
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| wrong("it must begin with http:// or ws://"))?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => {}
            "https" | "wss" => {
                return Err(wrong("TLS is not spoken; use http:// or ws://, or a TLS proxy on this side"));
            }
            _ => return Err(wrong("it must begin with http:// or ws://")),
        }
        if rest.contains(['?', '#']) {
            return Err(wrong("it must not have a query or a fragment"));
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            return Err(wrong("credentials do not belong into it; use a token"));
        }
        let parsed: http::uri::Authority = authority.parse().map_err(|_| wrong("its host is malformed"))?;
        if parsed.host().is_empty() {
            return Err(wrong("it names no host"));
        }
        let port = match authority[parsed.host().len()..].strip_prefix(':') {
            None => 80,
            Some(port) => port.parse::<u16>().map_err(|_| wrong("its port is no number up to 65535"))?,
        };
        let (base, field) = take_path(path).map_err(wrong)?;
        let address = Self { authority: format!("{}:{port}", parsed.host()), base, field: None };
        field.map_or(Ok(address.clone()), |field| address.with_field(&field))
    }
}

/// Splits a path into what stands before `/v1` and the Field named behind it.
fn take_path(path: &str) -> Result<(String, Option<String>), &'static str> {
    if path.bytes().any(|b| !b.is_ascii_graphic()) {
        return Err("its path is malformed");
    }
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    let at = segments.iter().position(|s| *s == "v1").unwrap_or(segments.len());
    let base = segments[..at].iter().map(|s| format!("/{s}")).collect();
    let field = match segments.get(at + 1..).unwrap_or_default() {
        [] | ["ws"] => None,
        ["fields", field] | ["fields", field, "ws"] => Some((*field).to_owned()),
        _ => return Err("behind /v1 only /fields/NAME may follow"),
    };
    Ok((base, field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form_of_an_address() {
        for (text, websocket) in [
            ("http://127.0.0.1:7420", "ws://127.0.0.1:7420/v1/ws"),
            ("ws://localhost:7420/", "ws://localhost:7420/v1/ws"),
            ("HTTP://hub.example", "ws://hub.example:80/v1/ws"),
            ("http://[::1]:7420/v1/", "ws://[::1]:7420/v1/ws"),
            ("http://[::1]", "ws://[::1]:80/v1/ws"),
            ("ws://h:1/v1/ws", "ws://h:1/v1/ws"),
            ("http://h:1/v1/fields/lab-2", "ws://h:1/v1/fields/lab-2/ws"),
            ("ws://h:1/v1/fields/x/ws", "ws://h:1/v1/fields/x/ws"),
            ("http://h:1/hub/v1/fields/x", "ws://h:1/hub/v1/fields/x/ws"),
            ("http://h:1/hub", "ws://h:1/hub/v1/ws"),
        ] {
            assert_eq!(text.parse::<HubAddress>().unwrap().websocket(), websocket, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_address_and_says_why() {
        for (text, why) in [
            ("127.0.0.1:7420", "begin with"),
            ("ftp://h", "begin with"),
            ("https://h", "TLS"),
            ("wss://h", "TLS"),
            ("http://", "host"),
            ("http://:80", "host"),
            ("http://u:p@h", "credentials"),
            ("http://h:70000", "port"),
            ("http://h:x", "port"),
            ("http://h/?x", "query"),
            ("http://h/v1/units", "/fields/NAME"),
            ("http://h/v1/fields/a b", "malformed"),
            ("http://h/v1/fields/ä", "malformed"),
            ("http://h/v1/fields/a.b", "Field name"),
        ] {
            let error = text.parse::<HubAddress>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_field_can_be_chosen_later() {
        let address: HubAddress = "http://h:1".parse().unwrap();
        assert_eq!(address.path("record"), "/v1/record");
        assert_eq!(address.with_field("x").unwrap().path("record"), "/v1/fields/x/record");
    }
}
