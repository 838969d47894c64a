"""The stable JSON of ``planner accuracy``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from planner.accuracy.measures import Accuracy, Figures
from planner.report.to_json import FORMAT_VERSION


def accuracy_document(accuracy: Accuracy) -> dict[str, Any]:
    """Return the figures of all runs, of those without a flag, by source and by group; null where no run tells."""
    return {
        "format_version": FORMAT_VERSION,
        "headroom": float(accuracy.headroom),
        **_figures(accuracy.all),
        "healthy": _figures(accuracy.healthy),
        "healthy_in_node": _figures(accuracy.healthy_in_node),
        "sources": [{"source": source, **_figures(part)} for source, part in accuracy.sources],
        "groups": [
            {"source": source, "model": model, "devices": devices or None, **_figures(part)}
            for (source, model, devices), part in accuracy.groups
        ],
        "skipped": [{"reason": reason, "count": number} for reason, number in accuracy.skipped],
    }


def _figures(part: Figures) -> dict[str, Any]:
    order = part.ranking
    return {
        "rows": part.rows,
        "judged": part.judged,
        "time": {
            **asdict(part.time),
            "ranked_groups": order.groups,
            "spearman": order.spearman,
            "top1_regret": order.top1_regret,
        },
        "memory": asdict(part.memory),
        "fit": asdict(part.fit),
        "choice": asdict(part.choice),
    }
