"""Tests of the driver: `python -m unittest discover --start-directory bench`."""

import sys
import tempfile
import unittest
from pathlib import Path

import compare
import engines
import numpy as np
import report
import rows
from tasks import TASKS, training_flops

WORKER = """
import json, sys
print(json.dumps({"ready": True, "version": "fake 1"}), flush=True)
for n, line in enumerate(sys.stdin, 1):
    print(json.dumps({"seconds": SECONDS, "units": 2, "loss": 0.5, "steps": n}), flush=True)
"""


def fake(script, engine="fake", processes=1):
    command = [sys.executable, "-c", script]
    return engines.Contestant(engine, command, processes, None, processes)


def play(contestant, rounds):
    return engines.contest([contestant], rounds, lambda _: None)[0]


class Rows(unittest.TestCase):
    def test_file_round_trip(self):
        x, y = rows.synthetic(rows=17)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.bin"
            rows.write(file, x, y)
            self.assertEqual(file.stat().st_size, 8 + 4 * 17 * 40)
            again_x, again_y = rows.read(file)
            np.testing.assert_array_equal(again_x, x)
            np.testing.assert_array_equal(again_y, y)
            file.write_bytes(file.read_bytes()[:-4])
            with self.assertRaises(ValueError):
                rows.read(file)

    def test_heloc_encoding(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "paper_splits").mkdir()
            (folder / "heloc.csv").write_text(
                "RiskPerformance,A,MaxDelq2PublicRecLast12M,MaxDelqEver,B\n"
                "Bad,-9,3,5,10\nGood,91,-9,5,20\nGood,41,3,8,15\n"
            )
            (folder / "paper_splits" / "heloc.csv").write_text(
                "row,split\n2,train\n1,test\n0,train\n"
            )
            x, y = rows.heloc(folder)
        # A and B scaled over all rows; then the levels -9 and 3, then 5 and 8.
        np.testing.assert_allclose(x, [[0.5, 0.5, 0, 1, 0, 1], [0, 0, 0, 1, 1, 0]])
        np.testing.assert_array_equal(y, [1, 0])

    def test_synthetic_rows_have_helocs_shape_and_both_classes(self):
        x, y = rows.synthetic()
        self.assertEqual(x.shape, (rows.HELOC_ROWS, rows.HELOC_COLUMNS))
        self.assertTrue(0.3 < y.mean() < 0.7)
        np.testing.assert_array_equal(x, rows.synthetic()[0])


class Protocol(unittest.TestCase):
    def test_minimum_over_rounds(self):
        script = WORKER.replace("SECONDS", "{1: 0.4, 2: 0.2, 3: 0.6}[n]")
        contestant = play(fake(script), 3)
        self.assertEqual(contestant.version, "fake 1")
        self.assertAlmostEqual(contestant.best("seconds"), 0.1)

    def test_processes_share_the_work(self):
        seconds = "1.0 if sys.argv[sys.argv.index('--seed') + 1] == '0' else 2.0"
        contestant = play(fake(WORKER.replace("SECONDS", seconds), processes=2), 1)
        self.assertAlmostEqual(contestant.best("seconds"), 2.0 / 4)

    def test_failures_say_what_the_worker_said(self):
        for script in (
            "import sys; sys.exit('out of luck')",
            WORKER.replace("SECONDS", "sys.exit('out of luck')"),
            "import sys; print('out of luck', file=sys.stderr); print('not json')",
        ):
            with self.assertRaisesRegex(engines.EngineFailure, "(?s)fake.*out of luck"):
                play(fake(script), 1)

    def test_every_peer_of_the_issue_is_found(self):
        self.assertEqual(
            list(engines.peers("train")), ["jax", "jax-vmap", "keras", "torch-bmm", "torch"]
        )


class Report(unittest.TestCase):
    def contestant(self, name, seconds, loss, steps):
        contestant = engines.Contestant(name, [], 1, None)
        contestant.replies = [{"seconds": seconds, "loss": loss, "steps": steps}]
        return contestant

    def test_flops_of_training(self):
        # Per row: forward and weight gradient of all three products, input gradient of two.
        forward = 2 * (39 * 128 + 128 * 128 + 128)
        self.assertEqual(training_flops(1, 39), 3 * forward - 2 * 39 * 128)

    def test_ratios_and_aims(self):
        task = TASKS["train"]
        field = [
            self.contestant("tyrex", 0.01, 0.5, 4),
            self.contestant("jax", 0.02, 0.5, 4),
            self.contestant("jax-vmap", 0.013, 0.5, 4),
        ]
        table = report.summarise(task, 1, field, 100, 39, {"gflops": 2.0}, "tyrex")
        ratios = {r["name"]: r["ratio"] for r in table["results"]}
        self.assertAlmostEqual(ratios["jax"], 2.0)
        share = table["results"][0]["peak_share"]
        self.assertAlmostEqual(share, training_flops(100, 39) / 0.01 / 2e9)
        verdicts = report.aims(task, table, "tyrex")
        self.assertEqual([v["met"] for v in verdicts], [False, True])

    def test_an_engine_that_skips_work_is_named(self):
        task = TASKS["train"]
        honest = [self.contestant(name, 1.0, 0.55, 4) for name in ("a", "b")]
        self.assertEqual(report.disagreements(task, honest, 1, 100), [])
        lazy = self.contestant("lazy", 0.5, 0.55, 3)
        self.assertIn("lazy", report.disagreements(task, [*honest, lazy], 1, 100)[0])
        lost = self.contestant("lost", 0.5, float("nan"), 4)
        self.assertIn("lost", " ".join(report.disagreements(task, [*honest, lost], 1, 100)))

    def test_tables_line_up(self):
        lines = report.grid(["engine", "s"], [["a", "1.00"], ["longer name", "2"]]).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)


class Choice(unittest.TestCase):
    def test_only_keeps_the_named_engines(self):
        self.assertEqual(list(compare.chosen("train", ["jax", "tyrex"], "t")), ["tyrex", "jax"])
        self.assertNotIn("tyrex", compare.chosen("train", None, None))


if __name__ == "__main__":
    unittest.main()
