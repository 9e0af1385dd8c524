"""transformers' generate(): the tokens of eager mode, and no more compilations for more tokens.

Two uses: the forward is compiled and generate() calls it for each token; or the whole of generate() is captured, with
graph breaks. `python tests/python/models/test_generate.py` prints the number of graph segments of each.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("*")))  # where this file is a script

import models  # noqa: F401  (defines modules for transformers' imports)
import pytest
import torch
import transformers

import cresset

transformers.logging.set_verbosity_error()
pytestmark = pytest.mark.filterwarnings("ignore")

TOKENS = dict(bos_token_id=1, eos_token_id=98, pad_token_id=0)
ENCODER_DECODER = dict(TOKENS, decoder_start_token_id=2)


def gpt2():
    config = transformers.GPT2Config(vocab_size=99, n_positions=128, n_embd=32, n_layer=2, n_head=4, **TOKENS)
    return transformers.GPT2LMHeadModel(config)


def llama():
    config = transformers.LlamaConfig(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        **TOKENS,
    )
    return transformers.LlamaForCausalLM(config)


def t5():
    config = transformers.T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, **ENCODER_DECODER
    )
    return transformers.T5ForConditionalGeneration(config)


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=99,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=20,
        max_target_positions=64,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **ENCODER_DECODER,
    )
    return transformers.WhisperForConditionalGeneration(config)


MODELS = {"gpt2": gpt2, "llama": llama, "t5": t5, "whisper": whisper}
STRATEGIES = {
    "greedy": dict(do_sample=False),
    "sample": dict(do_sample=True, top_k=20, temperature=0.9),
    "beam": dict(do_sample=False, num_beams=3),
}
CACHES = ["dynamic", "static"]


def build(name):
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    if name == "whisper":
        return model, dict(input_features=torch.randn(2, 8, 40))
    prompt = torch.randint(3, 90, (2, 5))
    return model, dict(input_ids=prompt, attention_mask=torch.ones_like(prompt))


def forward(model):
    """The forward is compiled, generate() is not."""
    model.forward = cresset.compile(model.forward)
    return model.generate


def module(model):
    """Likewise, with a compiled module."""
    return cresset.compile(model).generate


def generate(model):
    """The whole of generate()."""
    return cresset.compile(model.generate)


def eagerly(model):
    return model.generate


class Generator:
    """A model with a way of use, from the start."""

    def __init__(self, name, strategy, cache, way):
        model, self.inputs = build(name)
        self.options = dict(STRATEGIES[strategy])
        if cache != "dynamic":
            self.options["cache_implementation"] = cache
        cresset.reset()
        self.call = way(model)

    def __call__(self, tokens):
        torch.manual_seed(7)
        with torch.no_grad():
            return self.call(**self.inputs, min_new_tokens=tokens, max_new_tokens=tokens, **self.options)


@functools.cache
def expected(name, strategy, cache, tokens):
    return Generator(name, strategy, cache, eagerly)(tokens)


def run(name, strategy, cache, way, tokens, calls=2):
    """The tokens of each call, and the counters after it."""
    generator = Generator(name, strategy, cache, way)
    return [(generator(n), cresset.stats()) for n in tokens for _ in range(calls)]


def check(name, strategy, cache, way):
    """Graphs, graph breaks and eager fallbacks of two calls; the same for any number of tokens."""
    counts, settled = {}, 6 if way is generate else 3
    for tokens in (8, 24):
        expected(name, strategy, cache, tokens)  # eager first: it does some work once a process
        results = run(name, strategy, cache, way, [tokens], calls=settled if tokens == 8 else 2)
        for got, _ in results:
            assert torch.equal(got, expected(name, strategy, cache, tokens))
        stats = results[1][1]
        assert results[-1][1]["graphs"] == results[max(1, len(results) - 2)][1]["graphs"], results[-1][1]["recompiles"]
        assert stats["eager_calls"] == 0, stats["graph_break_reasons"]
        counts[tokens] = (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"])
    assert counts[8] == counts[24], (counts, stats["recompiles"])
    return counts[8]


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", MODELS)
def test_compiled_forward(name, strategy, cache):
    graphs, breaks, stretches = check(name, strategy, cache, forward)
    print(f"{name} {strategy} {cache}: {graphs} graphs")
    assert breaks == stretches == 0
    assert graphs <= 4  # a prompt and a token; again when the differences between caches are known


@pytest.mark.parametrize("name", MODELS)
def test_compiled_module(name):
    graphs, breaks, stretches = check(name, "greedy", "dynamic", module)
    assert breaks == stretches == 0 and graphs <= 4


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", MODELS)
def test_whole_generation(name, strategy, cache):
    graphs, breaks, stretches = check(name, strategy, cache, generate)
    print(f"{name} {strategy} {cache}: {graphs} graphs, {breaks} graph breaks, {stretches} eager fallbacks")


@pytest.mark.parametrize("way", [forward, module], ids=lambda way: way.__name__)
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("name", MODELS)
def test_other_lengths_compile_nothing(name, cache, way):
    results = run(name, "greedy", cache, way, [8, 24, 24, 16, 32], calls=1)
    assert results[-1][1]["graphs"] == results[1][1]["graphs"], results[-1][1]["recompiles"]
    assert results[-1][1]["eager_calls"] == 0


if __name__ == "__main__":
    for name in MODELS:
        for strategy in STRATEGIES:
            for cache in CACHES:
                for way in (forward, generate):
                    graphs, breaks, stretches = check(name, strategy, cache, way)
                    print(
                        f"{name:8} {strategy:7} {cache:8} {way.__name__:9} {graphs:3} graphs, {breaks:3} graph breaks, "
                        f"{stretches} native stretches"
                    )
