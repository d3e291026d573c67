//! Login: a user and a password, as they are sent to a server. Pure.

/// A user and a password. Without any, nothing is sent.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

impl Login {
    /// The command that shows the credentials, if there are any.
    pub(crate) fn command(&self) -> Option<Vec<u8>> {
        let password = self.password.as_ref()?;
        let mut command = redis::cmd("AUTH");
        if let Some(user) = &self.user {
            command.arg(user);
        }
        Some(command.arg(password).get_packed_command())
    }

    /// Whether a text has the password in it. A server cuts the words that it repeats, so the beginning of the password is looked for.
    pub(crate) fn is_repeated_in(&self, text: &str) -> bool {
        let password = self.password.as_deref().unwrap_or_default();
        let begin = password.char_indices().nth(6).map_or(password, |(end, _)| &password[..end]);
        !begin.is_empty() && text.contains(begin)
    }
}
