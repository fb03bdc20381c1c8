#!/usr/bin/env python3
"""Tests of the code generator on this checkout's own space: what the regression set promises, that rendering is
deterministic and leaves unchanged files alone, and what bad input is answered with. Run by ctest (unit.codegen)."""

import argparse
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

options = argparse.ArgumentParser()
options.add_argument("--describe", required=True)
options.add_argument("--codegen", type=Path, required=True)
arguments, rest = options.parse_known_args()
sys.path.insert(0, str(arguments.codegen))

from core import Core, config_text, load_space, parse_config_text  # noqa: E402
from covering import KIND, PairCover  # noqa: E402
from regression import OLDEST_CC, WIDEST_CC, compile_set, regression_set  # noqa: E402
from tables import read_table  # noqa: E402

SHAPE = "projection=gate_up,n=1280,k=4096,experts=288,local_experts=288,top_k=8,dtype=f16,activation=silu"


class CodegenTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.core = Core(arguments.describe)
        cls.space = load_space(arguments.codegen / "space.toml", cls.core)
        cls.variants = regression_set(cls.core, cls.space, [])

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def render(self, *words, code=0):
        run = subprocess.run(
            [sys.executable, "-B", arguments.codegen / "render.py", *map(str, words)], capture_output=True, text=True)  # fmt: skip
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout if code == 0 else run.stderr

    def table(self, *rows):
        path = self.folder / "best.tsv"
        path.write_text("# r1.compute_capability: 90\nrun\tshape\tconfig\n" + "".join(f"r1\t{row}\n" for row in rows))
        return path

    def test_every_variant_is_legal_and_canonical(self):
        verdicts = self.core.check([(WIDEST_CC, v.kind, v.text) for v in self.variants])
        self.assertEqual([v.reason for v in verdicts if v.reason], [])
        self.assertEqual([v.text for v in verdicts], [v.text for v in self.variants])

    def test_names_tell_variants_apart(self):
        self.assertEqual(len({(v.name, v.kind) for v in self.variants}), len(self.variants))

    def test_defaults_are_in_the_set(self):
        held = {(v.kind, v.text) for v in self.variants}
        for name, kind in self.core.kinds.items():
            for text in kind["defaults"].values():
                self.assertIn((name, text), held)

    def test_every_legal_pair_of_values_is_in_the_set(self):
        """Legal points drawn here, with a seed of their own, hold no pair that the set lacks."""
        for family, levers in self.space.items():
            cover = PairCover(self.core, levers | {KIND: list(self.core.kinds)}, WIDEST_CC)
            own = [parse_config_text(v.text) | {KIND: v.kind} for v in self.variants]
            own = [point for point in own if point["family"] == family]
            covered = {pair for point in own for pair in cover.pairs(point)}
            cover.random.seed(family)
            drawn = cover.legal([cover.draw() for _ in range(20_000)])
            drawn += cover.legal([cover.mutate(cover.random.choice(own), 3) for _ in range(20_000)])
            self.assertGreater(len(drawn), 500)
            for point in drawn:
                self.assertLessEqual(set(cover.pairs(point)), covered, config_text(point))

    def test_the_set_is_the_same_every_time(self):
        self.assertEqual(regression_set(self.core, self.space, []), self.variants)

    def test_compile_shards_hold_each_kernel_once_and_all_architectures(self):
        jobs = [job for shard in compile_set(self.core, self.variants, 8) for job in shard]
        self.assertEqual(len(set(jobs)), len(jobs))
        self.assertEqual({cc for _, cc in jobs}, set(self.core.archs))
        self.assertGreater(sum(cc == WIDEST_CC for _, cc in jobs), sum(cc == OLDEST_CC for _, cc in jobs))

    def test_configs_of_tables_join_the_set(self):
        table = self.table(f"{SHAPE}\tcode_word=f16,tile_n=192,warps_n=4", f"{SHAPE}\tcode_word=f16,stages=5")
        variants = regression_set(self.core, self.space, read_table(table, self.core, [90]))
        texts = [v.text for v in variants if v.kind == "f16_gate_up_silu"]
        self.assertTrue(any("tile_n=192" in text for text in texts))
        self.assertTrue(any("stages=5" in text for text in texts))

    def test_a_bad_table_names_file_and_line(self):
        for row, words in (
            (f"{SHAPE}\ttile_q=3", "best.tsv:3: no such lever at 0 in the config"),
            (f"{SHAPE}\ttile_n=100", "best.tsv:3: illegal for sm_90a: tile_n is a multiple of 64"),
            ("n=3\ttile_n=64", "best.tsv:3: not a row with a shape and a config"),
        ):
            common = ("kernels", "--describe", arguments.describe, "--name", "k", "--out", self.folder, "--cc", 90)
            self.assertIn(words, self.render(*common, "--table", self.table(row), code=1))

    def test_run_levers_make_no_kernel_of_their_own(self):
        table = self.table(f"{SHAPE}\tcode_word=f16", f"{SHAPE}\tcode_word=f16,tile_order=longest")
        common = ("kernels", "--describe", arguments.describe, "--name", "k", "--out", self.folder)
        self.assertEqual(len(self.render(*common, "--table", table).split()), 2)

    def test_unchanged_files_are_not_written(self):
        common = ("space", "--describe", arguments.describe, "--space", arguments.codegen / "space.toml")
        self.render(*common, "--out", self.folder)
        before = (self.folder / "fulcrum_space.hpp").stat().st_mtime_ns
        self.render(*common, "--out", self.folder)
        self.assertEqual((self.folder / "fulcrum_space.hpp").stat().st_mtime_ns, before)

    def test_a_bad_space_names_family_and_lever(self):
        text = (arguments.codegen / "space.toml").read_text()
        for old, new, words in (
            ("tile_k = [64, 128, 256]", "tile_k = [128, 256]", "[mma_sync] tile_k lacks the default, 64"),
            ("tile_k = [64, 128, 256]", "tile_k = [64]", "[mma_sync] tile_k needs at least two values"),
            ("tile_k = [", "tile_q = [", "[mma_sync] has no lever tile_q"),
            ('"prmt"', '"magic"', "[mma_sync] dequant cannot be magic"),
        ):
            path = self.folder / "space.toml"
            path.write_text(text.replace(old, new))
            with self.assertRaisesRegex(ValueError, words.replace("[", "\\[")):
                load_space(path, self.core)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *rest])
