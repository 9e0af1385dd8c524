# ruff: noqa: SIM905 (names in a block read better than a column of strings)
"""Many small models by their libraries' own names: transformers' architectures in a generic tiny configuration, timm's
families at small images.

No code here is specific to a model: a configuration is the library's default, with its attributes of `SMALL` made
small. `subjects(family)` gives the models for `bench/shapes.py models` and `test_model_tables.py`.
"""

from __future__ import annotations

import copy
import inspect
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from compare import error, same_strides, same_structure, tensors
from models import _padding_mask, randomize
from torch import nn

import cresset

SMALL = dict(
    hidden_size=32, d_model=32, n_embd=32, dim=32, embed_dim=32, emb_dim=32, embedding_size=16, hidden_dim=48,
    word_embed_proj_dim=32, word_embedding_dimension=32, num_hidden_layers=2, n_layer=2, n_layers=2, num_layers=2,
    encoder_layers=2, decoder_layers=2, num_encoder_layers=2, num_decoder_layers=2, num_attention_heads=4, n_head=4,
    n_heads=4, num_heads=4, encoder_attention_heads=4, decoder_attention_heads=4, num_encoder_attention_heads=4,
    num_decoder_attention_heads=4, num_key_value_heads=2, intermediate_size=64, ffn_dim=64, d_ff=64, encoder_ffn_dim=64,
    decoder_ffn_dim=64, ffn_hidden_size=64, n_inner=64, vocab_size=99, max_position_embeddings=128, n_positions=128,
    max_seq_len=128, head_dim=8, d_kv=8, image_size=32, patch_size=8, num_experts=4, num_local_experts=4,
    n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    decoder_start_token_id=1,
)  # fmt: skip

TRANSFORMERS = """
albert arcee aria_text bart beit bert bert-generation biogpt blenderbot blenderbot-small bloom camembert canine
clip_text_model clip_vision_model cohere cohere2 convbert cpmant ctrl data2vec-text data2vec-vision deberta deberta-v2
deit diffllama dinov2 dinov2_with_registers dinov3_vit distilbert dpr dpt electra ernie ernie4_5 esm eurobert exaone4
falcon flaubert fnet gemma gemma2 gemma3_text glm glm4 gpt-sw3 gpt2 gpt_bigcode gpt_neox granite helium ibert ijepa
imagegpt layoutlm llama m2m_100 mamba marian markuplm mbart megatron-bert ministral mistral mobilebert modernbert mpnet
mpt mt5 mvp nemotron nystromformer olmo olmo2 openai-gpt opt pegasus persimmon phi phi3 plbart prophetnet qwen2 qwen3
rembert roberta roberta-prelayernorm roformer rwkv seed_oss sew siglip_vision_model smollm3 splinter stablelm starcoder2
t5 umt5 visual_bert vit vit_msn xglm xlm xlm-roberta xlm-roberta-xl xlnet yolos
""".split()

# Convolutional networks accept any image: height and width vary separately. name -> the unit of both sides.
TIMM_ANY_SIZE = {name: 1 for name in """
resnet18 resnet50 resnetv2_50 resnext50_32x4d res2net50_26w_4s seresnet50 ecaresnet50t resnest14d skresnet18 densenet121
dpn68 inception_v3 inception_v4 xception41 mobilenetv2_100 mobilenetv3_small_100 mobilenetv4_conv_small efficientnet_b0
tf_efficientnetv2_b0 mixnet_s mnasnet_100 fbnetc_100 spnasnet_100 ghostnet_100 lcnet_050 regnetx_002 regnety_002 repvgg_a0
rexnet_100 hardcorenas_a selecsls42b cspresnet50 convnext_atto convnextv2_atto poolformer_s12 starnet_s1 fasternet_t0
efficientvit_b0 mobileone_s0 edgenext_xx_small xcit_nano_12_p16_224 twins_svt_small
""".split()} | {"hrnet_w18_small": 32, "dla34": 32, "lambda_resnet26t": 32, "mobilevit_xxs": 64, "naflexvit_base_patch16_gap": 32}  # fmt: skip

# These are built for one size of images; the batch varies.
TIMM_FIXED_SIZE = """
levit_128s eca_botnext26ts_256 halonet26t coatnet_nano_rw_224 maxvit_pico_rw_256 vit_tiny_patch16_224 deit_tiny_patch16_224
swin_tiny_patch4_window7_224 cait_xxs24_224 tnt_s_patch16_224 visformer_tiny mixer_s32_224 resmlp_12_224 gmlp_s16_224
""".split()


@dataclass
class Subject:
    """One model and how to make its arguments for (batch, length) or (batch, height, width)."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[..., dict[str, Any]]  # (module, generator, batch, *sizes)
    first: tuple[int, ...]  # sizes of the first call
    draw: Callable[[random.Random], tuple[int, ...]]  # sizes beside the batch
    most: int = 8  # the largest batch

    def arguments(self, module: nn.Module, batch: int, *sizes: int, seed: int = 0) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(seed)
        return self.inputs(module, generator, batch, *sizes)

    def sizes(self, rng: random.Random, count: int) -> list[tuple[int, ...]]:
        """The first call's sizes, then `count` random ones; a batch of 1 and of 0 are among them, and not first."""
        batches = [1, 0] + [rng.randint(1, self.most) for _ in range(count - 2)]
        rng.shuffle(batches)
        return [self.first] + [(batch, *self.draw(rng)) for batch in batches]


def transformers_config(name: str):
    """The architecture's default configuration with its attributes of `SMALL` made small."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    made_by = CONFIG_MAPPING[name]
    defaults = made_by().to_dict()

    def is_number(value) -> bool:
        return value is None or (isinstance(value, int) and not isinstance(value, bool))

    small = {k: v for k, v in SMALL.items() if k in defaults and is_number(defaults[k])}
    if isinstance(defaults.get("image_size"), (list, tuple)):
        small["image_size"] = [SMALL["image_size"], 2 * SMALL["image_size"]]
    return made_by(**small)


def _transformers_inputs(module, generator, batch, *sizes):
    accepts = inspect.signature(module.forward).parameters
    if module.main_input_name == "pixel_values":
        side = getattr(module.config, "image_size", 32)
        height, width = (side, side) if isinstance(side, int) else side
        return {"pixel_values": torch.randn(batch, 3, height, width, generator=generator)}
    if module.main_input_name == "input_values":
        return {"input_values": torch.randn(batch, 400 * sizes[0], generator=generator)}
    length = sizes[0]

    def ids(n):
        return torch.randint(3, 90, (batch, n), generator=generator)

    made = {"input_ids": ids(length)}
    if "attention_mask" in accepts:
        made["attention_mask"] = _padding_mask(batch, length)
    if "decoder_input_ids" in accepts:
        made["decoder_input_ids"] = ids(length // 2 + 1)
    return made


def _transformers(name: str) -> Subject:
    def build() -> nn.Module:
        import transformers

        transformers.logging.set_verbosity_error()
        torch.manual_seed(0)
        return randomize(transformers.AutoModel.from_config(transformers_config(name)), 0).eval()

    return Subject(name, build, _transformers_inputs, (3, 12), lambda rng: (rng.randint(5, 40),))


def _timm_inputs(module, generator, batch, *sides):
    height, width = sides or module.default_cfg["input_size"][1:]
    return {"x": torch.randn(batch, 3, height, width, generator=generator)}


@torch.no_grad()
def _with_statistics(module: nn.Module, arguments) -> nn.Module:
    """Batch norms get the statistics of these activations: without, they grow until attention is chaotic."""
    for layer in module.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.momentum = 1.0
    module.train()(**arguments)
    return module.eval()


def _timm(name: str) -> Subject:
    fixed = name in TIMM_FIXED_SIZE
    step = TIMM_ANY_SIZE.get(name, 1)
    first = () if fixed else (-(-96 // step) * step,) * 2

    def build() -> nn.Module:
        import timm

        torch.manual_seed(0)
        module = randomize(timm.create_model(name, num_classes=10), 0)
        return _with_statistics(module, _timm_inputs(module, torch.Generator().manual_seed(0), 4, *first))

    if fixed:
        return Subject(name, build, _timm_inputs, (2,), lambda rng: (), most=3)

    def side(rng: random.Random) -> int:
        return step * rng.randint(-(-80 // step), 128 // step)

    return Subject(name, build, _timm_inputs, (2, *first), lambda rng: (side(rng), side(rng)), most=4)


def subjects(family: str) -> dict[str, Subject]:
    names, make = {
        "transformers": (TRANSFORMERS, _transformers),
        "timm": ([*TIMM_ANY_SIZE, *TIMM_FIXED_SIZE], _timm),
    }[family]
    return {name: make(name) for name in names}


# ------------------------------------------------------------------------------------------------------ the sweep

FLOOR = 1e-4  # below this error, relative to the greatest element, the sides count as equal


def _call(function, arguments):
    """(result, None) or (None, the exception)."""
    try:
        return function(**arguments), None
    except Exception as e:
        return None, e


def _fp64_results(module, arguments):
    """The results in fp64, and their movement when float arguments change by a millionth. This is the effect of a few
    roundings, so no two computations can agree better. (None, None) when fp64 does not run."""
    double = copy.deepcopy(module).double()
    exact = {k: v.double() if _is_float(v) else v for k, v in arguments.items()}
    noise = torch.Generator().manual_seed(0)
    moved = {
        k: v * (1 + 1e-6 * torch.randn(v.shape, generator=noise, dtype=v.dtype)) if _is_float(v) else v
        for k, v in exact.items()
    }
    results = [_call(double, given) for given in (exact, moved)]
    if any(raised for _, raised in results):
        return None, None
    return tuple([t for _, t in tensors(result)] for result, _ in results)


def _is_float(value) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _differences(got, eager, module, arguments) -> str:
    """Why the results differ beyond rounding; empty when they agree."""
    try:
        same_structure(got, eager)
        same_strides(got, eager)
    except AssertionError as e:
        return str(e)
    worst, exact, moved = (0.0, ""), None, None
    for i, ((path, a), (_, b)) in enumerate(zip(tensors(got), tensors(eager))):
        if not b.is_floating_point():
            if not torch.equal(a, b):
                return f"{path} differs"
            continue
        off = error(a, b)
        if off <= FLOOR:
            continue
        if exact is None:
            exact, moved = _fp64_results(module, arguments)
        if exact and error(a, exact[i]) <= max(2 * error(b, exact[i]), 4 * error(moved[i], exact[i])):
            continue
        worst = max(worst, (off, path))
    return f"{worst[1]}: relative error {worst[0]:.2g}" if worst[1] else ""


def _gradient_differences(module: nn.Module, got, eager) -> str:
    """Why the parameters' gradients of the results' squares differ beyond rounding; empty when they agree."""
    found = []
    for results in (eager, got):
        module.zero_grad()
        outputs = [t for _, t in tensors(results) if t.requires_grad]
        if not outputs or any(t.numel() == 0 for t in outputs):
            return ""
        try:
            sum(t.float().pow(2).mean() for t in outputs).backward()
            found.append({name: p.grad for name, p in module.named_parameters()})
        except RuntimeError as e:
            found.append(e)
    theirs, ours = found
    if isinstance(theirs, RuntimeError) or isinstance(ours, RuntimeError):
        return "" if type(theirs) is type(ours) else f"backward: eager {theirs!r}, compiled {ours!r}"[:300]
    total = sum(g.norm() ** 2 for g in theirs.values() if g is not None) ** 0.5
    for name, gradient in theirs.items():
        if (gradient is None) != (ours[name] is None):
            return f"{name} has a gradient on one side only"
        if gradient is not None:
            off = (gradient - ours[name]).norm()
            if off > 2e-3 * gradient.norm() + 1e-4 * total:
                return f"the gradient of {name}: relative error {(off / gradient.norm()).item():.2g}"
    return ""


def sweep(subject: Subject, draws: int, gradients: bool = False) -> dict[str, Any]:
    """A compiled module over random sizes beside eager: differences, number of programs, and reasons. With gradients:
    of all parameters, too."""
    with torch.set_grad_enabled(gradients):
        return _sweep(subject, draws)


def _sweep(subject: Subject, draws: int) -> dict[str, Any]:
    module = subject.build()
    cresset.reset()
    compiled = cresset.compile(module)
    row: dict[str, Any] = {"equal": 0, "rejected": 0, "differ": [], "s_eager": 0.0, "s_compiled": 0.0, "graphs": 0,
                           "graph_breaks": 0, "causes": []}  # fmt: skip
    for i, sizes in enumerate(subject.sizes(random.Random(subject.name), draws)):
        arguments = subject.arguments(module, *sizes, seed=i)
        torch.manual_seed(i)
        begin = time.perf_counter()
        eager, raised = _call(module, arguments)
        middle = time.perf_counter()
        torch.manual_seed(i)
        before = cresset.stats()
        got, ours = _call(compiled, arguments)
        if raised is None:  # a call rejected by eager is tried and left to eager
            after = cresset.stats()
            for name in ("graphs", "graph_breaks"):
                row[name] += after[name] - before[name]
            row["causes"] += after["recompiles"][len(before["recompiles"]) :]
            row["causes"] += after["graph_break_reasons"][len(before["graph_break_reasons"]) :]
        row["s_eager"] += middle - begin
        row["s_compiled"] += time.perf_counter() - middle
        if raised is not None or ours is not None:
            why = "" if type(raised) is type(ours) else f"eager: {raised!r}, compiled: {ours!r}"
        else:
            why = _differences(got, eager, module, arguments)
            if not why and torch.is_grad_enabled():
                why = _gradient_differences(module, got, eager)
        row["rejected"] += raised is not None
        row["equal"] += raised is None and not why
        if why:
            row["differ"].append(f"{sizes}: {why}"[:400])
    stats = cresset.stats()
    names = ("guards_asked", "guards_checked", "ms_capture", "ms_lowering", "ms_codegen", "steps_proved",
             "steps_not_proved", "ms_validation")  # fmt: skip
    return row | {name: stats[name] for name in names}


# Cases that the models' own Python code distinguishes, and no tracing can merge: more than one compilation is expected.
TOLD_APART = {
    "cpmant": "makes a Python list as long as the sequence",
    "flaubert": "asserts about a number read from a mask's data",
    "xlm": "asserts about a number read from a mask's data",
    "rwkv": "a Python loop over the sequence",
    "sew": "pads when the length was odd",
    "twins_svt_small": "cuts a padding off where there is one",
}
# More than one where gradients are wanted.
TOLD_APART_WITH_GRADIENTS = {
    "mamba": "as many steps of torch's associative_scan as the length has binary digits",
    "canine": "a row that is repeated is told from several",
}
