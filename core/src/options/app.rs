//! App: the application that owner values name.

use crate::error::Error;
use crate::owner::Signature;

/// The longest application, in UTF-8 bytes.
const MAX_APP_BYTES: usize = 256;

/// The longest owner value, in bytes. Scripts write more behind it, and read a value of up to 1,024 bytes as one of ours.
const MAX_OWNER_BYTES: usize = 960;

/// Refuses an application that is too long, or whose owner values on this host would be.
pub(super) fn check_app(app: &str, host: &str) -> Result<(), Error> {
    if app.len() > MAX_APP_BYTES || app.contains('\0') {
        return Err(Error::invalid("app", app, format!("at most {MAX_APP_BYTES} UTF-8 bytes without NUL")));
    }
    match Signature::new(Some(app), host, 0).longest() {
        ..=MAX_OWNER_BYTES => Ok(()),
        longest => {
            let why = format!(
                "with the host's name its owner values would have {longest} bytes, and the most is {MAX_OWNER_BYTES}: each space, \
                 control character, \"%\" and \"=\" counts as three"
            );
            Err(Error::invalid("app", app, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn an_app_whose_owner_values_would_have_more_than_960_bytes_is_refused() {
        let (spaces, letters) = (" ".repeat(256), "a".repeat(256));
        for (app, host, ok) in [
            (&*letters, "h".repeat(64), true),
            (&*spaces, "h".repeat(64), true),
            (&*spaces, "h".repeat(99), true),
            (&*spaces, "h".repeat(100), false),
            (&*spaces, " ".repeat(64), false),
            ("", "h".repeat(255), true),
        ] {
            let refused = check_app(app, &host).err();
            assert_eq!(refused.as_ref().map(Error::code), (!ok).then_some(Code::InvalidArgument), "{} {host}", app.len());
            assert!(refused.is_none_or(|error| error.argument() == Some("app") && error.to_string().contains("the most is 960")));
        }
    }
}
