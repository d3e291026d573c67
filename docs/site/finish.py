"""What is done to the built site: links to edit each page, llms.txt, and a check of all that its HTML asks for."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import yaml
from pages import GITHUB, listed, sources, write

HERE = Path(__file__).resolve().parent
SITE = "https://locktender.github.io/locktender/"
EDIT = GITHUB + "edit/main/"
# Where the text of a page is that no person wrote, by the beginning of its place.
GENERATED = {"reference/python/": "bindings-python/python/locktender", "reference/node/": "bindings-node/lib"}
# Attributes that make a browser load something.
LOADED = {"link": "href", "script": "src", "img": "src", "source": "src", "iframe": "src", "object": "data", "video": "src"}
# Relations of a link of HTML that loads nothing.
NAMED = {"canonical", "prev", "next", "edit", "alternate", "index"}


class Reader(HTMLParser):
    """One page: its anchors, its links, what it loads, its title and its first paragraph."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if LOADED.get(tag) in values and values.get("rel") not in NAMED:
            self.loads.append(values[LOADED[tag]])


def place(file: Path, site: Path) -> str:
    """The address of a built file."""
    return urljoin(SITE, file.relative_to(site).as_posix().removesuffix("index.html"))


def faults(site: Path) -> list[str]:
    """Every link and anchor within the site that leads nowhere, and everything that a page loads from elsewhere."""
    read = {place(file, site): Reader(file.read_text()) for file in sorted(site.rglob("*.html"))}
    found = []
    for page, reader in read.items():
        for each in (*reader.links, *reader.loads):
            target, anchor = urldefrag(urljoin(page, each))
            if urlsplit(target).scheme in ("mailto", "data"):
                continue
            if not target.startswith(SITE):
                found += [f"{page} loads {each}"] if each in reader.loads else []
            elif target in read:
                known = not anchor or unquote(anchor) in read[target].anchors or anchor.startswith("__")
                found += [] if known else [f"{page}: no anchor {each}"]
            elif not (site / unquote(target.removeprefix(SITE))).is_file():
                found.append(f"{page}: no page {each}")
    for style in site.rglob("*.css"):
        found += [f"{style.name} loads {address}" for address in re.findall(r"url\([\"']?(https?://[^)]+)\)|@import", style.read_text())]
    return found


def edit_links(site: Path) -> None:
    """The generator knows pages of docs/ only."""
    files = sources()
    for html in site.rglob("*.html"):
        page = html.relative_to(site).parent.as_posix().removeprefix(".")

        def where(match: re.Match[str], page: str = page) -> str:
            file = files.get(match[1])
            kind = [folder for begin, folder in GENERATED.items() if match[1].startswith(begin)]
            return f'href="{GITHUB}tree/main/{kind[0]}"' if kind else f'href="{EDIT}{file}"'

        html.write_text(re.sub(rf'href="{EDIT}docs/([^"]+)"', where, html.read_text()))


def offline(site: Path) -> None:
    """Takes out what the theme would load: libraries for parts that no page has, and the stars of the repository."""
    for script in site.rglob("bundle.*.js"):
        script.write_text(script.read_text().replace("https://unpkg.com/", "/"))
    for html in site.rglob("*.html"):
        html.write_text(html.read_text().replace(' data-md-component="source"', ""))


def summary(text: str) -> tuple[str, str]:
    """The title of a page, and its first sentence."""
    plain = re.sub(r"```.*?```|<[^>]+>", "", text, flags=re.DOTALL)
    title = re.search(r"^# (.+)$", plain, re.MULTILINE)
    assert title, text[:80]
    paragraphs = [part for part in plain[title.end() :].split("\n\n") if re.match(r"\s*[\w*`\[]", part) and not re.match(r"\s*(\*|\d+\.) |:::", part)]
    first = " ".join(paragraphs[0].split()) if paragraphs else ""
    first = re.sub(r"\[([^\]]+)\][(\[][^)\]]*[)\]]", r"\1", first).replace("**", "")
    return title[1].replace("`", ""), re.split(r"(?<=[.:]) (?=[A-Z`])", first)[0].rstrip(":")


def llms(site: Path, pages: Path) -> None:
    """llms.txt: the pages for language models, as Markdown, in the order of the navigation."""
    config = yaml.safe_load((HERE / "mkdocs.yml").read_text())
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}", ""]
    for section in config["nav"]:
        [(name, entries)] = section.items()
        lines += [f"## {name}", ""]
        for page in listed(entries):
            title, first = summary((pages / page).read_text())
            address = urljoin(SITE, re.sub(r"(^|/)index\.md$|\.md$", r"\1", page).rstrip("/") + "/" if page != "index.md" else "")
            if not page.startswith(tuple(GENERATED)):
                write(site / page, (pages / page).read_text())
                address = urljoin(SITE, page)
            lines.append(f"- [{title}]({address})" + (f": {first}" if first else ""))
        lines.append("")
    write(site / "llms.txt", "\n".join(lines))


def finish(site: Path, pages: Path) -> None:
    """Everything, and an exception with all that is wrong."""
    edit_links(site)
    llms(site, pages)
    offline(site)
    wrong = faults(site)
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    finish(HERE / ".build/site", HERE / ".build/pages")
