"""Decompositions of torch's functions for symbolic numbers (base.py).

A module is imported when the first of its functions is called with symbolic numbers, or at all for functions with
`always`. Most programs call none. The tables here repeat the decorators in the modules, and a test compares both.
"""

import types

from .. import _C
from .._genuine import math, torch

__builtins__ = _C._builtins  # of this module: the user may have replaced builtins

# Values of base.form's `always`: a symbolic number outside of lists, or a tensor with data-dependent sizes.
OF_DATA = 2
# A factor (alpha, beta, value) is a tensor without dimensions, whose number the C code would read.
OF_FACTORS = 3
OF_SYMBOLS_OR_FACTORS = 4

_OF_SYMBOLS = {
    "random": """dropout feature_dropout alpha_dropout feature_alpha_dropout dropout_ Tensor.bernoulli_ bernoulli
        Tensor.bernoulli Tensor.normal_ Tensor.uniform_ Tensor.exponential_ Tensor.log_normal_ Tensor.cauchy_
        Tensor.geometric_ normal _C._nn.scaled_dot_product_attention""",
    "losses": """_C._nn.huber_loss _C._nn.smooth_l1_loss margin_ranking_loss hinge_embedding_loss
        cosine_embedding_loss triplet_margin_loss poisson_nll_loss _C._nn.multi_margin_loss
        _C._nn.cross_entropy_loss""",
    "norms": """layer_norm rms_norm group_norm batch_norm instance_norm linalg.vector_norm dist Tensor.dist
        pairwise_distance pdist cosine_similarity renorm Tensor.renorm""",
    "scalar_arguments": """fmod Tensor.fmod xlogy special.xlogy Tensor.xlogy special.xlog1py copysign Tensor.copysign
        float_power Tensor.float_power Tensor.pow_ celu _C._nn.softshrink logit Tensor.logit special.logit nan_to_num
        Tensor.nan_to_num isclose Tensor.isclose rsub index_fill Tensor.index_fill Tensor.index_fill_ scatter
        Tensor.scatter Tensor.scatter_""",
    "indexing": """diagonal Tensor.diagonal diag_embed Tensor.diag_embed diag Tensor.diag diagflat Tensor.diagflat
        tril_indices triu_indices hann_window hamming_window blackman_window bartlett_window kaiser_window fft.fftfreq
        fft.rfftfreq logspace diagonal_scatter Tensor.diagonal_scatter round Tensor.round rot90 Tensor.rot90
        _C._VariableFunctions.stft _C._infer_size""",
    "arange_and_resize": """arange _C._nn.upsample_nearest1d _C._nn._upsample_nearest_exact1d _C._nn.upsample_nearest2d
        _C._nn._upsample_nearest_exact2d _C._nn.upsample_nearest3d _C._nn._upsample_nearest_exact3d
        _C._nn.upsample_linear1d _C._nn.upsample_bilinear2d _C._nn.upsample_trilinear3d _C._nn.upsample_bicubic2d""",
    "special": """polygamma special.polygamma Tensor.polygamma mvlgamma Tensor.mvlgamma special.multigammaln
        linalg.pinv pinverse Tensor.pinverse linalg.matrix_rank math.radians math.degrees math.fabs math.pow math.hypot
        math.copysign math.isclose math.comb builtins.divmod builtins.pow""",
    "statistics": """histc Tensor.histc cov Tensor.cov var Tensor.var std Tensor.std var_mean std_mean trapezoid trapz
        cumulative_trapezoid hsplit Tensor.hsplit vsplit Tensor.vsplit dsplit Tensor.dsplit""",
    "pooling": """avg_pool1d _C._nn.avg_pool2d _C._nn.avg_pool3d max_pool1d_with_indices max_pool1d
        _C._nn.max_pool2d_with_indices max_pool2d _C._nn.max_pool3d_with_indices max_pool3d adaptive_avg_pool1d
        adaptive_max_pool1d _C._nn.adaptive_max_pool2d _C._nn.adaptive_max_pool3d Tensor.unfold _C._nn.im2col
        _C._nn.col2im pixel_shuffle pixel_unshuffle""",
}
_ALWAYS = {
    "norms": "_C._VariableFunctions.cdist",
    "scalar_arguments": "rrelu",
    "indexing": """combinations vander _C._VariableFunctions.block_diag repeat_interleave Tensor.repeat_interleave
        _C._nn.pad_sequence""",
    "matmul": "linalg.multi_dot _C._VariableFunctions.chain_matmul",
    "signals": "istft",
    "statistics": """quantile Tensor.quantile nanquantile Tensor.nanquantile diff Tensor.diff gradient tensor_split
        Tensor.tensor_split""",
}
_WITH_FACTORS_OR_SYMBOLS = {
    "scalar_arguments": """addmm Tensor.addmm Tensor.addmm_ addmv Tensor.addmv Tensor.addmv_ addr Tensor.addr Tensor.addr_ baddbmm
        Tensor.baddbmm Tensor.baddbmm_ addbmm Tensor.addbmm Tensor.addbmm_ index_add Tensor.index_add
        Tensor.index_add_"""
}
_OWNERS = {"math": math, "builtins": types.SimpleNamespace(**_C._builtins), "Tensor": torch._C.TensorBase}
_WITH_DATA = {"scalar_arguments": "_C._nn.pad constant_pad_nd"}
_WITH_FACTORS = {
    "scalar_factors": """add Tensor.add Tensor.add_ sub Tensor.sub Tensor.sub_ subtract Tensor.subtract Tensor.subtract_ addcmul
        Tensor.addcmul Tensor.addcmul_ addcdiv Tensor.addcdiv Tensor.addcdiv_"""
}


def rows():
    """(function, the module with its decomposition, the condition for its use: `always` of base.form)"""
    tables = {
        False: _OF_SYMBOLS,
        True: _ALWAYS,
        OF_DATA: _WITH_DATA,
        OF_FACTORS: _WITH_FACTORS,
        OF_SYMBOLS_OR_FACTORS: _WITH_FACTORS_OR_SYMBOLS,
    }
    for always, table in tables.items():
        for module, names in table.items():
            for name in names.split():
                owner, _, own = name.rpartition(".")
                function = _OWNERS.get(owner) or torch
                for part in own.split(".") if owner in _OWNERS else name.split("."):
                    function = getattr(function, part, None)
                # Functions missing in this release of torch, and replacements by the user, are skipped.
                if function is not None and not isinstance(function, types.FunctionType):
                    yield function, f"{__name__}.{module}", always


for _row in rows():
    _C._decomposition_in(*_row)
