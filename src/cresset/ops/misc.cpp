// Operators of no other family: random numbers, losses, and operators whose result has a data-dependent shape.
#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::Device;
using graph::MemoryFormat;
using graph::TensorType;
using sym::ExprId;

// ---- random numbers: sized (size at kSizeArg, then dtype, layout, device) and like another tensor

template <size_t kSizeArg>
Result<Types> random_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out;
  out.dtype = args.dtype(kSizeArg + 1).value_or(shapes.default_dtype);
  if (!args.is_none(kSizeArg + 3)) out.device = std::get<Device>(args[kSizeArg + 3]);
  for (const ExprId size : args.integers(kSizeArg))
    if (!shapes.require(shapes.pool().ge(size, shapes.pool().constant(0)))) return shapes.invalid("a size is negative");
  return one(contiguous_like(shapes, out, args.integers(kSizeArg)));
}

Result<Types> randperm_shape(ShapeContext& shapes, const OpArgs& args) {
  TensorType out;
  out.dtype = args.dtype(1).value_or(DType::I64);
  if (!args.is_none(3)) out.device = std::get<Device>(args[3]);
  const ExprId count = args.integer(0);
  if (!shapes.require(shapes.pool().ge(count, shapes.pool().constant(0)))) return shapes.invalid("n is negative");
  return one(contiguous_like(shapes, out, {count}));
}

template <size_t kDtypeArg>
Result<Types> random_like_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const auto format =
      args.is_none(kDtypeArg + 4) ? MemoryFormat::Preserve : std::get<MemoryFormat>(args[kDtypeArg + 4]);
  if (!has_rank_of(format, self.rank())) return shapes.invalid("the memory format is of another rank");
  TensorType out = with_shape(self, self.sizes, {});
  out.strides = format == MemoryFormat::Preserve ? shapes.like_strides(self) : shapes.strides_for(format, self.sizes);
  out.dtype = args.dtype(kDtypeArg).value_or(self.dtype);
  if (!args.is_none(kDtypeArg + 2)) out.device = std::get<Device>(args[kDtypeArg + 2]);
  return one(std::move(out));
}

Result<Types> like_self_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  return one(with_shape(self, self.sizes, shapes.like_strides(self)));
}

// Also normal(mean, std) with one or two tensor arguments.
template <size_t kArg>
Result<Types> contiguous_as_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& like = args.tensor(kArg);
  return one(contiguous_like(shapes, like, like.sizes));
}

Result<Types> normal_shape(ShapeContext& shapes, const OpArgs& args) {
  auto sizes = shapes.broadcast(args.tensor(0).sizes, args.tensor(1).sizes);
  if (!sizes.ok()) return sizes.fallback();
  return one(contiguous_like(shapes, args.tensor(0), std::move(*sizes)));
}

Result<Types> multinomial_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (self.rank() != 1 && self.rank() != 2) return shapes.invalid("needs one or two dimensions");
  sym::ExprPool& pool = shapes.pool();
  if (!shapes.require(pool.gt(args.integer(1), pool.constant(0)))) return shapes.invalid("draws nothing");
  Sizes sizes = self.sizes;
  sizes.back() = args.integer(1);
  return one(contiguous_like(shapes, self, std::move(sizes), DType::I64));
}

// ---- the state of the default CPU generator (bridge/capture/rng_state.h)

constexpr int64_t kStateBytes = 5056;

Result<Types> get_rng_state_shape(ShapeContext& shapes, const OpArgs&) {
  TensorType out;
  out.dtype = DType::U8;
  return one(contiguous_like(shapes, out, {shapes.pool().constant(kStateBytes)}));
}

Result<Types> set_rng_state_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& state = args.tensor(0);
  if (state.dtype != DType::U8 || state.rank() != 1 || shapes.constant(state.sizes[0]) != kStateBytes)
    return shapes.invalid("is no state of a generator");
  return one(contiguous_like(shapes, state, {shapes.pool().constant(0)}));
}

// A real and an imaginary part, or a distance and an angle.
Result<Types> complex_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &a = args.tensor(0), &b = args.tensor(1);
  if (a.dtype != b.dtype || (a.dtype != DType::F32 && a.dtype != DType::F64))
    return shapes.unsupported("complex values of such numbers");
  CRESSET_TRY(Sizes sizes, shapes.broadcast(a.sizes, b.sizes));
  Sizes strides = shapes.pointwise_strides(sizes, {&a, &b});
  TensorType out = with_shape(a, std::move(sizes), std::move(strides));
  out.dtype = a.dtype == DType::F32 ? DType::C64 : DType::C128;
  return one(std::move(out));
}

// linalg_cholesky_ex(A, upper, check_errors) -> (L, info); L is column-major.
Result<Types> cholesky_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& a = args.tensor(0);
  if (a.rank() < 2) return shapes.invalid("needs a matrix");
  if (a.dtype != DType::F32 && a.dtype != DType::F64) return shapes.unsupported("factors of other numbers");
  const size_t rows = a.rank() - 2, columns = a.rank() - 1;
  if (!shapes.require_equal(a.sizes[rows], a.sizes[columns])) return shapes.invalid("needs square matrices");
  TensorType factor = contiguous_like(shapes, a, a.sizes);
  std::swap(factor.strides[rows], factor.strides[columns]);
  TensorType info = contiguous_like(shapes, a, {a.sizes.begin(), a.sizes.end() - 2});
  info.dtype = DType::I32;
  return Types{std::move(factor), std::move(info)};
}

// _linalg_svd(A, full_matrices, compute_uv, driver) -> (U, S, Vh); LAPACK's matrices are column-major.
Result<Types> svd_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& a = args.tensor(0);
  if (a.rank() < 2) return shapes.invalid("needs a matrix");
  if (a.dtype != DType::F32 && a.dtype != DType::F64) return shapes.unsupported("singular values of other numbers");
  const ExprId rows = a.sizes[a.rank() - 2], columns = a.sizes[a.rank() - 1];
  const ExprId count = shapes.pool().min(rows, columns);
  const auto of = [&](Sizes last) {
    Sizes sizes(a.sizes.begin(), a.sizes.end() - 2);
    sizes.insert(sizes.end(), last.begin(), last.end());
    return contiguous_like(shapes, a, std::move(sizes));
  };
  const auto by_columns = [&](ExprId m, ExprId n) {
    TensorType out = of({n, m});
    std::swap(out.sizes[a.rank() - 2], out.sizes[a.rank() - 1]);
    std::swap(out.strides[a.rank() - 2], out.strides[a.rank() - 1]);
    return out;
  };
  if (!args.flag_or(2, true)) {
    const TensorType none = contiguous_like(shapes, a, {shapes.pool().constant(0)});
    return Types{none, of({count}), none};
  }
  const bool full = args.flag_or(1, false);
  return Types{by_columns(rows, full ? rows : count), of({count}), by_columns(full ? columns : count, columns)};
}

// A distance for each pair of rows.
Result<Types> pdist_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (self.rank() != 2) return shapes.unsupported("not a matrix");
  sym::ExprPool& pool = shapes.pool();
  const sym::ExprId rows = self.sizes[0], others = pool.sub(rows, pool.constant(1));
  return one(contiguous_like(shapes, self, {pool.floor_div(pool.mul(rows, others), pool.constant(2))}));
}

Result<Types> isin_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& elements = args.tensor(0);
  if (category(elements.dtype) == DTypeCategory::Complex) return shapes.unsupported("complex numbers");
  return one(contiguous_like(shapes, elements, elements.sizes, DType::Bool));
}

// nonzero_static(self, size, fill_value)
Result<Types> nonzero_static_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  const sym::ExprId rank = shapes.pool().constant(static_cast<int64_t>(self.rank()));
  return one(contiguous_like(shapes, self, {args.integer(1), rank}, DType::I64));
}

// ---- losses(self, target, weight, reduction, ignore_index) -> (output, total weight)

constexpr int64_t kNoReduction = 0;

Result<Types> nll_loss_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &target = args.tensor(1);
  if (self.rank() == 0 || self.rank() > 2 || target.rank() > 1) return shapes.invalid("unexpected dimensions");
  if (target.rank() == 1 && self.rank() == 2 && !shapes.require_equal(self.sizes[0], target.sizes[0]))
    return shapes.invalid("input and target differ in batch size");
  const bool each = shapes.constant(args.integer(3)) == kNoReduction && self.rank() == 2;
  return Types{contiguous_like(shapes, self, each ? Sizes{self.sizes[0]} : Sizes{}), contiguous_like(shapes, self, {})};
}

Result<Types> nll_loss2d_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &target = args.tensor(1);
  if (self.rank() != 4 || target.rank() != 3) return shapes.invalid("unexpected dimensions");
  const bool each = shapes.constant(args.integer(3)) == kNoReduction;
  return Types{contiguous_like(shapes, self, each ? target.sizes : Sizes{}), contiguous_like(shapes, self, {})};
}

// ---- fake quantization: the values of a quantized tensor, and a mask of the values in its range

bool is_range(ShapeContext& shapes, const OpArgs& args, size_t low) {
  return shapes.constant(args.integer(low)) <= shapes.constant(args.integer(low + 1));
}

Types quantized(ShapeContext& shapes, const TensorType& self) {
  const TensorType values = with_shape(self, self.sizes, shapes.like_strides(self));
  TensorType mask = values;
  mask.dtype = DType::Bool;
  return {values, std::move(mask)};
}

Result<Types> quantized_shape(ShapeContext& shapes, const OpArgs& args) {
  const int64_t zero = shapes.constant(args.integer(2));
  const bool zero_is_inside = shapes.constant(args.integer(3)) <= zero && zero <= shapes.constant(args.integer(4));
  if (args.tensor(0).dtype != DType::F32 || !is_range(shapes, args, 3) || !zero_is_inside)
    return shapes.unsupported("another fake quantization");
  return quantized(shapes, args.tensor(0));
}

Result<Types> quantized_by_channel_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &scale = args.tensor(1), &zero = args.tensor(2);
  const int64_t axis = shapes.constant(args.integer(3));
  const bool fits = scale.rank() == 1 && zero.rank() == 1 && 0 <= axis && axis < static_cast<int64_t>(self.rank());
  if (self.dtype != DType::F32 || scale.dtype != DType::F32 || zero.dtype != DType::I32 || !fits ||
      !is_range(shapes, args, 4))
    return shapes.unsupported("another fake quantization");
  for (const TensorType* of_channels : {&scale, &zero})
    if (!shapes.require_equal(of_channels->sizes[0], self.sizes[static_cast<size_t>(axis)]))
      return shapes.unsupported("scales of other channels");
  return quantized(shapes, self);
}

// ---- data-dependent results

Result<Types> data_dependent_shape(ShapeContext&, const OpArgs&) {
  return Fallback{FallbackReason::DataDependent, "a result whose shape or value depends on tensor data", ""};
}

constexpr OpDef kMiscOps[] = {
    {.schema = "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_shape<0>,
     .traits = {.draws = true}},
    {.schema = "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_shape<0>,
     .traits = {.draws = true}},
    {.schema = "aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_shape<1>,
     .traits = {.draws = true}},
    {.schema = "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_shape<2>,
     .traits = {.draws = true}},
    {.schema = "aten::randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? "
               "pin_memory=None) -> Tensor",
     .op_class = kExtern,
     .shape = randperm_shape,
     .traits = {.draws = true}},
    {.schema = "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_like_shape<1>,
     .traits = {.draws = true}},
    {.schema = "aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_like_shape<1>,
     .traits = {.draws = true}},
    {.schema = "aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_like_shape<2>,
     .traits = {.draws = true}},
    {.schema = "aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? "
               "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .op_class = kExtern,
     .shape = random_like_shape<3>,
     .traits = {.draws = true}},
    {.schema = "aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<0>,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<0>,
     .traits = {.draws = true}},
    {.schema = "aten::log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true}},
    {.schema = "aten::cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true}},
    {.schema = "aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true}},
    {.schema = "aten::poisson(Tensor self, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<0>,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<0>,
     .traits = {.draws = true}},
    {.schema =
         "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true}},
    {.schema = "cresset::normal_fill(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true, .of_layout = true}},
    {.schema = "cresset::bernoulli_fill(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true, .of_layout = true}},
    {.schema = "cresset::bernoulli_fill.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true, .of_layout = true}},
    {.schema = "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<0>,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<1>,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = normal_shape,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true}},
    {.schema = "aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = like_self_shape,
     .traits = {.draws = true}},
    {.schema = "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
               "Tensor info)",
     .op_class = kExtern,
     .shape = cholesky_shape,
     .traits = {.raises = Raises::Asked, .of_matrices = true}},
    {.schema = "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> "
               "(Tensor U, Tensor S, Tensor Vh)",
     .op_class = kExtern,
     .shape = svd_shape,
     .traits = {.raises = Raises::Anything, .checks = Checks::Everything}},
    {.schema = "aten::complex(Tensor real, Tensor imag) -> Tensor", .op_class = kExtern, .shape = complex_shape},
    {.schema = "aten::polar(Tensor abs, Tensor angle) -> Tensor", .op_class = kExtern, .shape = complex_shape},
    {.schema = "cresset::get_rng_state() -> Tensor",
     .op_class = kExtern,
     .shape = get_rng_state_shape,
     .traits = {.draws = true}},
    {.schema = "cresset::set_rng_state(Tensor state) -> Tensor",
     .op_class = kExtern,
     .shape = set_rng_state_shape,
     .traits = {.draws = true}},
    {.schema = "aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? "
               "generator=None) -> Tensor",
     .op_class = kExtern,
     .shape = multinomial_shape,
     .traits = {.raises = Raises::Anything, .draws = true}},
    {.schema = "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
               "invert=False) -> Tensor",
     .op_class = kExtern,
     .shape = isin_shape},
    {.schema = "aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
               "invert=False) -> Tensor",
     .op_class = kExtern,
     .shape = isin_shape},
    {.schema = "aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
     .op_class = kExtern,
     .shape = nonzero_static_shape,
     .traits = {.inference = Inference::RunsOften}},
    {.schema = "aten::_pdist_forward(Tensor self, float p=2) -> Tensor", .op_class = kExtern, .shape = pdist_shape},
    {.schema = "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) "
               "-> (Tensor output, Tensor total_weight)",
     .op_class = kExtern,
     .shape = nll_loss_shape,
     .traits = {.raises = Raises::Targets}},
    {.schema = "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
               "ignore_index) -> (Tensor output, Tensor total_weight)",
     .op_class = kExtern,
     .shape = nll_loss2d_shape,
     .traits = {.raises = Raises::Targets}},
    {.schema = "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
               "SymInt ignore_index, Tensor total_weight) -> Tensor",
     .op_class = kExtern,
     .shape = contiguous_as_shape<1>},
    {.schema =
         "aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, "
         "int quant_max) -> (Tensor output, Tensor mask)",
     .op_class = kExtern,
     .shape = quantized_shape},
    {.schema =
         "aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, "
         "int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
     .op_class = kExtern,
     .shape = quantized_by_channel_shape},
    {.schema = "aten::_local_scalar_dense(Tensor self) -> Scalar", .op_class = kExtern, .shape = data_dependent_shape},
    {.schema = "aten::nonzero(Tensor self) -> Tensor", .op_class = kExtern, .shape = data_dependent_shape},
    {.schema = "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
     .op_class = kExtern,
     .shape = data_dependent_shape},
    {.schema = "aten::equal(Tensor self, Tensor other) -> bool", .op_class = kExtern, .shape = data_dependent_shape},
    {.schema = "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
               "(Tensor, Tensor, Tensor)",
     .op_class = kExtern,
     .shape = data_dependent_shape},
    {.schema = "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
               "return_counts=False) -> (Tensor, Tensor, Tensor)",
     .op_class = kExtern,
     .shape = data_dependent_shape},
    {.schema = "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
               "dim=None) -> (Tensor, Tensor, Tensor)",
     .op_class = kExtern,
     .shape = data_dependent_shape},
    {.schema = "aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
     .op_class = kExtern,
     .shape = data_dependent_shape,
     .traits = {.raises = Raises::Anything}},
    {.schema = "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
     .op_class = kExtern,
     .shape = data_dependent_shape,
     .traits = {.raises = Raises::Anything}},
};

}  // namespace

std::span<const OpDef> misc_ops() { return kMiscOps; }

}  // namespace cresset::ops
