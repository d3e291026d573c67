//! Matching: a step's values with their variables filled in, and whether the seen values are the expected ones.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// `$name` and what steps have kept.
#[derive(Default)]
pub struct Variables(BTreeMap<String, Value>);

impl Variables {
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(format!("${key}"), value.into());
    }

    /// The value with every variable and every `repeat` in it replaced.
    pub fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.0.get(text).cloned().unwrap_or_else(|| self.fill_text(text).into()),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => match (fields.get("repeat"), fields.get("times")) {
                (Some(Value::String(text)), Some(times)) => text.repeat(times.as_u64().unwrap() as usize).into(),
                _ => fields.iter().map(|(key, value)| (key.clone(), self.fill(value))).collect::<Map<_, _>>().into(),
            },
            other => other.clone(),
        }
    }

    /// Longer names first, so that `$name` doesn't eat the start of `$names`.
    fn fill_text(&self, text: &str) -> String {
        self.0.iter().rev().fold(text.to_owned(), |text, (key, value)| match value {
            Value::String(value) => text.replace(key, value),
            other => text.replace(key, &other.to_string()),
        })
    }
}

/// Why `seen` is not what is expected, if it isn't.
pub fn mismatch(expected: &Value, seen: &Value) -> Option<String> {
    let is = match expected {
        Value::String(any) if any == "*" => !seen.is_null(),
        Value::Array(range) if range.len() == 2 && range.iter().all(Value::is_number) && seen.is_number() => {
            (number(&range[0])..=number(&range[1])).contains(&number(seen))
        }
        Value::Array(items) => match seen.as_array() {
            Some(seen) if seen.len() == items.len() => {
                return items.iter().zip(seen).find_map(|(item, seen)| mismatch(item, seen));
            }
            _ => false,
        },
        Value::Object(fields) => match fields.iter().next() {
            Some((key, bound)) if key == "above" => number(seen) > number(bound),
            Some((key, bound)) if key == "below" => number(seen) < number(bound),
            Some((key, Value::Array(parts))) if key == "has" || key == "lacks" => {
                seen.as_str().is_some_and(|text| parts.iter().all(|part| text.contains(part.as_str().unwrap()) == (key == "has")))
            }
            Some((key, Value::Object(texts))) if key == "says" => {
                let text = texts["rust"].as_str().unwrap();
                return (!matches_text(text, seen.as_str().unwrap_or_default()))
                    .then(|| format!("expected {text:?}, saw {seen}"));
            }
            Some((key, Value::Object(wanted))) if key == "owner_with" => {
                let owner = fields_of(seen.as_str().unwrap_or_default());
                if !wanted.keys().eq(owner.keys()) {
                    return Some(format!("other fields: {seen}"));
                }
                return mismatch(&wanted.clone().into(), &owner.into());
            }
            _ => {
                return fields.iter().find_map(|(key, value)| mismatch(value, &seen[key]).map(|why| format!("{key}: {why}")));
            }
        },
        Value::Number(_) if seen.is_number() => number(expected) == number(seen),
        other => other == seen,
    };
    (!is).then(|| format!("expected {expected}, saw {seen}"))
}

/// Whether a text is what is expected, in which `…` stands for anything.
fn matches_text(expected: &str, seen: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = parts.next().and_then(|first| seen.strip_prefix(first)) else { return false };
    let mut open = false;
    for part in parts {
        open = true;
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || open && expected.ends_with('…')
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// The fields of an owner value, read by other means than the library's.
fn fields_of(owner: &str) -> Map<String, Value> {
    owner.split(' ').filter_map(|field| field.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect()
}
