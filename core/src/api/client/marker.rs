//! The markers of the servers, for an operator: whether each of them belongs to a quorum.

use super::Client;
use crate::error::{Error, ServerFailure};
use crate::io::call::Call;
use crate::op::{Answer, Failure, FailureKind, Op, Verdict};

/// The text of each server's marker with the server's address, or why it can't be shown.
pub type Markers = Vec<(String, Result<Option<String>, ServerFailure>)>;

impl Client {
    /// The servers' markers. With `remove` they are deleted instead.
    #[doc(hidden)]
    pub fn markers(&self, remove: bool) -> Call<Markers> {
        self.ask_servers(vec![Op::Marker { remove }], move |servers| {
            move |answers: &[Option<Answer>]| {
                let shown = servers.iter().zip(answers).map(|(server, answer)| {
                    let text = match answer.as_ref()? {
                        Ok(reply) => match &reply.verdict {
                            Verdict::Marker(text) => Ok(text.clone()),
                            other => Err(Failure::not_applied(FailureKind::Other, format!("the marker is {other:?}"))),
                        },
                        Err(failure) => Err(failure.clone()),
                    };
                    Some((server.clone(), text.map_err(|failure| ServerFailure::of(server, &failure))))
                });
                shown.collect::<Option<Vec<_>>>().map(Ok::<_, Error>)
            }
        })
    }
}
