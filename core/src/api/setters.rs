//! Setters: methods that change one option, and give what they were called on.

/// Makes setters of `$owner` from lines as `name(value: type) |it| change of it;`, by a method that takes the change.
macro_rules! setters {
    ($(#[$about:meta])* $owner:ident, $by:ident: $($(#[$doc:meta])* $name:ident($value:ident: $kind:ty) |$it:ident| $change:expr;)*) => {
        $(#[$about])*
        impl $owner {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self, $value: $kind) -> Self {
                    self.$by(|$it| $change)
                }
            )*
        }
    };
}

pub(crate) use setters;
