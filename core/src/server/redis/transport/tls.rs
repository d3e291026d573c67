//! TLS: the settings of a client, the handshake, and the reason why it failed.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, InvalidMessage, RootCertStore, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::Error;
use crate::error::quoted::quoted;
use crate::op::{Failure, FailureKind};
use crate::options::ClientOptions;
use crate::server::redis::tls_names::TlsNames;
use crate::server::redis::transport::socket::Socket;
use crate::server::redis::transport::stream::Limit;

/// The silence in a TLS handshake after which a server is asked for an answer without TLS, and at most a quarter of the whole time.
const DUMB: Duration = Duration::from_millis(250);

/// The advice for people where the peer doesn't speak TLS. `plain` is the scheme of a URL without TLS.
fn advice(plain: &str) -> String {
    format!("; does that port speak TLS? If not, its URL begins with {plain}://")
}

/// The settings of a client, and what checks certificates by them.
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    verifier: Arc<WebPkiServerVerifier>,
}

/// Reads the certificate files. They are read once, when the client is made, so that a wrong path is an argument error.
///
/// The provider of cryptography is the one that the process has installed, else `ring`, which is installed nowhere: that is the
/// application's to do.
pub(crate) fn config(options: &ClientOptions) -> Result<Arc<Tls>, Error> {
    let installed = CryptoProvider::get_default().cloned();
    let provider = installed.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let internal = |error: &dyn std::error::Error| Error::internal(None, &error.to_string());
    let roots = Arc::new(roots(options.tls_ca.as_deref())?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
    let verifier = verifier.map_err(|error| internal(&error))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| internal(&error))?
        .with_webpki_verifier(Arc::clone(&verifier));
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
    Ok(Arc::new(Tls { config: Arc::new(config), verifier }))
}

impl Tls {
    /// The settings for a node with these names. If its certificate may have any of several, a session of it is not taken up with
    /// another node.
    pub(crate) fn for_node(&self, names: &TlsNames) -> Arc<ClientConfig> {
        if names.accepted == [names.asked.clone()] {
            return Arc::clone(&self.config);
        }
        let mut own = (*self.config).clone();
        let verifier = AnyName { names: names.accepted.clone(), inner: Arc::clone(&self.verifier) };
        own.dangerous().set_certificate_verifier(Arc::new(verifier));
        own.resumption = Resumption::disabled();
        Arc::new(own)
    }
}

/// Checks a certificate as it always is, but for its name, which may be any of several.
#[derive(Debug)]
struct AnyName {
    names: Vec<ServerName<'static>>,
    inner: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _asked: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let check = |name| self.inner.verify_server_cert(end_entity, intermediates, name, ocsp_response, now);
        let mut checked = Err(CertificateError::NotValidForName.into());
        for name in &self.names {
            checked = check(name);
            if checked.is_ok() {
                break;
            }
        }
        checked
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
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

/// Shakes hands for TLS. With a `plain_scheme`, the scheme of the URL without TLS, the port may be one without TLS, and a failure
/// says so.
pub(crate) async fn shake_hands(
    stream: TcpStream,
    (names, config): (&TlsNames, &Tls),
    plain_scheme: Option<&str>,
    limit: Limit,
) -> Result<Socket, Failure> {
    let peer = stream.peer_addr().ok().filter(|_| plain_scheme.is_some());
    let connector = TlsConnector::from(config.for_node(names));
    let shaking = limit.keep(FailureKind::Tls, "no TLS handshake", connector.connect(names.asked.clone(), stream));
    let shaken = tokio::select! {
        biased;
        shaken = shaking => shaken,
        () = answers_without_tls(peer, limit) => return Err(plain(plain_scheme.unwrap_or_default())),
    };
    match shaken {
        Ok(Ok(stream)) => Ok(Socket::Tls(Box::new(stream))),
        Ok(Err(error)) => Err(failure(&error, plain_scheme)),
        Err(late) => Err(Failure { message: late.message + &plain_scheme.map(advice).unwrap_or_default(), ..late }),
    }
}

/// Ends when what listens at `peer` answers a command without TLS. A Redis without TLS takes the begin of a handshake for a command
/// that is not complete, and waits in silence; so it is asked on another connection. A server that shakes hands soon is not asked.
async fn answers_without_tls(peer: Option<SocketAddr>, limit: Limit) {
    let ask = async {
        tokio::time::sleep((limit.span / 4).min(DUMB)).await;
        let mut stream = TcpStream::connect(peer?).await.ok()?;
        stream.write_all(b"PING\r\n").await.ok()?;
        stream.read_u8().await.ok().filter(|first| matches!(first, b'+' | b'-'))
    };
    if ask.await.is_none() {
        std::future::pending().await
    }
}

/// The failure of a port where something answers, and doesn't speak TLS. That lasts.
fn plain(plain: &str) -> Failure {
    let why =
        format!("what answers there does not speak TLS: its URL begins with {plain}://, or the server has another port for TLS");
    Failure::not_applied(FailureKind::Mismatch, why).for_good()
}

/// The failure of a handshake. A wrong certificate stays wrong, and a port without TLS too, so another attempt is of no use. Where
/// the port may be one without TLS, `plain_scheme` is the scheme of a URL without TLS.
fn failure(error: &io::Error, plain_scheme: Option<&str>) -> Failure {
    let failed = |why: &str| Failure::not_applied(FailureKind::Tls, format!("the TLS handshake failed: {why}"));
    let refusal = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let message = quoted(&error.to_string());
    match (refusal, plain_scheme) {
        (Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)), _) => failed(
            "the server's certificate was signed by an authority that is not trusted here; \
             the option tls_ca (in Node tlsCa) takes the file of its certificate",
        )
        .for_good(),
        (Some(rustls::Error::InvalidCertificate(_)), _) => failed(&message).for_good(),
        // A server without TLS answers with other bytes, or hangs up.
        (Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)), Some(scheme)) => plain(scheme),
        (Some(rustls::Error::InvalidMessage(_)) | None, Some(scheme)) => failed(&(message + &advice(scheme))),
        _ => failed(&message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_and_a_plain_port_fail_for_good_and_a_port_that_is_known_is_not_suspected() {
        use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage as Garbled};
        use rustls::InvalidMessage::{InvalidContentType, MessageTooLarge};
        let alert = rustls::AlertDescription::HandshakeFailure;
        let asks = "does that port speak TLS?";
        for (error, kind, lasting, words) in [
            (io::Error::other(InvalidCertificate(CertificateError::UnknownIssuer)), FailureKind::Tls, true, "tls_ca"),
            (io::Error::other(InvalidCertificate(CertificateError::Expired)), FailureKind::Tls, true, "xpired"),
            (io::Error::other(Garbled(InvalidContentType)), FailureKind::Mismatch, true, "its URL begins with redis://"),
            (io::Error::other(Garbled(MessageTooLarge)), FailureKind::Tls, false, asks),
            (io::ErrorKind::UnexpectedEof.into(), FailureKind::Tls, false, asks),
            (io::ErrorKind::ConnectionReset.into(), FailureKind::Tls, false, asks),
            (io::Error::other(AlertReceived(alert)), FailureKind::Tls, false, "alert"),
        ] {
            let first = failure(&error, Some("redis"));
            assert_eq!((first.kind, first.lasting, first.maybe_applied), (kind, lasting, false), "{first}");
            assert!(first.message.contains(words), "{first}");
            let later = failure(&error, None);
            let certificate = matches!(error.get_ref().and_then(|inner| inner.downcast_ref()), Some(InvalidCertificate(_)));
            assert_eq!((later.kind, later.lasting), (FailureKind::Tls, certificate), "{later}");
            assert!(!later.message.contains("port") && !later.message.contains("redis://"), "{later}");
        }
    }
}
