//! What the core lists, options and fields of events: Python's stubs and Node's types name the same.

use std::collections::BTreeSet;
use std::fs;

use locktender::host::{Field, Language, Place, empty_event, options_of};
use locktender_tests::checkout;

const STUBS: &str = "bindings-python/python/locktender";
const TYPES: &str = "bindings-node/lib";

fn text_of(folder: &str, file: &str) -> String {
    fs::read_to_string(checkout().join(folder).join(file)).unwrap_or_default()
}

/// The names in the block below the line that begins with `head`: those behind `prefix`, in front of `end`.
fn names(text: &str, head: &str, prefix: &str, end: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let rest = line.strip_prefix(prefix)?;
        let length = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').filter(|length| *length > 0)?;
        rest[length..].starts_with(end).then(|| rest[..length].to_owned())
    };
    let block = text.lines().skip_while(|line| !line.starts_with(head)).skip(1);
    block.take_while(|line| line.is_empty() || line.starts_with(' ')).filter_map(name).collect()
}

fn listed(place: Place, language: Language, without: Option<Place>) -> BTreeSet<String> {
    let spelled = |place| options_of(place, language).into_iter().map(|(name, _)| language.spell(name).into_owned());
    let base: BTreeSet<_> = without.into_iter().flat_map(spelled).collect();
    spelled(place).filter(|name| !base.contains(name)).collect()
}

#[test]
fn the_stubs_of_python_name_the_cores_options() {
    for (file, class, place, base) in [
        ("_native_options.pyi", "class _LockOptions(", Place::Lock, None),
        ("_native_options.pyi", "class _JobOptions(", Place::Job, Some(Place::Lock)),
        ("_native_options.pyi", "class _CronJobOptions(", Place::CronJob, Some(Place::Lock)),
        ("_native_client.pyi", "class _ClientOptions(", Place::Client, Some(Place::Lock)),
    ] {
        assert_eq!(names(&text_of(STUBS, file), class, "    ", ":"), listed(place, Language::Python, base), "{class}");
    }
}

/// What several locks at once have none of.
const OF_ONE: [&str; 2] = ["fair", "min_hold"];

#[test]
fn the_stubs_of_python_name_the_options_of_several_locks() {
    let mut options = listed(Place::Lock, Language::Python, None);
    options.retain(|name| !OF_ONE.contains(&name.as_str()));
    assert_eq!(names(&text_of(STUBS, "_native_options.pyi"), "class _MultiLockOptions(", "    ", ":"), options);
}

#[test]
fn the_types_of_node_name_the_cores_options() {
    let types = text_of(TYPES, "options.ts");
    for (interface, place, base) in [
        ("export interface LockOptions ", Place::Lock, None),
        ("export interface JobOptions ", Place::Job, Some(Place::Lock)),
        // It has what is a job's own and no option of once left out.
        ("export interface CronJobOptions ", Place::CronJob, Some(Place::Job)),
        ("export interface FailOptions ", Place::Fail, None),
        ("export interface ClientOptions ", Place::Client, Some(Place::Lock)),
        ("export interface AcquireOptions ", Place::Acquire, None),
    ] {
        assert_eq!(names(&types, interface, "  ", "?:"), listed(place, Language::Node, base), "{interface}");
    }
}

#[test]
fn stubs_and_types_name_the_fields_of_an_event() {
    let event = empty_event();
    let fields = || event.fields().into_iter();
    let python: BTreeSet<_> =
        fields().map(|(name, _)| name.to_owned()).chain(["kind", "level", "at"].map(str::to_owned)).collect();
    let mut stub = names(&text_of(STUBS, "_native_events.pyi"), "class LockEvent:", "    def ", "(");
    assert!(stub.remove("line_protocol"));
    stub.retain(|name| !name.starts_with("__"));
    assert_eq!(stub, python);
    let spelled = |(name, field): (&str, Field<'_>)| match field {
        Field::Time(_) | Field::Measured(_) => format!("{}Ms", Language::Node.spell(name)),
        _ => Language::Node.spell(name).into_owned(),
    };
    let node: BTreeSet<_> = fields().map(spelled).chain(["kind", "atMs"].map(str::to_owned)).collect();
    assert_eq!(names(&text_of(TYPES, "events.ts"), "export interface LockEvent ", "  readonly ", ":"), node);
}
