"""Advice that looks like accepted applicants."""

from __future__ import annotations

import pandas as pd
import pytest

import tyrex


def test_advice_is_as_usual_as_asked_and_has_a_path(explainer: tyrex.Explainer) -> None:
    advice = explainer.explain(limit=8, method="min-cost", plausible=0.2, path=True)
    found = [each for each in advice if each.found]
    assert found
    for each in found:
        assert each.usual is not None and each.usual >= 0.2
        assert each.plausibility is not None and "accepted applicants" in each.plausibility
        assert each.path is not None
        steps = each.path["steps"]
        assert all(step["usual"] >= 0.1 for step in steps)
        assert steps[-1]["usual"] == each.usual
        changed = {change["feature"] for step in steps for change in step["changes"]}
        assert changed == {change.feature for change in each.changes}
        assert tyrex.Explanation.of(each.to_dict()).path == each.path
    # Nothing is asked for: the advice says how usual it is, and has no path.
    plain = explainer.explain(limit=8, method="min-cost")
    assert any(each.usual is not None and each.usual < 0.2 for each in plain)
    assert all(each.path is None for each in plain)


def test_what_each_condition_costs_alone(
    explainer: tyrex.Explainer, features: pd.DataFrame
) -> None:
    advice = explainer.explain(limit=8, method="trex-o", tau=0.95, plausible=0.97)
    refused = [each for each in advice if each.reason == "implausible"]
    assert refused
    for each in refused:
        assert each.apart is not None
        assert each.apart["not_usual"]["cost"] > 0
        assert each.apart["not_usual"]["p_value"] < 0.97
        assert each.plausibility == each.apart["sentence"] == each.hint
        assert each.plausibility.startswith("Without the condition of a p-value of 0.97, ")
        assert tyrex.Explanation.of(each.to_dict()).apart == each.apart


@pytest.mark.parametrize("wrong", [0.0, 1.0, -0.1])
def test_a_p_value_lies_between_0_and_1(explainer: tyrex.Explainer, wrong: float) -> None:
    with pytest.raises(tyrex.TyrexError, match="plausible"):
        explainer.explain(limit=1, method="min-cost", plausible=wrong)


def test_paths_are_those_of_rows(explainer: tyrex.Explainer) -> None:
    with pytest.raises(tyrex.TyrexError, match="product with `path`"):
        explainer.explain(limit=1, method="min-cost", protocol="paper", path=True)
