"""Makes the two Grafana dashboards: python3 examples/dashboards/make [DIRECTORY]

A panel is a few lines here and fifty in Grafana's JSON. A test compares the files with what this program writes.
"""

import json
import sys
from pathlib import Path

import influxdb
import prometheus

directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
for module in (influxdb, prometheus):
    text = json.dumps(module.dashboard(), indent=2, ensure_ascii=False)
    (directory / f"grafana-{module.__name__}.json").write_text(text + "\n")
