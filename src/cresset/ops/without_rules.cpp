// Properties of operators without rules, which run through ATen. size: table
#include "ops/op_traits.h"

namespace cresset::ops {
namespace {

constexpr OpTraits raises(Raises cause) { return {.raises = cause}; }
constexpr OpTraits kRaises{.raises = Raises::Anything};
constexpr OpTraits kMatrices{.raises = Raises::Unknown, .of_matrices = true};
constexpr OpTraits kChecked{.raises = Raises::Unknown, .checks = Checks::Everything};
constexpr OpTraits kRuns{.raises = Raises::Unknown, .inference = Inference::RunsOften};
constexpr OpTraits kForIntegers{.raises = Raises::Unknown, .for_integers = true};

constexpr TraitRow kRows[] = {
    // ---- linear algebra
    {"aten::_linalg_check_errors", {.raises = Raises::Anything, .checks = Checks::Everything}},
    {"aten::_linalg_det", kChecked},
    {"aten::_linalg_eigh", {.raises = Raises::Anything, .checks = Checks::Everything}},
    {"aten::_linalg_eigvals", {.raises = Raises::Anything, .checks = Checks::Everything}},
    {"aten::_linalg_slogdet", kChecked},
    {"aten::_linalg_solve_ex", {.raises = Raises::Asked, .checks = Checks::Everything}},
    {"aten::cholesky", kRaises},
    {"aten::cholesky_inverse", kRaises},
    {"aten::geqrf", kRuns},
    {"aten::linalg_eig", {.raises = Raises::Anything, .inference = Inference::RunsOften}},
    {"aten::linalg_eigvals", kRaises},
    {"aten::linalg_householder_product", kMatrices},
    {"aten::linalg_inv_ex", {.raises = Raises::Asked, .of_matrices = true}},
    {"aten::linalg_ldl_factor_ex", {.raises = Raises::Asked, .of_matrices = true}},
    {"aten::linalg_ldl_solve",
     {.raises = Raises::Unknown, .checks = Checks::NoSizes, .pivots = 1, .of_matrices = true}},
    {"aten::linalg_lstsq", {.raises = Raises::Anything, .of_matrices = true}},
    {"aten::linalg_lu", {.raises = Raises::Anything, .of_matrices = true}},
    {"aten::linalg_lu_factor_ex", {.raises = Raises::Asked, .of_matrices = true}},
    {"aten::linalg_matrix_exp", kMatrices},
    {"aten::linalg_pinv.atol_rtol_tensor", {.raises = Raises::Anything, .calls_others = true, .of_matrices = true}},
    {"aten::linalg_qr", kMatrices},
    {"aten::linalg_solve_triangular", kMatrices},

    // ---- Fourier transforms
    {"aten::_fft_c2c", kRuns},
    {"aten::_fft_c2r", kRuns},
    {"aten::_fft_r2c", kRuns},

    // ---- losses and layers
    {"aten::_ctc_loss", kRaises},
    {"aten::_ctc_loss.Tensor", kRaises},
    {"aten::_pack_padded_sequence", kRaises},
    {"aten::binary_cross_entropy", kRaises},
    {"aten::embedding_renorm", raises(Raises::Rows)},
    {"aten::fractional_max_pool3d_backward", kRuns},
    {"aten::max_unpool2d", {.raises = Raises::Anything, .inference = Inference::RunsOften}},
    {"aten::max_unpool3d", kRaises},
    {"aten::mkldnn_rnn_layer", {.raises = Raises::Unknown, .inference = Inference::RunsOnceInTraining}},
    {"aten::multi_margin_loss", {.raises = Raises::Anything, .inference = Inference::RunsOften}},
    {"aten::multi_margin_loss_backward", kRuns},
    {"aten::multilabel_margin_loss_backward", kRuns},
    {"aten::multilabel_margin_loss_forward", {.raises = Raises::Anything, .inference = Inference::RunsOften}},

    // ---- random numbers
    {"aten::bernoulli.Tensor", kRaises},
    {"aten::binomial", kRaises},

    // ---- counts, indices, assertions
    {"aten::_assert_async", kRaises},
    {"aten::_assert_async.msg", kRaises},
    {"aten::_cdist_forward", kChecked},
    {"aten::_functional_assert_async.msg", kRaises},
    {"aten::histc", kRaises},
    {"aten::histogram.bin_ct", {.raises = Raises::Anything, .inference = Inference::RunsOften}},
    {"aten::histogram.bins_tensor", kRaises},
    {"aten::index_reduce", raises(Raises::AlongDim)},
    {"aten::segment_reduce", kRaises},

    // ---- elements
    {"aten::__lshift__.Scalar", kForIntegers},
    {"aten::__lshift__.Tensor", kForIntegers},
    {"aten::__rshift__.Scalar", kForIntegers},
    {"aten::__rshift__.Tensor", kForIntegers},
    {"aten::_reshape_copy", {.raises = Raises::Unknown, .elements = Elements::Reshaped}},
    {"aten::as_strided_copy", {.raises = Raises::Unknown, .by_memory = true}},
    {"aten::lift_fresh_copy", {.raises = Raises::Unknown, .elements = Elements::Kept}},
    {"aten::view_copy", {.raises = Raises::Unknown, .elements = Elements::Reshaped}},
    {"aten::_conj", {.raises = Raises::Unknown, .elements = Elements::Reinterpreted}},
    {"aten::_fw_primal", {.raises = Raises::Unknown, .elements = Elements::Kept}},
    {"aten::_make_dual", {.raises = Raises::Unknown, .elements = Elements::Kept}},
    {"aten::_neg_view", {.raises = Raises::Unknown, .elements = Elements::Reinterpreted}},
    {"aten::angle", kRuns},
    {"aten::gcd", kForIntegers},
    {"aten::lcm", kForIntegers},
    {"aten::view.dtype", {.raises = Raises::Unknown, .elements = Elements::Reinterpreted}},
    {"aten::view_as_complex", {.raises = Raises::Unknown, .elements = Elements::Reinterpreted}},
    {"aten::view_as_real", {.raises = Raises::Unknown, .elements = Elements::Reinterpreted}},
};

}  // namespace

std::span<const TraitRow> rows_without_rules() { return kRows; }

}  // namespace cresset::ops
