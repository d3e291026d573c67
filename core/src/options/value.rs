//! Values of options as a binding gives them. Each option is one row, with the kind of its value, and a binding has no list of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::credentials::SharedProvider;
use crate::error::Error;

/// The kind of value that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// A time.
    Time,
    /// A time, or no end.
    EndlessTime,
    /// True or false.
    Switch,
    /// A whole number, from the least to the most.
    Count(u32, u32),
    /// A text.
    Text,
    /// The path of a file.
    Path,
    /// A text that is one of a few, and the sentence that names them.
    Choice(&'static str),
    /// A point in time.
    Instant,
    /// Addresses by addresses.
    Addresses,
    /// A function, or another value that only the binding understands: it sets none here.
    Function,
}

/// A value for an option.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "as in ValueKind")]
pub enum Value {
    Time(Duration),
    Endless,
    Switch(bool),
    Count(u32),
    Text(String),
    Instant(SystemTime),
    Addresses(BTreeMap<String, String>),
}

/// An option of `T`: one of its fields.
#[derive(Debug)]
#[non_exhaustive]
pub struct OptionRow<T: 'static> {
    /// Its name, as in Rust.
    pub name: &'static str,
    /// What it takes.
    pub kind: ValueKind,
    pub(super) set: fn(&mut T, Value) -> Result<(), Error>,
}

impl<T> OptionRow<T> {
    /// Sets the option.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: it has another kind, or is none of the choices.
    pub fn set(&self, options: &mut T, value: Value) -> Result<(), Error> {
        (self.set)(options, value)
    }
}

/// Options that a binding sets by their names.
pub trait Options: Sized + 'static {
    /// All of them, in the order in which they are listed for a reader.
    const ROWS: &'static [OptionRow<Self>];

    /// The option of that name.
    #[must_use]
    fn row(name: &str) -> Option<&'static OptionRow<Self>> {
        Self::ROWS.iter().find(|row| row.name == name)
    }
}

/// Makes `Options` of an owner from its fields, with the kind of each. A field without a kind is no option of a binding.
macro_rules! option_rows {
    ($owner:ty: $($option:ident $(($($kind:tt)+))?,)*) => {
        impl $crate::options::value::Options for $owner {
            const ROWS: &'static [$crate::options::value::OptionRow<Self>] = &[$($(
                $crate::options::value::OptionRow {
                    name: stringify!($option),
                    kind: $crate::options::value::ValueKind::$($kind)+,
                    set: |options, value| {
                        options.$option = $crate::options::value::FromValue::from_value(value)?;
                        Ok(())
                    },
                },
            )?)*];
        }
    };
}

/// Makes the options that a user gave: a struct with an `Option` for each.
macro_rules! overrides {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* $option:ident($($kind:tt)+): $type:ty;)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])* pub $option: Option<$type>,)*
        }

        impl $name {
            /// These settings, and `others` where nothing is given.
            pub(crate) fn or(self, others: &Self) -> Self {
                Self { $($option: self.$option.or_else(|| others.$option.clone()),)* }
            }
        }

        $crate::options::value::option_rows! { $name: $($option($($kind)+),)* }
    };
}

/// What an option holds.
pub(crate) trait FromValue: Sized {
    fn from_value(value: Value) -> Result<Self, Error>;
}

pub(crate) fn other_kind(value: &Value) -> Error {
    Error::invalid("options", value, "is a value of another kind")
}

macro_rules! from_value {
    ($($type:ty: $($pattern:pat => $made:expr),+;)*) => {
        $(impl $crate::options::value::FromValue for $type {
            fn from_value(value: $crate::options::value::Value) -> Result<Self, $crate::error::Error> {
                match value {
                    $($pattern => Ok($made),)+
                    other => Err($crate::options::value::other_kind(&other)),
                }
            }
        })*
    };
}

pub(crate) use {from_value, option_rows, overrides};

from_value! {
    Duration: Value::Time(span) => span;
    bool: Value::Switch(switch) => switch;
    u32: Value::Count(count) => count;
    String: Value::Text(text) => text;
    Arc<str>: Value::Text(text) => text.into();
    SystemTime: Value::Instant(at) => at;
    BTreeMap<String, String>: Value::Addresses(addresses) => addresses;
}

/// A binding has functions of its own, and sets none here.
impl FromValue for SharedProvider {
    fn from_value(value: Value) -> Result<Self, Error> {
        Err(other_kind(&value))
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Self, Error> {
        if matches!(value, Value::Endless) { Ok(None) } else { T::from_value(value).map(Some) }
    }
}
