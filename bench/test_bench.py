"""Tests of the driver: `python -m unittest discover --start-directory bench`."""

import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import boosted
import compare
import engines
import explaining
import network
import numpy as np
import problem
import report
import rows
from tasks import TASKS, Forest, training_flops

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
        x, y = (values[:17] for values in rows.synthetic("train"))
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
            x, y = rows.heloc(folder, "train")
            test_x, test_y = rows.heloc(folder, "test")
        # A and B scaled over all rows; then the levels -9 and 3, then 5 and 8.
        np.testing.assert_allclose(x, [[0.5, 0.5, 0, 1, 0, 1], [0, 0, 0, 1, 1, 0]])
        np.testing.assert_array_equal(y, [1, 0])
        np.testing.assert_allclose(test_x, [[1, 1, 1, 0, 1, 0]])
        np.testing.assert_array_equal(test_y, [1])

    def test_synthetic_rows_have_helocs_shape_and_both_classes(self):
        for part, count in (("train", rows.HELOC_ROWS), ("test", rows.HELOC_TEST_ROWS)):
            x, y = rows.synthetic(part)
            self.assertEqual(x.shape, (count, rows.HELOC_COLUMNS))
            self.assertTrue(0.3 < y.mean() < 0.7)
            np.testing.assert_array_equal(x, rows.synthetic(part)[0])


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
        for task, expected in {
            "train": ["jax", "jax-vmap", "keras", "torch-bmm", "torch"],
            "stability": ["jax-hoisted", "jax", "torch"],
            "trex-i": ["jax", "tf", "torch"],
            "trex-nn": ["tf"],
            "interval": [],
            "explain": ["cli", "python", "python-process"],
            "counterfactual": ["alibi", "dice-gradient", "dice-random"],
            "tree-advice": ["dice", "nice", "treecf-exact", "treecf"],
            "tree-proof": ["treecf-exact"],
            "tree-wide": ["treecf"],
            "tree-stable": [],
            "tree-promise": [],
            "tree-score": ["lightgbm", "onnxruntime", "xgboost"],
        }.items():
            self.assertEqual(list(engines.peers(task)), expected)

    def test_engines_that_pin_other_versions_have_their_own_environment(self):
        commands = {name: command[0] for name, command in engines.peers("counterfactual").items()}
        self.assertEqual(commands["dice-gradient"], commands["dice-random"])
        self.assertIn(".venv-dice", commands["dice-random"])
        self.assertIn(".venv-alibi", commands["alibi"])
        self.assertEqual(engines.interpreter("torch-bmm"), sys.executable)
        for task in TASKS.values():
            own = any(map(engines.own_environment, engines.peers(task.name)))
            # Boosted models take long to train.
            self.assertEqual(task.on_request, own or task.forest is not None, task.name)


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
        table = report.summarise(task, 1, field, 100, 39, {"gflops": 2.0})
        ratios = {r["name"]: r["ratio"] for r in table["results"]}
        self.assertAlmostEqual(ratios["jax"], 2.0)
        share = table["results"][0]["peak_share"]
        self.assertAlmostEqual(share, training_flops(100, 39) / 0.01 / 2e9)
        verdicts = report.aims(task, table)
        self.assertEqual([v["met"] for v in verdicts], [False, True])

    def test_an_engine_that_skips_work_is_named(self):
        task = TASKS["train"]
        honest = [self.contestant(name, 1.0, 0.55, 4) for name in ("a", "b")]
        self.assertEqual(report.disagreements(task, honest, 1, 100), [])
        lazy = self.contestant("lazy", 0.5, 0.55, 3)
        self.assertIn("lazy", report.disagreements(task, [*honest, lazy], 1, 100)[0])
        lost = self.contestant("lost", 0.5, float("nan"), 4)
        self.assertIn("lost", " ".join(report.disagreements(task, [*honest, lost], 1, 100)))

    def test_a_share_of_few_cases_may_differ_by_a_case(self):
        def engine(name, validity, **more):
            contestant = engines.Contestant(name, [], 1, None)
            contestant.replies = [{"seconds": 1.0, "validity": validity, **more}]
            return contestant

        task = TASKS["trex-i"]
        found = [engine("a", 1.0, judged=2000), engine("b", 0.9, judged=2000)]
        self.assertEqual(len(report.disagreements(task, found, 1, 100)), 2)
        found = [engine("a", 1.0, judged=30), engine("b", 0.9, judged=30)]
        self.assertEqual(report.disagreements(task, found, 1, 100), [])
        found = [engine("a", 1.0, judged=2000), engine("b", 0.3, judged=30, sample=[0])]
        self.assertEqual(report.disagreements(task, found, 1, 100), [])

    def test_a_limit_is_an_aim(self):
        field = [self.contestant("tyrex", 40e-6, 0.0, 0)]
        field[0].replies[0]["lowest"] = 0.1
        table = report.summarise(TASKS["interval"], 1, field, 100, 39, {"gflops": 2.0})
        (verdict,) = report.aims(TASKS["interval"], table)
        self.assertTrue(verdict["met"])
        self.assertIn("microseconds", verdict["aim"])

    def test_the_package_may_cost_a_little_more_than_the_command_line(self):
        for seconds, met in ((1.04, True), (1.06, False)):
            field = [self.contestant("cli", 1.0, 0, 0), self.contestant("python", seconds, 0, 0)]
            table = report.summarise(TASKS["explain"], 1, field, 100, 39, {"gflops": 2.0})
            (verdict,) = report.aims(TASKS["explain"], table)
            self.assertEqual(verdict["met"], met)
            self.assertIn("cli", verdict["aim"])

    def test_nobody_is_said_to_agree_where_nothing_had_to(self):
        for name, expected in (("explain", "the same work"), ("counterfactual", "not compared")):
            task, peak = TASKS[name], {"gflops": 2.0}
            field = [self.contestant(task.baseline, 1.0, 0, 0)]
            table = report.summarise(task, 1, field, 100, 39, peak)
            run = {"tables": [table], "aims": [], "disagreements": [], "peak": {**peak, "all": []}}
            self.assertIn(expected, report.as_text(run))

    def test_answers_must_be_the_same_in_every_round(self):
        def engine(name, *answers):
            contestant = engines.Contestant(name, [], 1, None)
            contestant.replies = [{"seconds": 1.0, "answers": answer} for answer in answers]
            return contestant

        def named(*field):
            found = report.disagreements(TASKS["explain"], field, 2, 100)
            return [sentence.split(":")[0] for sentence in found]

        cli = engine("cli", "a", "a")
        self.assertEqual(named(engine("python", "a", "a"), cli), [])
        self.assertEqual(named(engine("python", "b", "b"), cli), ["python"])
        self.assertEqual(named(engine("python", "a", "b"), cli), ["python"])
        self.assertEqual(named(engine("cli", "a", "b")), ["cli"])

    def test_tables_line_up(self):
        lines = report.grid(["engine", "s"], [["a", "1.00"], ["longer name", "2"]]).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)


class Searches(unittest.TestCase):
    def small(self):
        rng = np.random.default_rng(0)
        x = rng.uniform(size=(300, 4)).astype(np.float32)
        y = (x[:, 0] > 0.5).astype(np.float32)
        models = [network.train(x, y, seed, epochs=20) for seed in range(3)]
        offsets = (0.1 * rng.standard_normal((8, 4))).astype(np.float32)
        return problem.Problem(x, y, x[y < 0.5][:5], offsets, models, models[:1])

    def test_training_learns(self):
        made = self.small()
        right = (network.score(made.layers, made.x) >= 0.5) == (made.y > 0.5)
        self.assertGreater(right.mean(), 0.95)

    def test_a_problem_comes_back_from_its_folder(self):
        made = self.small()
        with tempfile.TemporaryDirectory() as folder:
            problem.write(Path(folder), made)
            again = problem.read(folder)
        for name in ("x", "y", "factuals", "offsets"):
            np.testing.assert_array_equal(getattr(again, name), getattr(made, name))
        np.testing.assert_array_equal(
            network.score(again.models[2], made.x), network.score(made.models[2], made.x)
        )

    def test_counterfactuals_are_judged_by_the_other_models(self):
        made = self.small()
        far, near = made.factuals[1].copy(), made.factuals[2].copy()
        far[0] = 1.0
        points = [far.tolist(), near.tolist(), None]
        judged = problem.judge({"sample": [1, 2, 4], "points": points}, made)
        self.assertAlmostEqual(judged["found"], 2 / 3)
        self.assertAlmostEqual(judged["validity"], 0.5)
        self.assertEqual(judged["judged"], 4)
        self.assertAlmostEqual(judged["cost"], (1.0 - made.factuals[1][0]) / 2, places=6)
        self.assertAlmostEqual(judged["cost_l1"], judged["cost"], places=6)
        self.assertLess(judged["stability"], 0.75)


class Trees(unittest.TestCase):
    def test_a_model_is_trained_and_its_counterfactuals_are_judged(self):
        forest = Forest(trees=5, depth=2, columns=3, factuals=4, search=2)
        with tempfile.TemporaryDirectory() as folder:
            made = boosted.make(Path(folder), forest, 400, lambda text: None)
            searched = {path.read_bytes() for path in Path(folder).glob("search-*.json")}
            judges = {path.read_bytes() for path in Path(folder).glob("retrained-*.json")}
        self.assertEqual((len(searched), searched & judges), (2, set()))
        self.assertEqual(made.factuals.shape, (4, 3))
        self.assertFalse(made.accepts(made.factuals).any())
        np.testing.assert_allclose(made.x.std(axis=0), 1, rtol=1e-3)
        scores = [boosted.score(model, made.x) for model in made.retrained]
        self.assertEqual(len({one.tobytes() for one in scores}), boosted.RETRAINED)
        # The row that all models like best, for the first factual, and nothing for the last.
        best = made.x[np.argmax(np.min(scores, axis=0))]
        points = [best.tolist(), made.factuals[1].tolist(), made.factuals[2].tolist(), None]
        judged = boosted.judge({"points": points, "times": [1.0, 2.0, 9.0]}, made)
        share = np.mean([model.predict_proba(best[None])[0, 1] >= 0.5 for model in made.retrained])
        others = np.mean([boosted.score(m, made.factuals[1:3]) >= 0.5 for m in made.retrained])
        self.assertAlmostEqual(judged["found"], 0.75)
        self.assertAlmostEqual(judged["validity"], (share + 2 * others) / 3)
        self.assertAlmostEqual(judged["cost_l1"], np.abs(best - made.factuals[0]).sum() / 3, 5)
        self.assertAlmostEqual(judged["changed"], (best != made.factuals[0]).sum() / 3)


class Explaining(unittest.TestCase):
    CLI = (
        "row,status,reason,a,b=1,score,stability,cost_l1,cost_l2,method\n"
        "7,found,,0.1,-0,0.9,0.86,0.5,0.25,trex-i\n"
        "9,not_found,stuck,,,,,,,trex-i\n"
    )
    # As pandas writes it: single precision in full, other columns, another order.
    PANDAS = (
        ",a,b=1,b,score,stability,cost_l1,cost_l2,changed,status,reason\n"
        "7,0.10000000149011612,-0.0,,0.8999999761581421,0.86,0.5,0.25,,found,\n"
        "9,,,,,,,,,not_found,stuck\n"
    )

    def judged(self, text):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "advice.csv"
            file.write_text(text)
            return explaining.judge(explaining.advice(file))

    def test_the_same_advice_has_the_same_digest_whoever_writes_it(self):
        cli = self.judged(self.CLI)
        self.assertEqual(self.judged(self.PANDAS), cli)
        self.assertEqual((cli["units"], cli["found"], cli["cost"]), (2, 0.5, 0.25))
        point = {"b=1": -0.0, "a": 0.1}
        listed = [(7, point, 0.9, 0.86, 0.25), (9, None, None, None, None)]
        self.assertEqual(explaining.judge(listed), cli)

    def test_any_other_advice_has_another_digest(self):
        expected = self.judged(self.CLI)["answers"]
        for old, new in (
            ("7,found", "8,found"),
            ("0.1,", "0.10000001,"),
            (",-0,", ",,"),
            ("0.9,", "0.90000004,"),
            ("0.86", "0.8600000000000001"),
            ("0.25", "0.25000000000000006"),
        ):
            changed = self.CLI.replace(old, new, 1)
            self.assertNotEqual(self.judged(changed)["answers"], expected, new)

    def test_the_request_comes_back_from_its_folder_as_flags(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            explaining.write(folder, shutil.which("true"), "data", quick=True)
            asked = explaining.read(folder)
        self.assertEqual(asked.request, {**explaining.REQUEST, "limit": explaining.QUICK_ROWS})
        self.assertIn("--tau 0.85", " ".join(asked.flags))


class Choice(unittest.TestCase):
    def test_only_keeps_the_named_engines(self):
        def names(*others):
            return list(compare.chosen("train", *others))

        self.assertEqual(names("train", ["jax", "tyrex"], "t"), ["tyrex", "jax"])
        self.assertNotIn("tyrex", names("train", None, None))
        self.assertNotIn("tyrex", names(None, None, "t"))


if __name__ == "__main__":
    unittest.main()
