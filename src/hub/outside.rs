//! A model outside of the hub: one request, one answer, over HTTP or HTTPS, within bounds of time and bytes.
//!
//! What is asked and how the answer is believed is the askers' own (`endpoint`, `scribe`). Every failure says whose it
//! was and what was wrong.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::tls::Tls;

/// Where a model is, as it was configured.
pub(super) struct Place<'a> {
    /// What it is called in sentences: `the embedding endpoint`.
    pub what: &'static str,
    /// The flag that names a file of certificates for it.
    pub ca_flag: &'static str,
    /// `http://host:port/path`, or `https://`.
    pub url: &'a str,
    /// The path where the address has none.
    pub usual_path: &'static str,
    /// Sent as a bearer token.
    pub key: Option<&'a str>,
    /// PEM file of certificates to trust beside the machine's.
    pub ca_file: Option<&'a Path>,
    /// How long an answer may take.
    pub patience: Duration,
    /// How much of an answer is read, bytes; a longer one is none.
    pub answer_max_bytes: usize,
}

/// How a model outside is reached.
#[derive(Clone)]
pub(super) struct Outside {
    what: &'static str,
    authority: String,
    path: String,
    key: Option<String>,
    /// Where it is asked over TLS.
    tls: Option<Tls>,
    patience: Duration,
    answer_max_bytes: usize,
}

impl Outside {
    /// Nobody is asked yet.
    ///
    /// # Errors
    /// An address that cannot be used; certificates that cannot be read, or that nothing needs.
    pub fn new(place: &Place<'_>) -> Result<Self, String> {
        let url: Uri = place.url.parse().map_err(|error| format!("it is no URL: {error}"))?;
        let (usual_port, secure) = match url.scheme_str() {
            Some("http") => (80, false),
            Some("https") => (443, true),
            _ => return Err("it begins with neither http:// nor https://".to_owned()),
        };
        let authority = url.authority().ok_or("it names no host")?;
        let port = authority.port_u16().unwrap_or(usual_port);
        if !secure && place.ca_file.is_some() {
            return Err(format!("certificates are for https:// only; leave {} out", place.ca_flag));
        }
        let towards = || Tls::towards(authority.host(), place.ca_file, place.ca_flag);
        let tls = secure.then(towards).transpose()?;
        let path = match url.path_and_query().map_or("/", |path| path.as_str()) {
            "/" => place.usual_path.to_owned(),
            path => path.to_owned(),
        };
        Ok(Self {
            what: place.what,
            authority: format!("{}:{port}", authority.host()),
            path,
            key: place.key.map(str::to_owned),
            tls,
            patience: place.patience,
            answer_max_bytes: place.answer_max_bytes,
        })
    }

    /// What it is called in sentences.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// How long an answer may take.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Whether a text holds the key: such a text would stand in the log for good.
    pub fn gives_away(&self, text: &str) -> bool {
        self.key.as_deref().is_some_and(|key| !key.is_empty() && text.contains(key))
    }

    /// What is said of an answer that took too long.
    pub fn too_slow(&self) -> String {
        format!("{} did not answer within {:?}", self.what, self.patience)
    }

    /// The body of the answer to this JSON, within the patience.
    ///
    /// # Errors
    /// It cannot be reached, is too slow, answers another status than one of success, too much, or not to the end.
    pub async fn ask(&self, body: String) -> Result<Bytes, String> {
        timeout(self.patience, self.exchange(body)).await.map_err(|_| self.too_slow())?
    }

    async fn exchange(&self, body: String) -> Result<Bytes, String> {
        let failed = |error: &dyn Display| format!("{} cannot be asked: {error}", self.what);
        let mut request = Request::post(&self.path)
            .header(HOST, &self.authority)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(|error| failed(&error))?;
        let stream = TcpStream::connect(&self.authority).await.map_err(|error| failed(&error))?;
        stream.set_nodelay(true).map_err(|error| failed(&error))?;
        match &self.tls {
            None => self.converse(stream, request).await,
            Some(tls) => {
                let stream = tls.shake(stream).await.map_err(|error| failed(&error))?;
                self.converse(stream, request).await
            }
        }
    }

    /// One request and its answer over an open connection, which ends with it.
    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        request: Request<Full<Bytes>>,
    ) -> Result<Bytes, String> {
        let failed = |error: &dyn Display| format!("{} cannot be asked: {error}", self.what);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failed(&error))?;
        // Its errors reach the request below; it ends with the sender.
        let connection = AbortOnDrop(tokio::spawn(async move { drop(connection.await) }));
        let answer = sender.send_request(request).await.map_err(|error| failed(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), self.answer_max_bytes).collect().await;
        drop(connection);
        if !status.is_success() {
            return Err(format!("{} answered {status}", self.what));
        }
        body.map(|body| body.to_bytes()).map_err(|error| format!("{}'s answer broke off: {error}", self.what))
    }
}

/// Ends a task with whoever waits for it.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let place = |url: &str, ca_file: Option<&Path>| {
            let place = Place {
                what: "the model",
                ca_flag: "--model-ca-file",
                url,
                usual_path: "/v1/models",
                key: None,
                ca_file,
                patience: Duration::from_secs(1),
                answer_max_bytes: 1,
            };
            Outside::new(&place).map(|outside| (outside.authority, outside.path))
        };
        assert_eq!(place("http://localhost:8080", None), Ok(("localhost:8080".into(), "/v1/models".into())));
        assert_eq!(place("http://models/api/x?x=1", None), Ok(("models:80".into(), "/api/x?x=1".into())));
        assert!(place("ftp://models", None).unwrap_err().contains("https://"));
        assert!(place("nonsense", None).is_err() && place("", None).is_err());
        let needless = place("http://models", Some(Path::new("ca.pem"))).unwrap_err();
        assert!(needless.contains("--model-ca-file"), "{needless}");
    }
}
