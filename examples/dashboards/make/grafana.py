"""Grafana: the parts of a dashboard, in the form in which Grafana imports them."""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

WIDTH = 24
RED, ORANGE, GREEN, BLUE, PURPLE, YELLOW = "red", "orange", "green", "blue", "purple", "yellow"

# What means the same has the same colour in every panel: red is a proved overlap, and nothing else in a graph is red.
COLOURS = {
    "overlapped": RED,
    "unknown": ORANGE,
    "acquired": GREEN,
    "done": GREEN,
    "busy": YELLOW,
    "retry": YELLOW,
    "round": BLUE,
    "dead": PURPLE,
    "acquire_failed": PURPLE,
}


@dataclass
class Panel:
    """One panel. `columns` is its width, of 24, and `rows` its height."""

    kind: str
    title: str
    description: str
    targets: list[Json]
    unit: str = "short"
    columns: int = 12
    rows: int = 8
    decimals: int | None = None
    custom: Json = field(default_factory=dict)
    options: Json = field(default_factory=dict)
    defaults: Json = field(default_factory=dict)
    overrides: list[Json] = field(default_factory=list)
    transformations: list[Json] = field(default_factory=list)
    interval: str | None = None

    def json(self, number: int, x: int, y: int, source: Json) -> Json:
        defaults: Json = {"unit": self.unit, **self.defaults, "custom": self.custom}
        if self.decimals is not None:
            defaults["decimals"] = self.decimals
        panel: Json = {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": source,
            "gridPos": {"x": x, "y": y, "w": self.columns, "h": self.rows},
            "fieldConfig": {"defaults": defaults, "overrides": self.overrides},
            "options": self.options,
            "targets": [{"refId": chr(ord("A") + at), **each} for at, each in enumerate(self.targets)],
        }
        if self.transformations:
            panel["transformations"] = self.transformations
        if self.interval:
            panel["interval"] = self.interval
        return panel


def steps(*pairs: tuple[float, str]) -> Json:
    """Thresholds: green, and from each value on another colour."""
    found = [{"value": None, "color": GREEN}, *({"value": value, "color": colour} for value, colour in pairs)]
    return {"thresholds": {"mode": "absolute", "steps": found}, "color": {"mode": "thresholds"}}


def override(name: str, **properties: Any) -> Json:
    """Other settings for the series or the column of this name; `custom__x` is written for `custom.x`."""
    found = [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": found}


def coloured(targets: list[Json]) -> list[Json]:
    """The colours of the series that these queries may show. A legend that is filled in may become any name."""
    legends = [each.get("legendFormat") or each.get("alias", "") for each in targets]
    filled_in = any(legend in ("{{end}}", "{{overlap}}", "$tag_event") for legend in legends)
    names = [name for name in COLOURS if filled_in or name in legends]
    return [override(name, color={"mode": "fixed", "fixedColor": COLOURS[name]}) for name in names]


def reduced() -> Json:
    """One number for each series: its last."""
    return {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "orientation": "auto"}


def stat(
    title: str, description: str, targets: list[Json], *thresholds: tuple[float, str], unit: str = "short", none: str = "no data"
) -> Panel:
    """One big number, coloured by thresholds."""
    options: Json = {"colorMode": "background" if thresholds else "value", "graphMode": "none", "justifyMode": "auto", "textMode": "auto"}
    options |= {"percentChangeColorMode": "standard", "showPercentChange": False, "wideLayout": True, **reduced()}
    defaults = {**steps(*thresholds), "noValue": none}
    return Panel("stat", title, description, targets, unit, columns=4, rows=4, options=options, defaults=defaults)


def graph(title: str, description: str, targets: list[Json], unit: str = "short", stacked: bool = False, **more: Any) -> Panel:
    """Lines over time; stacked, they are areas."""
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 30 if stacked else 5, "showPoints": "auto", "spanNulls": False}
    if stacked:
        custom["stacking"] = {"mode": "normal", "group": "A"}
    return _series(title, description, targets, unit, custom, more)


def bars(title: str, description: str, targets: list[Json], unit: str = "short", **more: Any) -> Panel:
    """Counts, one bar for each minute or longer."""
    custom = {"drawStyle": "bars", "lineWidth": 1, "fillOpacity": 80, "stacking": {"mode": "normal", "group": "A"}}
    return _series(title, description, targets, unit, custom, {"interval": "1m", "decimals": 0, **more})


def _series(title: str, description: str, targets: list[Json], unit: str, custom: Json, more: Json) -> Panel:
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    options = {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    overrides = [*coloured(targets), *more.pop("overrides", [])]
    looks: Json = {"custom": custom, "options": options, "defaults": {"min": 0, "color": {"mode": "palette-classic"}}}
    return Panel("timeseries", title, description, targets, unit, overrides=overrides, **looks, **more)


def share(title: str, description: str, targets: list[Json], unit: str = "percentunit", **more: Any) -> Panel:
    """A horizontal bar for each series."""
    options = {"displayMode": "basic", "valueMode": "color", "namePlacement": "auto", "showUnfilled": True, "sizing": "auto"}
    options |= {"minVizWidth": 8, "minVizHeight": 16, "maxVizHeight": 300, **reduced(), "orientation": "horizontal"}
    options["legend"] = {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []}
    defaults = {"min": 0, "color": {"mode": "palette-classic"}}
    return Panel("bargauge", title, description, targets, unit, options=options, defaults=defaults, **more)


def timeline(title: str, description: str, targets: list[Json], texts: dict[str, tuple[str, str]], **more: Any) -> Panel:
    """A band for each series; `texts` gives each value a text and a colour."""
    mapped = {value: {"text": text, "color": colour, "index": at} for at, (value, (text, colour)) in enumerate(texts.items())}
    options = {"mergeValues": True, "rowHeight": 0.9, "showValue": "auto", "alignValue": "left"}
    options["legend"] = {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []}
    options["tooltip"] = {"mode": "single", "sort": "none"}
    defaults = {"mappings": [{"type": "value", "options": mapped}], "color": {"mode": "thresholds"}}
    custom = {"fillOpacity": 80, "lineWidth": 0}
    return Panel("state-timeline", title, description, targets, custom=custom, options=options, defaults=defaults, **more)


def table(title: str, description: str, targets: list[Json], **more: Any) -> Panel:
    return Panel("table", title, description, targets, options={"showHeader": True, "cellHeight": "sm", "frameIndex": 0}, **more)


def joined(*columns: str) -> list[Json]:
    """One table of the answers to all queries, whose values get these names."""
    named = {f"Value #{chr(ord('A') + at)}": column for at, column in enumerate(columns)}
    organized = {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": named}
    return [{"id": "merge", "options": {}}, {"id": "organize", "options": organized}]


def variable(name: str, label: str, query: str, source: Json, **more: Any) -> Json:
    """A choice of some values or of all. All is every value, also an empty one."""
    found = {"type": "query", "name": name, "label": label, "datasource": source, "query": query}
    chosen = {"current": {"selected": True, "text": ["All"], "value": ["$__all"]}, "allValue": ".*"}
    return {**found, "refresh": 2, "sort": 1, "multi": True, "includeAll": True, **chosen, "options": [], "hide": 0, **more}


# The rows of both dashboards: the same questions.
TITLES = (
    "Is something wrong?",
    "Who holds what",
    "Traffic",
    "How long it takes",
    "How safe it is",
    "Elections and jobs",
    "Servers and clients",
)


def dashboard(uid: str, title: str, description: str, kind: str, variables: list[Json], rows: dict[str, list[Panel]]) -> Json:
    """A dashboard of rows of panels, which flow from left to right."""
    source = {"type": kind, "uid": "${datasource}"}
    chosen = {"type": "datasource", "name": "datasource", "label": "Data source", "query": kind, "refresh": 1, "hide": 0, "options": []}
    panels: list[Json] = []
    y = 0
    for heading, found in rows.items():
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        panels.append({"id": len(panels) + 1, "type": "row", "title": heading, "collapsed": False, "gridPos": place, "panels": []})
        x, y, height = 0, y + 1, 0
        for panel in found:
            if x + panel.columns > WIDTH:
                x, y, height = 0, y + height, 0
            panels.append(panel.json(len(panels) + 1, x, y, source))
            x, height = x + panel.columns, max(height, panel.rows)
        y += height
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["locktender"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [chosen, *variables]},
        "annotations": {"list": []},
        "links": [],
        "panels": panels,
    }
