//! TLS towards a model outside of the hub: whom it trusts, and the handshake.

use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Speaks TLS with one host.
#[derive(Clone)]
pub(super) struct Tls {
    connector: TlsConnector,
    host: ServerName<'static>,
}

impl Tls {
    /// Trusts those that the machine trusts (and `SSL_CERT_FILE` names), and the certificates of a PEM file, which the
    /// flag `ca_flag` names.
    ///
    /// # Errors
    /// A host that no certificate can name; a file that holds no certificates; nobody to trust.
    pub fn towards(host: &str, ca_file: Option<&Path>, ca_flag: &str) -> Result<Self, String> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let host = ServerName::try_from(bare.to_owned()).map_err(|error| format!("{host:?}: {error}"))?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(file) = ca_file {
            let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
            let mut found = 0;
            for certificate in CertificateDer::pem_file_iter(file).map_err(|error| failed(&error))? {
                let certificate = certificate.map_err(|error| failed(&error))?;
                roots.add(certificate).map_err(|error| failed(&error))?;
                found += 1;
            }
            if found == 0 {
                return Err(failed(&"it holds no certificate in PEM form"));
            }
        }
        if roots.is_empty() {
            return Err(format!(
                "this machine trusts no certificate authority: install its ca-certificates, or name a PEM file with {ca_flag}"
            ));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), host })
    }

    /// The handshake on an open connection.
    pub async fn shake(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.host.clone(), stream).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused_by_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = |ca: &Path| Tls::towards("models", Some(ca), "--ca").err().unwrap();
        assert!(refused(file.path()).contains(file.path().to_str().unwrap()));
        std::fs::write(file.path(), "-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n")
            .unwrap();
        assert!(refused(file.path()).contains(file.path().to_str().unwrap()));
        assert!(refused(Path::new("/nowhere/at/all")).contains("/nowhere/at/all"));
        assert!(Tls::towards("no host", None, "--ca").is_err());
    }
}
