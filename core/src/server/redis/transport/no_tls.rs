//! No TLS: what stands for it where the crate is built without the feature `tls`.

use std::sync::Arc;

use tokio::net::TcpStream;

use crate::error::Error;
use crate::op::Failure;
use crate::options::ClientOptions;
use crate::server::redis::tls_names::TlsNames;
use crate::server::redis::transport::socket::Socket;
use crate::server::redis::transport::stream::Limit;

/// The settings of a client: there are none.
pub(crate) enum Tls {}

/// Refuses the URL of a server with TLS.
pub(crate) fn config(_options: &ClientOptions) -> Result<Arc<Tls>, Error> {
    Err(Error::invalid("url", "rediss", "this program was built without the feature `tls` of the crate locktender"))
}

#[expect(clippy::unused_async, reason = "as with TLS")]
pub(crate) async fn shake_hands(
    _stream: TcpStream,
    (_names, config): (&TlsNames, &Tls),
    _plain_scheme: Option<&str>,
    _limit: Limit,
) -> Result<Socket, Failure> {
    match *config {}
}

#[cfg(test)]
mod tests {
    use crate::{Client, Code};

    #[test]
    fn a_url_with_tls_is_refused_with_the_name_of_the_feature() {
        for url in
            ["rediss://h", "valkeys://h", "redis+sentinel://h/s?sentinel_tls=yes", "rediss+sentinel://h/s", "rediss+cluster://h"]
        {
            let error = Client::open(url).unwrap_err();
            assert_eq!((error.code(), error.argument()), (Code::InvalidArgument, Some("url")), "{url}");
            assert!(error.to_string().contains("feature `tls`"), "{url}: {error}");
        }
        assert!(Client::open("redis://h").is_ok());
    }
}
