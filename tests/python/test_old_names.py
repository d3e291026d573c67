"""Names that nothing has any more, in any of the three languages: none is in a list of public names, and each is answered with the new one."""

import pickle
import re
import threading
import traceback
from pathlib import Path

import locktender
import pytest
from locktender import Client, InvalidArgumentError, LockLostError
from support.help import help_texts

ROOT = Path(__file__).parents[2]
STUBS = ROOT / "bindings-python/python/locktender"

# The old name in the spelling of Python and Rust, and the new one. An option or a member is answered with it.
OPTIONS = {"late": "max_lateness", "overlap": "on_overlap", "keep": "retention", "replicas": "min_replicas", "family": "category", "name": "pickle_name"}
MEMBERS = {
    "client": {"once": "cron_job", "elect": "election", "report": "check_servers"},
    "lock": {"skip": "skip_if_busy"},
    "attempt": {"done": "complete", "give_back": "release"},
}
TYPES = {
    "Event": "LockEvent",
    "Body": "LockCallback",
    "Server": "ServerSource",
    "Work": "JobWork",
    "Held": "Hold",
    "AsyncHeld": "AsyncHold",
    "OnceOptions": "CronJobOptions",
    "NotRun": "NotRunReason",
    "Ran": "TryOutcome",
    "ServerError": "ServerFailure",
    "WithError": "RunError",
    "JobError": "RunError",
    "LeadError": "RunError",
}
FIELDS = {
    "fire_time": "scheduled_time",
    "family": "category",
    "rival": "next_owner",
    "rival_fence": "next_fence",
    "old_era": "old_replication_id",
    "new_era": "new_replication_id",
    "no_expiry": "remaining",
}
EVENTS = {"race": "overlapped", "woken": "acquired", "attempt": "round", "failed": "acquire_failed"}


def camel(name: str) -> str:
    return re.sub("_([a-z])", lambda letter: letter[1].upper(), name)


@pytest.fixture(scope="module")
def lists() -> dict[str, str]:
    """The lists of public names. Comments are prose."""
    node = (ROOT / "bindings-node/public-types.txt").read_text()
    node = re.sub(r"/\*\*.*?\*/", "", node, flags=re.DOTALL)
    stubs = "\n".join(path.read_text() for path in sorted(STUBS.glob("*.pyi")))
    stubs = re.sub(r'""".*?"""', "", stubs, flags=re.DOTALL)
    return {"rust": (ROOT / "core/public-api.txt").read_text(), "node": node, "python": stubs}


@pytest.mark.parametrize("old", [*TYPES, *FIELDS])
def test_an_old_name_is_no_identifier_any_more(lists: dict[str, str], old: str):
    for language, text in lists.items():
        # A state may be `Held`, but no type.
        kind = r"\b(struct|enum|trait|type) " if language == "rust" and old in TYPES else r"\b"
        for name in {old, camel(old)}:
            assert not re.search(rf"{kind}{name}\b", text), (language, name)


@pytest.mark.parametrize("old", EVENTS)
def test_no_event_has_an_old_name(lists: dict[str, str], old: str):
    kinds = {
        "rust": set(re.findall(r"^EventKind::(\w+)$", lists["rust"], re.MULTILINE)),
        "python": set(re.findall(r'"(\w+)"', lists["python"].split("def kind(", 1)[1].split("...", 1)[0].split("def ", 1)[0])),
        "node": set(re.findall(r"'(\w+)'", lists["node"].split("type EventKind", 1)[1].split(";", 1)[0])),
    }
    new = EVENTS[old]
    for language, names in kinds.items():
        spelled = (lambda name: name.title().replace("_", "")) if language == "rust" else str
        assert spelled(new) in names and spelled(old) not in names, (language, sorted(names))


# Handles have a `name`, too.
@pytest.mark.parametrize("old", [*sorted(OPTIONS.keys() - {"name"}), *(name for names in MEMBERS.values() for name in names)])
def test_an_old_option_or_method_is_in_no_list(lists: dict[str, str], old: str):
    # EventEmitter has a `once`, which is not ours.
    methods = {
        "rust": rf"pub fn (Attempt|Client|ClientBuilder|Job|Lock)::{old}\(",
        "python": rf"^    (async )?def {old}\(|^    {old}: ",
        "node": rf"^    (async )?{camel(old)}\((?!<)|^    {camel(old)}(Ms)?\?: ",
    }
    for language, pattern in methods.items():
        assert not re.search(pattern, lists[language], re.MULTILINE), (language, old)


@pytest.mark.parametrize(("old", "new"), OPTIONS.items())
def test_an_old_option_is_answered_with_the_new_one(client: Client, old: str, new: str):
    call = (lambda **option: Client("memory://old", **option)) if old in ("replicas", "name") else (lambda **option: client.cron_job("x", every=60, **option))
    if old == "keep":  # a cron job has none
        call = lambda **option: client.job("x", **option)  # noqa: E731
    with pytest.raises(InvalidArgumentError, match=rf"^{old}: .*{new}"):
        call(**{old: 1})


def test_the_command_and_the_metrics_have_no_old_name(client: Client):
    texts = help_texts()
    assert "cron-job" in texts and "once" not in texts
    for option in ("late", "overlap", "keep", "family", "replicas"):
        assert not [command for command, text in texts.items() if re.search(rf"--{option}\b(?!-)", text)], option
    names = {metric.name for metric in client.metrics()}
    labels = {label for metric in client.metrics() for sample in metric.samples for label in sample.labels}
    assert "locktender_acquire_rounds_total" in names and "locktender_attempts_total" not in names and "family" not in labels


# The classes that the module had. All others of `TYPES` are types of Node and Rust alone.
CLASSES = {old: TYPES[old] for old in ("Event", "Held", "AsyncHeld", "Ran", "ServerError")}


@pytest.mark.parametrize(("old", "new"), [("once", "cron_job()"), ("elect", "election()"), *CLASSES.items()])
def test_an_old_name_of_the_module_is_answered_with_the_new_one(old: str, new: str):
    with pytest.raises(AttributeError, match=rf"^module 'locktender' has no attribute '{old}'; here it is {re.escape(new)}$"):
        getattr(locktender, old)
    with pytest.raises(AttributeError, match=r"^module 'locktender' has no attribute 'nonsense'$"):
        _ = locktender.nonsense


# A value's field, and what stands in its place.
VALUES = [
    ("event", "rival", "holder"),
    ("event", "rival_fence", "holder_fence"),
    ("event", "old_era", "old_replication_id"),
    ("event", "family", "category"),
    ("release", "rival", "next_owner"),
    ("status", "fire_time", "scheduled_time"),
    ("info", "no_expiry", "remaining"),
]


@pytest.mark.parametrize(("value", "old", "new"), VALUES)
def test_an_old_field_is_answered_with_the_new_one(name: str, value: str, old: str, new: str):
    events, came = [], threading.Event()
    client = Client("memory://old-fields", on_event=lambda event: (events.append(event), came.set()))
    hold = client.lock(name).acquire()
    info = client.lock(name).inspect()
    release = hold.release()
    assert came.wait(60)
    client.close()
    values = {"event": events[0], "release": release, "info": info, "status": Client("memory://old-fields").job("x").status()}
    with pytest.raises(AttributeError, match=rf"has no attribute '{old}'; here (it is|they are) .*{new}"):
        getattr(values[value], old)


@pytest.mark.parametrize(("old", "new"), [("rival", "next_owner"), ("rival_fence", "next_fence"), ("no_expiry", "remaining")])
def test_an_old_field_of_an_error_is_answered_with_the_new_one(old: str, new: str):
    error = LockLostError("gone")
    with pytest.raises(AttributeError, match=rf"^'LockLostError' object has no attribute '{old}'; here it is .*{new}"):
        getattr(error, old)
    with pytest.raises(AttributeError, match=r"^'LockLostError' object has no attribute '_x'$"):
        _ = error._x
    assert not hasattr(error, "exceptions") and getattr(error, "errno", None) is None
    assert traceback.format_exception(error)[-1].endswith("LockLostError: gone\n")
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.args, copied.next_owner) == (("gone",), None)


def test_a_method_of_rust_is_answered_in_the_words_of_python(client: Client, name: str):
    with client.lock(name) as hold, pytest.raises(AttributeError, match=r"'extend_by'; here it is extend\(\) of the hold, with by$"):
        _ = hold.extend_by


@pytest.mark.parametrize(("subject", "old", "new"), [(subject, *pair) for subject, names in MEMBERS.items() for pair in names.items()])
def test_an_old_method_is_answered_with_the_new_one(client: Client, name: str, subject: str, old: str, new: str):
    with client.job(name).begin() as attempt:  # type: ignore[union-attr]
        which = {"client": client, "lock": client.lock(name), "attempt": attempt}[subject]
        with pytest.raises(AttributeError, match=rf"no attribute '{old}'; here it is {new}"):
            getattr(which, old)
