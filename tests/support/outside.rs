//! What a pretended model outside does: takes connections, secured or not, reads one request from each, sends one answer.

use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A connection, whatever it is made of.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// Takes connections on a free port and has each answered by a task of its own; gives the URL.
pub async fn serve<F>(
    acceptor: Option<TlsAcceptor>,
    answer: impl Fn(Box<dyn Wire>) -> F + Send + Sync + 'static,
) -> String
where
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = match acceptor {
        None => format!("http://127.0.0.1:{port}"),
        Some(_) => format!("https://localhost:{port}"),
    };
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
            tokio::spawn(async move {
                match acceptor {
                    None => answer(Box::new(tcp)).await,
                    // Who does not trust the certificate hangs up in the handshake.
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(tcp).await {
                            answer(Box::new(stream)).await;
                        }
                    }
                }
            });
        }
    });
    url
}

/// The head and the whole body of a request; nothing where the other side hung up before.
pub async fn request(tcp: &mut (impl AsyncRead + Unpin)) -> Option<(String, String)> {
    let mut seen = Vec::new();
    loop {
        let mut part = [0; 4_096];
        let read = tcp.read(&mut part).await.unwrap_or(0);
        if read == 0 {
            return None;
        }
        seen.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&seen).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
    }
}

/// Answers with the first `sent` bytes of a body, though its whole length is announced.
pub async fn answer(tcp: &mut (impl AsyncWrite + Unpin), status: &str, body: &str, sent: usize) {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    // Who has heard enough hangs up.
    let _ = tcp.write_all(format!("{head}{}", &body[..sent]).as_bytes()).await;
    let _ = tcp.shutdown().await;
}

/// Speaks TLS as `localhost`, with a certificate that nobody trusts but who is given its file.
pub fn secured(home: &TempDir) -> (TlsAcceptor, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let ca_file = home.path().join("ca.pem");
    fs::write(&ca_file, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(server)), ca_file)
}
