"""The first page of the site: the README's first screen, four doors, and the list of all pages."""

from pathlib import Path

from pages import FILE, ROOT, staged, write

# Where each door leads: the page, its title, one sentence.
DOORS = [
    ("tutorials/python.md", "Get started", "The first lock, job and election, in Python, Node.js or Rust."),
    ("how-to/fastapi.md", "How-to guides", "Web services, task queues, schedules, leader election, semaphores; servers, tests, dashboards."),
    ("api.md", "Reference", "The API in three languages, options, errors, metrics, the command, the wire format."),
    ("why-not-set-nx.md", "Explanation", "What is guaranteed and what breaks it, how waiting works, measurements, a comparison."),
]


def between(text: str, begin: str, end: str) -> str:
    """A part of a page, from one line up to another."""
    assert text.count(begin) == 1 and end in text, f"{begin} … {end}"
    return begin + text.partition(begin)[2].partition(end)[0]


def home(places: dict[str, str]) -> str:
    """The page, before its links are changed."""
    readme = (ROOT / "README.md").read_text().replace("(#from-a-checkout)", f"({FILE}README.md#from-a-checkout)")
    screen = between(readme, "# locktender\n", "The next steps:")
    choice = between(readme, "## Is it for you?\n", "It has a price.")
    overview = "## " + (ROOT / "docs/index.md").read_text().partition("\n## ")[2]
    doors = "".join(
        f'<a class="door" href="{page.removesuffix(".md")}/"><strong>{title}</strong><span>{text}</span></a>\n' for page, title, text in DOORS
    )
    text = staged(screen + choice, "README.md", "index.md", places)
    # After the claim, before the details.
    claim, mark, rest = text.partition("\n![")
    return f'---\ntitle: Home\nhide: [navigation, toc]\n---\n\n{claim}\n<div class="doors">\n{doors}</div>\n{mark}{rest}' + staged(
        overview, "docs/index.md", "index.md", places
    )


def stage(pages: Path, places: dict[str, str]) -> None:
    """Writes it in the place of docs/index.md."""
    missing = [page for page, *_ in DOORS if page not in places.values()]
    assert not missing, missing
    write(pages / "index.md", home(places))
