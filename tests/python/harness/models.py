"""The model zoo that tests and benchmarks share: unmodified transformers and timm models, random weights, no network.

Each entry builds in two scales: "tiny" (a test takes seconds) and "real" (the published configuration). Weights are
drawn anew from a fixed seed with healthy magnitudes, because the libraries' own initial values hide errors (layer
scales of 1e-6, attention so flat that it is a mean).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")

import torch
from torch import Tensor, nn

TINY, REAL = "tiny", "real"


@dataclass(frozen=True)
class Model:
    """How to build one model and make inputs for it."""

    name: str
    make: Callable[[str], nn.Module]
    # (module, batch, length, mask?, generator) -> keyword arguments, floats in fp32
    make_inputs: Callable[..., dict[str, Any]]
    lengths: dict[str, list[int]]  # scale -> lengths of a sweep; empty for vision models
    bench: dict[str, tuple[int, int]]  # scale -> (batch, length) of one measurement
    family: str = "transformers"
    has_mask: bool = False
    has_cache: bool = False
    random: bool = False  # draws random numbers in eval: no fp64 reference, seed before each call
    # Decisions of the model's own Python code on sizes and data, which no tracing can merge.
    unrolls_length: bool = False  # makes Python lists of the length's blocks
    reads_data: bool = False  # branches on a tensor's data, or plans with numpy: needs graph breaks
    window: int = 0  # tests whether the length reaches this, where it fills a cache

    @property
    def is_text(self) -> bool:
        return bool(self.lengths)

    def build(self, scale: str = TINY, dtype: torch.dtype = torch.float32, seed: int = 0) -> nn.Module:
        torch.manual_seed(seed)
        module = randomize(self.make(scale), seed)
        return module.to(dtype).eval()

    def inputs(
        self,
        module: nn.Module,
        batch: int,
        length: int = 0,
        *,
        mask: bool = False,
        use_cache: bool | None = False,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Keyword arguments for module(**inputs). use_cache None: the model's default."""
        generator = torch.Generator().manual_seed(1000 * seed + 7 * batch + length)
        made = self.make_inputs(module, batch, length, mask, generator)
        if self.has_cache and use_cache is not None:
            made["use_cache"] = use_cache
        dtype = next(module.parameters()).dtype
        return {k: v.to(dtype) if isinstance(v, Tensor) and v.is_floating_point() else v for k, v in made.items()}

    def compilations(self, shapes: list[tuple[int, int]], cached: bool = False) -> int:
        """The number of programs in a sweep: a single program, plus the cases that the model's Python code
        distinguishes."""
        if cached and self.window:
            return len({length >= self.window for _, length in shapes})
        return len({length for _, length in shapes}) if self.unrolls_length else 1

    def sweep(self, scale: str = TINY) -> list[tuple[int, int]]:
        """Six (batch, length) pairs; batch 1 is in it, and not first."""
        batches = [3, 1, 4, 2, 7, 5]
        lengths = self.lengths[scale] if self.is_text else [0] * 6
        return list(zip(batches, lengths))


def randomize(module: nn.Module, seed: int) -> nn.Module:
    """New values for all parameters and running statistics: activations stay of order one through deep stacks."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in module.named_parameters():
            if p.dim() >= 2:
                gain = 2.0 if p.dim() == 4 else 1.0
                p.normal_(0, (gain / max(1, p[0].numel())) ** 0.5, generator=generator)
            elif name.endswith("bias"):
                p.normal_(0, 0.1, generator=generator)
            else:
                p.uniform_(0.6, 1.2, generator=generator)
        for name, b in module.named_buffers():
            if name.endswith("running_mean"):
                b.normal_(0, 0.1, generator=generator)
            elif name.endswith("running_var"):
                b.uniform_(0.7, 1.4, generator=generator)
    return module


# ---------------------------------------------------------------------------------------------- transformers


def _padding_mask(batch: int, length: int) -> Tensor:
    """Right padding in every other row, the first one included, so that batch 1 is padded too."""
    mask = torch.ones(batch, length, dtype=torch.long)
    for row in range(0, batch, 2):
        mask[row, length - 1 - row % 3 :] = 0
    return mask


def _ids(module: nn.Module, batch: int, length: int, generator: torch.Generator) -> Tensor:
    config = module.config
    vocabulary = getattr(config, "vocab_size", None) or config.text_config.vocab_size
    return torch.randint(3, vocabulary, (batch, length), generator=generator)


def _text_inputs(module, batch, length, mask, generator):
    inputs = {"input_ids": _ids(module, batch, length, generator)}
    if mask:
        inputs["attention_mask"] = _padding_mask(batch, length)
    return inputs


def _encoder_decoder_inputs(module, batch, length, mask, generator):
    inputs = _text_inputs(module, batch, length, mask, generator)
    inputs["decoder_input_ids"] = _ids(module, batch, length // 2 + 1, generator)
    return inputs


def _image_inputs(module, batch, length, mask, generator):
    size = module.config.image_size
    return {"pixel_values": torch.randn(batch, 3, size, size, generator=generator)}


def _whisper_inputs(module, batch, length, mask, generator):
    frames = 2 * module.config.max_source_positions
    return {
        "input_features": torch.randn(batch, module.config.num_mel_bins, frames, generator=generator),
        "decoder_input_ids": _ids(module, batch, length, generator),
    }


def _clip_inputs(module, batch, length, mask, generator):
    size = module.config.vision_config.image_size
    ids = torch.randint(3, module.config.text_config.vocab_size - 1, (batch, length), generator=generator)
    ids[:, -1] = module.config.text_config.eos_token_id
    inputs = {"input_ids": ids, "pixel_values": torch.randn(batch, 3, size, size, generator=generator)}
    if mask:
        inputs["attention_mask"] = _padding_mask(batch, length)
    return inputs


def _hf(config_name: str, model_name: str, tiny: dict, real: dict | None = None):
    """A factory of a transformers model from two sets of config arguments."""

    def make(scale: str) -> nn.Module:
        import transformers

        transformers.logging.set_verbosity_error()
        arguments = tiny if scale == TINY else (real or {})
        config = getattr(transformers, config_name)(**arguments)
        return getattr(transformers, model_name)(config)

    return make


def _clip(scale: str) -> nn.Module:
    import transformers

    if scale == REAL:
        return transformers.CLIPModel(transformers.CLIPConfig())
    text = dict(vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                max_position_embeddings=64, eos_token_id=98, bos_token_id=0, pad_token_id=1)  # fmt: skip
    vision = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=32,
                  patch_size=8)  # fmt: skip
    return transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))


_LENGTHS = {TINY: [12, 9, 16, 21, 33, 6], REAL: [128, 97, 256, 64, 200, 33]}
_BERT_LIKE = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
                  max_position_embeddings=80)  # fmt: skip
_LLAMA_LIKE = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                   intermediate_size=64, max_position_embeddings=128)  # fmt: skip
_LLAMA_1024 = dict(vocab_size=32000, hidden_size=1024, num_hidden_layers=12, num_attention_heads=16,
                   num_key_value_heads=4, intermediate_size=2816, max_position_embeddings=2048)  # fmt: skip


def _text(name, config, model, tiny, real=None, *, lengths=None, bench=(8, 128), decoder=False, **more) -> Model:
    return Model(
        name=name,
        make=_hf(config, model, tiny, real),
        make_inputs=more.pop("make_inputs", _text_inputs),
        lengths=lengths or _LENGTHS,
        bench={TINY: (2, (lengths or _LENGTHS)[TINY][0]), REAL: bench},
        has_mask=more.pop("has_mask", True),
        has_cache=decoder,
        **more,
    )


def _vision(name, config, model, tiny, real=None, **more) -> Model:
    return Model(name, _hf(config, model, tiny, real), _image_inputs, {}, {TINY: (2, 0), REAL: (4, 0)}, **more)


_TRANSFORMERS = [
    _text("bert", "BertConfig", "BertModel", _BERT_LIKE),
    _text("distilbert", "DistilBertConfig", "DistilBertModel",
          dict(vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=80)),
    _text("roberta", "RobertaConfig", "RobertaModel", dict(_BERT_LIKE, pad_token_id=1),
          dict(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1)),
    _text("electra", "ElectraConfig", "ElectraModel", dict(_BERT_LIKE, embedding_size=16),
          dict(embedding_size=768, hidden_size=768, num_attention_heads=12, intermediate_size=3072)),
    _text("albert", "AlbertConfig", "AlbertModel", dict(_BERT_LIKE, embedding_size=16),
          dict(hidden_size=768, num_attention_heads=12, intermediate_size=3072)),
    _text("deberta_v2", "DebertaV2Config", "DebertaV2Model",
          dict(_BERT_LIKE, relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"],
               share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False),
          dict(vocab_size=128100, hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
               intermediate_size=3072, relative_attention=True, position_buckets=256, pos_att_type=["p2c", "c2p"],
               share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False), bench=(4, 128)),
    _text("gpt2", "GPT2Config", "GPT2LMHeadModel", dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=80),
          bench=(4, 128), decoder=True),
    _text("gpt_neo", "GPTNeoConfig", "GPTNeoForCausalLM",
          dict(vocab_size=99, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
               window_size=8, max_position_embeddings=80),
          dict(hidden_size=768, num_layers=12, num_heads=12, attention_types=[[["global", "local"], 6]]),
          bench=(4, 128), decoder=True),
    _text("opt", "OPTConfig", "OPTForCausalLM",
          dict(vocab_size=99, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4,
               max_position_embeddings=80, word_embed_proj_dim=32), bench=(4, 128), decoder=True),
    _text("llama", "LlamaConfig", "LlamaForCausalLM", _LLAMA_LIKE, _LLAMA_1024, bench=(4, 128), decoder=True),
    _text("qwen2", "Qwen2Config", "Qwen2ForCausalLM", _LLAMA_LIKE, dict(_LLAMA_1024, hidden_size=896, num_attention_heads=14,
          num_key_value_heads=2, intermediate_size=4864), bench=(4, 128), decoder=True),
    _text("mistral", "MistralConfig", "MistralForCausalLM", dict(_LLAMA_LIKE, sliding_window=16),
          dict(_LLAMA_1024, sliding_window=4096), bench=(4, 128), decoder=True, window=16),
    _text("gemma", "GemmaConfig", "GemmaForCausalLM", dict(_LLAMA_LIKE, head_dim=8),
          dict(_LLAMA_1024, head_dim=64), bench=(4, 128), decoder=True),
    _text("t5", "T5Config", "T5ForConditionalGeneration",
          dict(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0),
          dict(), bench=(4, 128), decoder=True, make_inputs=_encoder_decoder_inputs),
    _text("bart", "BartConfig", "BartForConditionalGeneration",
          dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
               decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=80),
          dict(vocab_size=50265, d_model=768, encoder_layers=6, decoder_layers=6, encoder_attention_heads=12,
               decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072),
          bench=(4, 128), decoder=True, make_inputs=_encoder_decoder_inputs),
    _vision("vit", "ViTConfig", "ViTForImageClassification",
            dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32,
                 patch_size=8, num_labels=10), dict(num_labels=1000)),
    _vision("swin", "SwinConfig", "SwinForImageClassification",
            dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4,
                 num_labels=10), dict(num_labels=1000)),
    _text("whisper", "WhisperConfig", "WhisperForConditionalGeneration",
          dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
               decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=30,
               max_target_positions=40, num_mel_bins=8, decoder_start_token_id=1, pad_token_id=0, bos_token_id=1,
               eos_token_id=2),
          dict(), lengths={TINY: [12, 9, 16, 21, 33, 6], REAL: [32, 17, 64, 40, 50, 9]}, bench=(1, 32), decoder=True,
          make_inputs=_whisper_inputs, has_mask=False),
    Model("clip", _clip, _clip_inputs, {TINY: [12, 9, 16, 21, 33, 6], REAL: [77, 20, 33, 64, 40, 12]},
          {TINY: (2, 12), REAL: (4, 77)}, has_mask=True),
    # Lengths are multiples of the padding unit; a call pattern then takes a single branch of the model.
    _text("reformer", "ReformerConfig", "ReformerModelWithLMHead",
          dict(vocab_size=99, attention_head_size=8, hidden_size=32, num_attention_heads=4, feed_forward_size=48,
               attn_layers=["local", "lsh"], lsh_attn_chunk_length=8, local_attn_chunk_length=8, num_hashes=2,
               num_buckets=4, max_position_embeddings=128, axial_pos_embds=False, is_decoder=True),
          dict(max_position_embeddings=4096, axial_pos_embds=True, axial_pos_shape=[64, 64], is_decoder=True,
               num_buckets=32),
          lengths={TINY: [32, 24, 40, 48, 64, 16], REAL: [512, 256, 384, 448, 640, 320]}, bench=(1, 512), has_mask=False,
          random=True),
    _text("longformer", "LongformerConfig", "LongformerModel",
          dict(_BERT_LIKE, attention_window=8), dict(attention_window=256, max_position_embeddings=4098),
          lengths={TINY: [32, 24, 40, 48, 64, 16], REAL: [1024, 512, 768, 1280, 1536, 2048]}, bench=(1, 1024), reads_data=True),
    _text("bigbird", "BigBirdConfig", "BigBirdModel",
          dict(_BERT_LIKE, block_size=4, num_random_blocks=2, attention_type="block_sparse",
               max_position_embeddings=160),
          dict(attention_type="block_sparse"),
          lengths={TINY: [64, 48, 80, 96, 128, 56], REAL: [1024, 832, 960, 1280, 1536, 2048]}, bench=(1, 1024), unrolls_length=True, reads_data=True),
]  # fmt: skip

# ---------------------------------------------------------------------------------------------- timm


def _timm_volo() -> nn.Module:
    import timm

    return timm.models.volo.VOLO(img_size=64, layers=(1, 1, 1, 1), embed_dims=(32, 64, 64, 64), num_heads=(2, 4, 4, 4),
                                 mlp_ratio=3, num_classes=10)  # fmt: skip


def _timm_mixer() -> nn.Module:
    import timm

    return timm.models.mlp_mixer.MlpMixer(img_size=32, patch_size=8, embed_dim=32, num_blocks=2, num_classes=10)


def _timm(name: str, tiny_size: int, real_size: int = 224, batch: int = 4, make_tiny=None, **tiny: Any) -> Model:
    def make(scale: str) -> nn.Module:
        import timm

        if scale == TINY and make_tiny:
            module = make_tiny()
        else:
            module = timm.create_model(name, **(tiny if scale == TINY else {}))
        module.zoo_image_size = tiny_size if scale == TINY else real_size
        return module

    def inputs(module, batch, length, mask, generator):
        size = module.zoo_image_size
        return {"x": torch.randn(batch, 3, size, size, generator=generator)}

    return Model(name, make, inputs, {}, {TINY: (2, 0), REAL: (batch, 0)}, family="timm")


_TIMM = [
    _timm("resnet50", 64, num_classes=10),
    _timm("hrnet_w18", 64, num_classes=10),
    _timm("mobilenetv3_large_100", 64, num_classes=10),
    _timm("efficientnet_b0", 64, num_classes=10),
    _timm("convnext_base", 64, num_classes=10, depths=(1, 1, 2, 1), dims=(16, 32, 64, 128)),
    _timm("vit_base_patch16_224", 32, num_classes=10, img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4),
    _timm("swin_tiny_patch4_window7_224", 56, num_classes=10, img_size=56, embed_dim=24, depths=(2, 2, 2, 2)),
    _timm("mobilevit_s", 64, real_size=256, num_classes=10),
    _timm("volo_d1_224", 64, make_tiny=_timm_volo),
    _timm("densenet121", 64, num_classes=10),
    _timm("inception_v3", 96, real_size=299, num_classes=10),
    _timm("regnety_008", 64, num_classes=10),
    _timm("mixer_b16_224", 32, make_tiny=_timm_mixer),
]  # fmt: skip

# ---------------------------------------------------------------------------------------------- diffusion


def _unet_block(scale: str) -> nn.Module:
    from harness.unet_block import UNetBlock

    module = UNetBlock(32, 48, 24, 2, 8, layers=1) if scale == TINY else UNetBlock(320, 640, 768, 8, 32)
    module.zoo_shapes = (32, 16, 12, 24) if scale == TINY else (320, 64, 77, 768)  # channels, side, text, features
    return module


def _unet_inputs(module, batch, length, mask, generator):
    channels, side, text, features = module.zoo_shapes
    return {
        "sample": torch.randn(batch, channels, side, side, generator=generator),
        "timestep": torch.randint(0, 1000, (batch,), generator=generator),
        "context": torch.randn(batch, text, features, generator=generator),
    }


_DIFFUSION = [
    Model("unet_block", _unet_block, _unet_inputs, {}, {TINY: (2, 0), REAL: (2, 0)}, family="diffusion"),
]

MODELS: dict[str, Model] = {m.name: m for m in _TRANSFORMERS + _TIMM + _DIFFUSION}


def seeded_call(model: Model, function, inputs: dict[str, Any]):
    """Calls with a fixed random state, so that a model with randomness is comparable."""
    if model.random:
        torch.manual_seed(1234)
    return function(**inputs)
