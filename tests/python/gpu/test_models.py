"""Small models of transformers and timm on CUDA tensors, in inference and in training, and generation: eager mode's numbers
and a single graph. Simulated GPUs run a few of them; a GPU, or make test-full, the whole lists."""

from __future__ import annotations

import copy
import random

import compare
import cuda_device
import model_tables
import models  # noqa: F401  (defines operators for the libraries' imports)
import pytest
import torch
from test_generate import build, forward
from torch.utils._pytree import tree_leaves, tree_map

simulated = cuda_device.use()

import cresset  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

TRANSFORMERS = """
albert bart beit bert bloom camembert clip_text_model cohere convbert deberta deberta-v2 deit dinov2 distilbert electra
ernie esm falcon fnet gemma gemma2 glm gpt2 gpt_neox granite llama mamba mistral modernbert mpnet olmo2 opt phi3 qwen2
qwen3 roberta roformer siglip_vision_model t5 vit
""".split()  # noqa: SIM905
TIMM = """
resnet18 resnetv2_50 resnext50_32x4d res2net50_26w_4s seresnet50 densenet121 dpn68 inception_v3 xception41
mobilenetv2_100 mobilenetv3_small_100 efficientnet_b0 mixnet_s mnasnet_100 ghostnet_100 regnetx_002 regnety_002 repvgg_a0
rexnet_100 cspresnet50 convnext_atto convnextv2_atto poolformer_s12 mobilevit_xxs levit_128s coatnet_nano_rw_224
vit_tiny_patch16_224 swin_tiny_patch4_window7_224 mixer_s32_224 gmlp_s16_224
""".split()  # noqa: SIM905
TRAINED = ["bert", "gpt2", "llama", "t5", "vit", "resnet18", "convnext_atto", "mobilenetv3_small_100"]
ALWAYS = ["bert", "llama", "t5", "vit", "resnet18"]
TABLE = {n: s for family in ("transformers", "timm") for n, s in model_tables.subjects(family).items()}
# Relative to the greatest element. Eager mode's own distance from fp64 may be as great.
BOUND, TIMES_EAGER = 1e-4, 3.0


@pytest.fixture(autouse=True)
def exact():
    cresset.reset()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch._C._set_cudnn_allow_tf32(False)  # the attribute is locked by the test modules of torch


def leave_out(name, full):
    if simulated is not None and not full and name not in ALWAYS:
        pytest.skip("the whole list runs on a GPU")


def to_cuda(tree, dtype=torch.float32):
    def move(value):
        if not isinstance(value, torch.Tensor):
            return value
        return value.to("cuda", dtype if value.is_floating_point() else value.dtype)

    return tree_map(move, tree)


def as_images(tree):
    """A copy in which images have their channels last."""

    def move(value):
        is_image = isinstance(value, torch.Tensor) and value.dim() == 4
        return value.contiguous(memory_format=torch.channels_last) if is_image else value

    return tree_map(move, tree)


def results(tree):
    return [t for t in tree_leaves(tree) if isinstance(t, torch.Tensor) and t.is_floating_point()]


def assert_close(got, eager, exact, also=None):
    """As near to fp64 as eager mode is, or nearer than BOUND to eager mode. `also`: eager mode's results in another
    memory format, for which libraries have other convolutions."""
    for a, b, c, reference in zip(got, eager, also or eager, exact, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        allowed = max(BOUND, TIMES_EAGER * compare.error(b, reference), TIMES_EAGER * compare.error(c, reference))
        assert compare.error(a, reference) <= allowed


def sizes_of(subject):
    """Two vectors of sizes: the table's first, and another batch, and sizes where the model takes others."""
    return [subject.first, (subject.first[0] + 1, *subject.draw(random.Random(1)))]


@pytest.mark.parametrize("name", TRANSFORMERS + TIMM)
def test_inference(name, full):
    leave_out(name, full)
    subject = TABLE[name]
    model = subject.build()
    mine, reference = copy.deepcopy(model).cuda(), copy.deepcopy(model).double().cuda()
    images = copy.deepcopy(model).cuda().to(memory_format=torch.channels_last) if name in TIMM else None
    compiled = cresset.compile(mine)
    for sizes in sizes_of(subject):
        arguments = subject.arguments(model, *sizes)
        with torch.no_grad():
            eager = results(mine(**to_cuda(arguments)))  # first: some models keep tensors by device
            got = results(compiled(**to_cuda(arguments)))
            exact = results(reference(**to_cuda(arguments, torch.float64)))
            also = results(images(**as_images(to_cuda(arguments)))) if images else None
        assert_close(got, eager, exact, also)
    stats = cresset.stats()
    if name not in model_tables.TOLD_APART:
        assert (stats["graphs"], stats["graph_breaks"]) == (1, 0), stats["graph_break_reasons"]


@pytest.mark.parametrize("name", TRAINED)
def test_training(name, full):
    leave_out(name, full)
    subject = TABLE[name]
    model = subject.build()
    sides = [copy.deepcopy(model).cuda(), copy.deepcopy(model).cuda(), copy.deepcopy(model).double().cuda()]
    if name in TIMM:
        sides.append(copy.deepcopy(model).cuda().to(memory_format=torch.channels_last))
    compiled = cresset.compile(sides[0])
    arguments = subject.arguments(model, *sizes_of(subject)[0])
    gradients = []
    for side, function in zip(sides, [compiled, *sides[1:]], strict=True):
        given = to_cuda(arguments, torch.float64 if side is sides[2] else torch.float32)
        given = as_images(given) if side is sides[-1] and name in TIMM else given
        loss = sum(t.square().mean() for t in results(function(**given)))
        loss.backward()
        gradients.append([p.grad for p in side.parameters() if p.grad is not None])
    assert_close(*gradients)
    assert cresset.stats()["graph_breaks"] == 0, cresset.stats()["graph_break_reasons"]


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "t5", "whisper"])
def test_generation(name, cache, full):
    """The tokens of eager mode, and no compilation for later ones."""
    if simulated is not None and not full and (name, cache) != ("llama", "static"):
        pytest.skip("the whole list runs on a GPU")
    model, inputs = build(name)
    model, inputs = model.cuda(), to_cuda(inputs)
    options = dict(min_new_tokens=12, max_new_tokens=12, do_sample=False)
    if cache == "static":
        options.update(cache_implementation="static", disable_compile=True)
    with torch.no_grad():
        expected = model.generate(**inputs, **options)
        generate, compilations = forward(model), []
        for _ in range(3):  # the first ones meet new and used caches
            assert torch.equal(generate(**inputs, **options), expected)
            compilations.append(cresset.stats()["graphs"])
    assert compilations[1] == compilations[2] <= 4
