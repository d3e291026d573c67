//! The TLS settings of a client.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::error::Error;
use crate::options::ClientOptions;

/// Reads the certificate files. They are read once, when the client is made, so that a wrong path is an argument error.
///
/// The crypto provider is passed explicitly: a process-wide default belongs to the application.
pub(super) fn config(options: &ClientOptions) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal(None, &error.to_string()))?
        .with_root_certificates(roots(options.tls_ca.as_deref())?);
    let config = match (&options.tls_cert, &options.tls_key) {
        (Some(cert), Some(key)) => {
            let chain = certificates("tls_cert", cert)?;
            let secret = PrivateKeyDer::from_pem_file(Path::new(key))
                .map_err(|error| Error::invalid("tls_key", key, format!("no private key could be read: {error}")))?;
            builder
                .with_client_auth_cert(chain, secret)
                .map_err(|error| Error::invalid("tls_cert", cert, format!("does not go with tls_key: {error}")))?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

fn roots(ca: Option<&str>) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    let (trusted, source) = match ca {
        Some(path) => (certificates("tls_ca", path)?, "the file holds no certificate that can be trusted"),
        // Single broken files among the system's are usual and no reason to fail.
        None => (rustls_native_certs::load_native_certs().certs, "the system has no trusted certificates: give a file"),
    };
    let (added, _) = store.add_parsable_certificates(trusted);
    if added == 0 {
        return Err(Error::invalid("tls_ca", ca, source.to_owned()));
    }
    Ok(store)
}

fn certificates(option: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let refuse =
        |error: rustls::pki_types::pem::Error| Error::invalid(option, path, format!("no certificates could be read: {error}"));
    CertificateDer::pem_file_iter(Path::new(path)).map_err(refuse)?.collect::<Result<_, _>>().map_err(refuse)
}
