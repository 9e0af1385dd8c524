"""CRESSET_VALIDATE=1: proofs of the compiler's changes to sizes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest


def run_validated(code):
    env = {**os.environ, "CRESSET_VALIDATE": "1", "CRESSET_LOG": "guards"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def test_a_model_is_proved_and_its_cost_counted():
    done = run_validated(
        """
        import torch, cresset
        def m(x, w):
            b, s, d = x.shape
            q, k, v = (x @ w).view(b, s, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
            mask = torch.ones(s, s, dtype=torch.bool).tril()
            h = torch.where(mask, q @ k.transpose(-1, -2), -1e9).softmax(-1) @ v
            return torch.nn.functional.layer_norm(h.transpose(1, 2).reshape(b, s, d) + x, (d,))
        f = cresset.compile(m)
        for b, s, d in ((2, 5, 16), (3, 7, 32), (2, 4, 16)):
            x, w = torch.randn(b, s, d), torch.randn(d, 3 * d) / d
            torch.testing.assert_close(f(x, w), m(x, w), rtol=1e-4, atol=1e-4)
        t = cresset.stats()
        print(t["graphs"], t["steps_proved"], t["steps_not_proved"], t["ms_validation"] > 0)
        """
    )
    graphs, proved, not_proved, timed = done.stdout.split()
    assert int(graphs) >= 1 and int(proved) > 20 and timed == "True"
    assert int(not_proved) <= int(proved) // 20
    assert "validation: " in done.stderr and "guards proved" in done.stderr


@pytest.mark.parametrize(
    "program",
    [
        "lambda x: x.view(x.shape[0] // 2, 2, -1).transpose(0, 1).reshape(-1)",
        "lambda x: torch.nn.functional.pixel_shuffle(x[None, None].expand(1, 4, -1, -1), 2)",
        "lambda x: torch.cat([x, x[: x.shape[0] // 2]]).sum(0)",
    ],
)
def test_programs_of_sizes_are_proved(program):
    done = run_validated(
        f"""
        import torch, cresset
        function = {program}
        f = cresset.compile(function)
        for n in (4, 6, 10):
            x = torch.randn(n, 4)
            torch.testing.assert_close(f(x), function(x))
        print(cresset.stats()["steps_proved"])
        """
    )
    assert int(done.stdout) > 0


def test_off_by_default():
    import cresset

    assert "CRESSET_VALIDATE" in os.environ or cresset.stats()["steps_proved"] == 0
