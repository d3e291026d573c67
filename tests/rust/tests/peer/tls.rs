//! TLS in front of a server that was built without TLS.

use std::sync::Arc;
use std::thread;

use locktender_tests::certificate;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};

/// Ends TLS with the certificate of that name before the server on `port`; returns the URL. Runs until the test process ends.
pub fn terminate(port: u16, name: &str, asks_clients: bool) -> String {
    let acceptor = TlsAcceptor::from(Arc::new(config(name, asks_clients)));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("rediss://localhost:{}", listener.local_addr().unwrap().port());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    thread::spawn(move || runtime.block_on(serve(listener, acceptor, port)));
    url
}

async fn serve(listener: std::net::TcpListener, acceptor: TlsAcceptor, port: u16) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (outer, _) = listener.accept().await.unwrap();
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // A client that refuses the certificate, or has none itself, ends here.
            let Ok(mut outer) = acceptor.accept(outer).await else { return };
            let mut inner = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
        });
    }
}

fn config(name: &str, asks_clients: bool) -> ServerConfig {
    let provider = Arc::new(crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate("ca.pem")).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = match asks_clients {
        true => builder.with_client_cert_verifier(verifier),
        false => builder.with_no_client_auth(),
    };
    let chain = vec![CertificateDer::from_pem_file(certificate(&format!("{name}.pem"))).unwrap()];
    builder.with_single_cert(chain, PrivateKeyDer::from_pem_file(certificate(&format!("{name}.key"))).unwrap()).unwrap()
}
