"""Models with an expensive capture in other compilers, at their published sizes: thousands of operators of a few kinds.

`MODELS` maps each name to (module, inputs); the inputs are keyword arguments of a call.
"""

from __future__ import annotations

import torch
from models import randomize


def _timm(name: str, side: int):
    def make():
        import timm

        return timm.create_model(name, pretrained=False), {"x": torch.randn(2, 3, side, side)}

    return make


def _transformers(config: str, model: str, length: int, **settings):
    def make():
        import transformers

        transformers.logging.set_verbosity_error()
        module = getattr(transformers, model)(getattr(transformers, config)(**settings))
        return module, {"input_ids": torch.randint(3, module.config.vocab_size, (2, length))}

    return make


_REFORMER = dict(
    attention_head_size=64, attn_layers=["local", "lsh"] * 3, axial_pos_shape=(16, 32), axial_pos_embds_dim=(64, 192),
    feed_forward_size=512, hidden_size=256, is_decoder=True, max_position_embeddings=512, num_attention_heads=2,
    num_buckets=32, vocab_size=320,
)  # fmt: skip

MODELS = {
    "pnasnet5large": _timm("pnasnet5large", 331),
    "volo_d1_224": _timm("volo_d1_224", 224),
    "tf_mixnet_l": _timm("tf_mixnet_l", 224),
    "hrnet_w18": _timm("hrnet_w18", 224),
    "cait_m36_384": _timm("cait_m36_384", 384),
    "res2net101_26w_4s": _timm("res2net101_26w_4s", 224),
    "longformer": _transformers(
        "LongformerConfig", "LongformerModel", 1024, attention_window=[512] * 12, max_position_embeddings=4098
    ),
    "mobilebert": _transformers("MobileBertConfig", "MobileBertModel", 128),
    "reformer": _transformers("ReformerConfig", "ReformerModelWithLMHead", 512, **_REFORMER),
}


def build(name: str, training: bool):
    torch.manual_seed(0)
    module, inputs = MODELS[name]()
    return randomize(module, 0).train(training), inputs
