"""timm models beside eager mode, each as its family ships it (random weights, batch 2, fp32, without gradients): first
calls, steady state, numerical differences. None of the models is in the benchmark's own list.

    python bench/beside_eager.py [names...] [--turns 7] [--json file]
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench/lib"))

import noise
import timm
import torch

import cresset

NAMES = [
    "botnet26t_256",
    "cait_xxs24_224",
    "coatnet_0_rw_224",
    "convmixer_768_32",
    "convnextv2_nano",
    "crossvit_9_240",
    "davit_tiny",
    "deit_tiny_patch16_224",
    "dpn68",
    "eca_nfnet_l0",
    "edgenext_small",
    "efficientformer_l1",
    "efficientnetv2_rw_t",
    "fastvit_t8",
    "focalnet_tiny_srf",
    "gcvit_xxtiny",
    "ghostnet_100",
    "gmlp_s16_224",
    "hardcorenas_a",
    "inception_resnet_v2",
    "lambda_resnet26t",
    "levit_128",
    "maxvit_rmlp_pico_rw_256",
    "mnasnet_100",
    "mobileone_s0",
    "mvitv2_tiny",
    "nest_tiny",
    "nf_resnet50",
    "poolformer_s12",
    "pvt_v2_b0",
    "regnetx_008",
    "repghostnet_100",
    "repvgg_a0",
    "resmlp_12_224",
    "resnest14d",
    "resnext50_32x4d",
    "rexnet_100",
    "sequencer2d_s",
    "seresnet50",
    "skresnet18",
    "swinv2_tiny_window8_256",
    "tf_efficientnet_lite0",
    "tinynet_a",
    "tnt_s_patch16_224",
    "twins_pcpvt_small",
    "vgg11",
    "visformer_tiny",
    "xcit_nano_12_p16_224",
]
RACES = 12  # calls in which libraries are timed (autotuning)


def seconds(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def row(name: str, turns: int) -> dict:
    torch.manual_seed(0)
    model = timm.create_model(name).eval()
    size = model.default_cfg["input_size"][1]
    x = torch.randn(2, 3, size, size)
    cresset.reset()
    compiled = cresset.compile(model)
    with torch.no_grad():
        first = seconds(lambda: compiled(x))
        got, expected = compiled(x), model(x)
        for _ in range(RACES):
            compiled(x)
        times: dict[str, list[float]] = {"eager": [], "cresset": []}
        for _ in range(turns):
            times["eager"].append(seconds(lambda: model(x)))
            times["cresset"].append(seconds(lambda: compiled(x)))
    stats = cresset.stats()
    return {
        "first_s": first,
        **noise.summary(times),
        "difference": ((got - expected).norm() / expected.norm()).item(),
        "operators": stats["operators_captured"],
        "capture_ms": stats["ms_capture"],
        "graphs": stats["graphs"],
        "graph_breaks": stats["graph_breaks"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = {}
    for name in options.names or NAMES:
        rows[name] = found = row(name, options.turns)
        print(
            f"{name:26} eager {found['ms']['eager']:7.1f} ms, {found['over']['eager'][1]:.2f} of cresset; "
            f"first call {found['first_s']:.2f} s; difference {found['difference']:.0e}; "
            f"{found['graphs']} graphs, {found['graph_breaks']} breaks",
            flush=True,
        )
        gc.collect()
    ratios = [found["over"]["eager"][1] for found in rows.values()]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"eager over cresset: geometric mean {mean:.2f}, least {min(ratios):.2f}, {len(ratios)} models")
    if options.json:
        result = {"threads": torch.get_num_threads(), "torch": torch.__version__, "mean": mean, "models": rows}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
