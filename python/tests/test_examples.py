"""The examples run from start to end, and show what they say they show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
# Seconds on a busy machine; alone they take a quarter of it.
LONGEST = 240


def output_of(name: str, folder: Path, *packages: str) -> str:
    for package in packages:
        pytest.importorskip(package)
    # Files that an example leaves behind would be in one of these two folders.
    temporary, here = folder / "temporary", folder / "here"
    temporary.mkdir()
    here.mkdir()
    python = [os.fspath(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")]
    finished = subprocess.run(
        [sys.executable, EXAMPLES / name],
        capture_output=True,
        text=True,
        timeout=LONGEST,
        cwd=here,
        env={
            **os.environ,
            "TMPDIR": os.fspath(temporary),
            "PYTHONPATH": os.pathsep.join(filter(None, python)),
        },
    )
    assert finished.returncode == 0, finished.stderr
    left = [path.name for path in (*here.iterdir(), *temporary.iterdir())]
    # PyTorch keeps a cache there.
    assert not [name for name in left if not name.startswith("torchinductor")]
    return finished.stdout


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in\n{text}"
    return float(found[1])


def test_a_credit_model_in_scikit_learn(tmp_path: Path) -> None:
    text = output_of("credit_scikit_learn.py", tmp_path, "pandas", "sklearn", "skl2onnx", "pyarrow")
    assert number(r"deviation: (\S+)", text) < 1e-4
    assert "network of scikit-learn (native)" in text
    # The draft, then the correction.
    assert re.search(r"^age +integer +only-up", text, re.MULTILINE)
    assert re.search(r"^age +integer +years +only-up", text, re.MULTILINE)
    assert "No advice: " in text
    # Columns: found, mean cost, other seeds, other rows.
    lines = {
        name: [float(cell) for cell in cells.split()]
        for name, cells in re.findall(r"^(min-cost|trex-i) +([\d. ]+)$", text, re.MULTILINE)
    }
    assert lines["trex-i"][0] >= 0.9 * number(r"rejected: (\d+)", text)
    assert lines["trex-i"][1] > lines["min-cost"][1]
    assert all(
        lasting > near + 0.1 for lasting, near in zip(lines["trex-i"][2:], lines["min-cost"][2:])
    )


def test_a_pytorch_model_next_month(tmp_path: Path) -> None:
    text = output_of("pytorch_next_month.py", tmp_path, "pandas", "sklearn", "torch", "onnx")
    assert number(r"deviation: (\S+)", text) < 1e-4
    assert "network of torch (native)" in text
    nearest = number(r"after min-cost advice .*: (\S+)% kept", text)
    lasting = number(r"after trex-i advice .*: (\S+)% kept", text)
    assert lasting > nearest + 5
    assert number(r"min-cost:\nAudit of \d+ promises: \d+ kept, (\d+) broken", text) > 0
    assert number(r"repairs after what was advised: (\d+) found", text) > 0


def test_a_boosted_model_to_the_gate(tmp_path: Path) -> None:
    text = output_of("xgboost_to_the_gate.py", tmp_path, "pandas", "sklearn", "xgboost")
    assert re.search(r"6 explanations by trex-e .* a promise of 0.9: [4-6] found", text)
    assert number(r"Audit of \d+ promises: (\d+) kept", text) >= 3
    assert number(r"the next model may go live: (\S+)% kept", text) >= 80


def test_certificates_and_calibration(tmp_path: Path) -> None:
    text = output_of("certificates_and_calibration.py", tmp_path, "pandas")
    assert 0.5 <= number(r"Calibration: tau = (\S+) for 80 % valid", text) < 0.95
    # Of 30 pieces of advice, that many are certified.
    for tier, least in (("ensemble", 20), ("theorem", 10)):
        assert number(rf"trex-i at tau[\s\S]*?{tier} +(\d+)", text) >= least
    # The promise is kept by models that had no part in it; nearest points keep none.
    lasting, nearest = (
        number(rf"trained again from new weights:\n.*{name} (\S+)%", text)
        for name in ("trex-i", "min-cost")
    )
    assert lasting >= 80 > nearest
    kept = number(r"(\d+) of \d+ points are accepted at least", text)
    assert kept >= 0.8 * number(r"\d+ of (\d+) points are accepted at least", text)
