"""Decoding on a GPU: greedy tokens a second of Llama models at batch 1, with a cache that grows and a static cache.
cresset, eager mode and torch.compile in one process, in turns.

    python bench/gpu_decode.py [small] [1b] [--tokens 256] [--turns 5] [--dtypes bf16] [--sides ...] [--json file]

Each turn decodes all tokens after a prompt of 16 tokens. "bound" is the share of the least time in which the weights
and the cache can be read at the copy bandwidth of this run.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "bench/lib")]

import noise  # noqa: E402
import torch  # noqa: E402
from gpu_timing import copy_bandwidth  # noqa: E402
from harness import models  # noqa: E402, F401  (transformers needs operators that it defines)
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache  # noqa: E402

import cresset  # noqa: E402

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
PROMPT = 16
MODELS = {
    "small": dict(
        vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16,
        num_key_value_heads=16,
    ),
    "1b": dict(
        vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
        num_key_value_heads=8, head_dim=64, tie_word_embeddings=True,
    ),
}  # fmt: skip
SIDES = ("cresset", "graphs", "eager", "compile", "reduce_overhead")


def compiled(side, function):
    mode = "reduce-overhead" if side in ("graphs", "reduce_overhead") else "default"
    if side == "eager":
        return function
    return cresset.compile(function, mode=mode) if side in ("cresset", "graphs") else torch.compile(function, mode=mode)


class Decoder:
    """Greedy decoding of one sequence through a compiled forward pass."""

    def __init__(self, model, side, static, length):
        self.model, self.static, self.length = model, static, length
        self.cache = StaticCache(config=model.config, max_cache_len=length) if static else None

        def step(ids, position, cache):
            logits = model(
                input_ids=ids,
                position_ids=position[None],
                past_key_values=cache,
                cache_position=position,
                use_cache=True,
            ).logits
            return logits[:, -1:].argmax(-1)

        self.step, self.eager = compiled(side, step), step

    def run(self, prompt, count):
        """Returns the tokens and the seconds of all tokens after the first."""
        if self.static:
            self.cache.reset()
            cache = self.cache
        else:
            cache = DynamicCache(config=self.model.config)
        device = prompt.device
        with torch.no_grad():
            token = self.eager(prompt, torch.arange(prompt.shape[1], device=device), cache)
            tokens, position = [token], torch.tensor([prompt.shape[1]], device=device)
            if device.type == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(count):
                token = self.step(token, position, cache).clone()
                tokens.append(token)
                position += 1
            if device.type == "cuda":
                torch.cuda.synchronize()
        return torch.cat(tokens, 1), time.perf_counter() - start


def measure(name, dtype, static, options):
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**MODELS[name], max_position_embeddings=2048))
    model = model.to(DTYPES[dtype]).to(options.device).eval()
    prompt = torch.randint(0, 1000, (1, PROMPT), device=options.device)
    length = PROMPT + options.tokens + 1
    row = {"name": name, "dtype": dtype, "cache": "static" if static else "growing", "tokens": options.tokens}
    decoders, first, made = {}, {}, {}
    for side in options.sides:
        if side == "reduce_overhead" and not static:
            continue
        decoder = Decoder(model, side, static, length)
        start = time.perf_counter()
        made[side], _ = decoder.run(prompt, options.tokens)
        first[side] = round(time.perf_counter() - start, 2)
        if side in ("cresset", "graphs"):
            row.setdefault("graphs", {})[side] = cresset.stats()["graphs"]
        decoders[side] = decoder
    if "eager" in made:
        expected = made.pop("eager")
        row["agreeing_tokens"] = {s: int((t == expected).long().cumprod(1).sum()) for s, t in made.items()}
    seconds = {side: [] for side in decoders}
    before = cresset.stats()["graphs"]
    for turn in range(options.turns):
        for side in list(decoders) if turn % 2 == 0 else reversed(decoders):
            seconds[side].append(decoders[side].run(prompt, options.tokens)[1] / options.tokens)
    row["compilations_later"] = cresset.stats()["graphs"] - before
    row["first_s"] = first
    row.update(noise.summary(seconds))
    row["tokens_per_s"] = {side: round(1 / statistics.median(t), 1) for side, t in seconds.items()}
    read = sum(p.numel() * p.element_size() for p in model.parameters())
    row["weights_mb"] = read / 1e6
    if options.bandwidth:  # weights are read alone: half of a copy's bytes are read, so the bound is a copy's bandwidth
        row["bound"] = {s: read / options.bandwidth / statistics.median(t) for s, t in seconds.items()}
    stats = cresset.stats()
    row["stats"] = {
        k: stats[k] for k in ("graphs", "graph_breaks", "graph_break_reasons", "eager_calls", "cuda_graphs")
    }
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--dtypes", default="bf16")
    parser.add_argument("--caches", default="static,growing")
    parser.add_argument("--sides", default="cresset,graphs,eager,reduce_overhead")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.sides = [s for s in SIDES if s in options.sides.split(",")]
    warnings.filterwarnings("ignore")
    options.bandwidth = copy_bandwidth() if options.device == "cuda" else None
    rows = []
    for name in options.names or MODELS:
        for dtype in options.dtypes.split(","):
            for cache in options.caches.split(","):
                cresset.reset()
                torch.compiler.reset()
                try:
                    row = measure(name, dtype, cache == "static", options)
                except Exception as error:  # a model must not take the figures of the rest along
                    row = {"name": name, "cache": cache, "error": f"{type(error).__name__}: {error}"[:800]}
                rows.append(row)
                print(json.dumps(row), flush=True)
                gc.collect()
                if options.device == "cuda":
                    torch.cuda.empty_cache()
    if options.json:
        device = torch.cuda.get_device_name() if options.device == "cuda" else options.device
        Path(options.json).write_text(
            json.dumps({"device": device, "torch": torch.__version__, "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
