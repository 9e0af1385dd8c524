// Pooling and resampling of images, called through ATen: exact symbolic sizes; the result keeps the input's format.
// Averages and maxima of small windows are pointwise, and so are the pixel shuffles.
#include "ops/families.h"
#include "ops/pool_window.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;
using loop::ScalarId;
using sym::ExprId;
using sym::ExprPool;

// The result for an image batch with new spatial sizes. Unbatched images give row-major results.
TensorType image_like(ShapeContext& shapes, const TensorType& self, const Sizes& spatial) {
  Sizes sizes(self.sizes.begin(), self.sizes.end() - std::ptrdiff_t(spatial.size()));
  sizes.insert(sizes.end(), spatial.begin(), spatial.end());
  Sizes strides = self.rank() == spatial.size() + 2 ? shapes.strides_for(shapes.suggest_format(self), sizes)
                                                    : shapes.contiguous_strides(sizes);
  return with_shape(self, std::move(sizes), std::move(strides));
}

Result<bool> check_image(ShapeContext& shapes, const TensorType& self, size_t spatial) {
  if (self.rank() != spatial + 1 && self.rank() != spatial + 2)
    return shapes.invalid("needs an image or a batch of images");
  return true;
}

// ---- windows: self, kernel_size, stride, padding, (dilation,) ceil_mode, ...

struct Window {
  int64_t kernel, stride, padding, dilation;
  bool ceil;
};

int64_t window_number(ShapeContext& shapes, const OpArgs& args, size_t arg, size_t i, int64_t otherwise) {
  const std::vector<ExprId>& list = args.integers(arg);
  if (list.empty()) return otherwise;
  return shapes.constant(list.size() == 1 ? list[0] : list[i]);
}

Result<ExprId> pooled_extent(ShapeContext& shapes, ExprId in, const Window& window) {
  ExprPool& pool = shapes.pool();
  if (window.kernel <= 0 || window.stride <= 0 || window.dilation <= 0)
    return shapes.invalid("kernel size, stride and dilation must be positive");
  if (window.padding < 0 || window.padding > ((window.kernel - 1) * window.dilation + 1) / 2)
    return shapes.invalid("the padding must be at most half the kernel size");
  const int64_t constant = 2 * window.padding - window.dilation * (window.kernel - 1) - 1;
  const ExprId stride = pool.constant(window.stride);
  const ExprId room = pool.add(in, pool.constant(constant + (window.ceil ? window.stride - 1 : 0)));
  ExprId out = shapes.env().simplify(pool.add(pool.floor_div(room, stride), pool.constant(1)));
  if (window.ceil) {
    // The last window must start inside the input or its left padding.
    const ExprId last = pool.mul(pool.sub(out, pool.constant(1)), stride);
    const ExprId outside = pool.ge(last, pool.add(in, pool.constant(window.padding)));
    const std::optional<bool> one_less = shapes.decided(outside);
    if (!one_less) return shapes.needs(outside);
    if (*one_less) out = pool.sub(out, pool.constant(1));
  }
  if (!shapes.require(pool.ge(out, pool.constant(1)))) return shapes.invalid("the output is too small");
  return out;
}

template <size_t kSpatial, bool kDilated>
Result<TensorType> pooled(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY([[maybe_unused]] const bool checked, check_image(shapes, self, kSpatial));
  for (size_t d = self.rank() - kSpatial - 1; d < self.rank(); ++d)
    if (!shapes.require(shapes.pool().ge(self.sizes[d], shapes.pool().constant(1))))
      return shapes.invalid("only the batch may be empty");
  Sizes spatial;
  for (size_t i = 0; i < kSpatial; ++i) {
    Window window;
    window.kernel = window_number(shapes, args, 1, i, 1);
    window.stride = window_number(shapes, args, 2, i, window.kernel);
    window.padding = window_number(shapes, args, 3, i, 0);
    window.dilation = kDilated ? window_number(shapes, args, 4, i, 1) : 1;
    window.ceil = args.flag(kDilated ? 5 : 4);
    CRESSET_TRY(const ExprId extent, pooled_extent(shapes, self.sizes[self.rank() - kSpatial + i], window));
    spatial.push_back(extent);
  }
  return image_like(shapes, self, spatial);
}

template <size_t kSpatial>
Result<Types> avg_pool_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(TensorType out, (pooled<kSpatial, false>(shapes, args)));
  ExprPool& pool = shapes.pool();
  if (!args.is_none(6) && !shapes.require(pool.ne(args.integer(6), pool.constant(0))))
    return shapes.invalid("the divisor is 0");
  if (kSpatial == 3) out.strides = shapes.contiguous_strides(out.sizes);  // regardless of the argument's strides
  return one(std::move(out));
}

template <size_t kSpatial>
Result<Types> max_pool_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(const TensorType values, (pooled<kSpatial, true>(shapes, args)));
  Types out(2, values);
  out[1].dtype = DType::I64;
  return out;
}

std::string_view max_alone(const OpArgs& args) {
  const bool small = window_of(args, 2, /*dilated=*/true).elements() <= kMostUnrolled;
  return small && is_float(args.tensor(0).dtype) ? "prim::max_pool2d" : std::string_view();
}

// ---- operators with given output sizes

template <size_t kSpatial>
Result<Types> resized_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  CRESSET_TRY([[maybe_unused]] const bool checked, check_image(shapes, self, kSpatial));
  if (args.integers(1).size() != kSpatial) return shapes.invalid("the number of output sizes does not match");
  return one(image_like(shapes, self, args.integers(1)));
}

// Contiguous, regardless of the argument's strides.
Result<Types> adaptive_volumes_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types out, resized_shape<3>(shapes, args));
  out[0].strides = shapes.contiguous_strides(out[0].sizes);
  return out;
}

template <size_t kSpatial>
Result<Types> adaptive_max_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(Types out, resized_shape<kSpatial>(shapes, args));
  out.push_back(out[0]);
  out[1].dtype = DType::I64;
  return out;
}

template <size_t kSpatial>
Result<Types> upsample_shape(ShapeContext& shapes, const OpArgs& args) {
  if (args.tensor(0).rank() != kSpatial + 2) return shapes.invalid("needs a batch of images");
  for (const ExprId size : args.integers(1))
    if (!shapes.require(shapes.pool().ge(size, shapes.pool().constant(1))))
      return shapes.invalid("the output must not be empty");
  return resized_shape<kSpatial>(shapes, args);
}

template <size_t kSpatial>
Result<Types> grid_sampler_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &self = args.tensor(0), &grid = args.tensor(1);
  if (self.rank() != kSpatial + 2 || grid.rank() != kSpatial + 2)
    return shapes.invalid("needs tensors of as many dimensions as the images, the batch and the channels have");
  if (!shapes.require_equal(self.sizes[0], grid.sizes[0])) return shapes.invalid("the batch sizes differ");
  Sizes sizes{self.sizes[0], self.sizes[1]};
  sizes.insert(sizes.end(), grid.sizes.begin() + 1, grid.sizes.end() - 1);
  return one(contiguous_like(shapes, self, std::move(sizes)));
}

// ---- pixel_shuffle(self, factor), pixel_unshuffle(self, factor)

template <bool kShuffle>
Result<Types> pixel_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType& self = args.tensor(0);
  if (self.rank() < 3) return shapes.invalid("needs at least 3 dimensions");
  ExprPool& pool = shapes.pool();
  const ExprId factor = args.integer(1), square = pool.mul(factor, factor);
  Sizes sizes = self.sizes;
  const ExprId count = graph::numel(pool, self.sizes);
  if (!kShuffle && shapes.decide(pool.eq(count, pool.constant(0))))  // eager mode returns the tensor unchanged
    return one(with_shape(self, self.sizes, shapes.like_strides(self)));
  const size_t channels = self.rank() - 3;
  const auto divide = [&](size_t dim, ExprId by) {
    sizes[dim] = shapes.env().simplify(pool.floor_div(self.sizes[dim], by));
    return shapes.require_equal(pool.mul(sizes[dim], by), self.sizes[dim]);
  };
  const auto multiply = [&](size_t dim, ExprId by) { sizes[dim] = pool.mul(self.sizes[dim], by); };
  if (!shapes.require(pool.ge(factor, pool.constant(1)))) return shapes.invalid("the factor must be positive");
  bool fits = true;
  for (const size_t dim : {channels + 1, channels + 2}) {
    if (kShuffle)
      multiply(dim, factor);
    else
      fits = divide(dim, factor) && fits;
  }
  if (kShuffle)
    fits = divide(channels, square);
  else
    multiply(channels, square);
  if (!fits) return shapes.invalid("the factor does not divide the sizes");
  Sizes strides = shapes.strides_for(shapes.suggest_format(self), sizes);
  return one(with_shape(self, std::move(sizes), std::move(strides)));
}

// A channel for each position in a square of pixels, row by row.
template <bool kShuffle>
ScalarId pixel_element(ElementContext& context, const OpArgs& args, size_t, const Index& index) {
  ExprPool& pool = context.pool();
  const ExprId factor = args.integer(1), square = pool.mul(factor, factor);
  const size_t c = index.size() - 3, h = c + 1, w = c + 2;
  Index from = index;
  if (kShuffle) {
    const ExprId place = pool.add(pool.mul(pool.mod(index[h], factor), factor), pool.mod(index[w], factor));
    from[c] = pool.add(pool.mul(index[c], square), place);
    from[h] = pool.floor_div(index[h], factor);
    from[w] = pool.floor_div(index[w], factor);
  } else {
    from[c] = pool.floor_div(index[c], square);
    from[h] = pool.add(pool.mul(index[h], factor), pool.mod(pool.floor_div(index[c], factor), factor));
    from[w] = pool.add(pool.mul(index[w], factor), pool.mod(index[c], factor));
  }
  for (const size_t dim : {c, h, w}) from[dim] = context.env().simplify(from[dim]);
  return context.element(args.value(0), from);
}

template <size_t kSpatial>
Result<std::vector<graph::ValueId>> decompose_average_of(graph::Graph& graph, const OpArgs& args) {
  return decompose_average(graph, args, kSpatial);
}

constexpr OpDef kPoolOps[] = {
    {.schema = "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
               "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     .op_class = kExtern,
     .shape = avg_pool_shape<2>,
     .decompose = decompose_average_of<2>},
    {.schema = "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
               "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     .op_class = kExtern,
     .shape = avg_pool_shape<3>,
     .decompose = decompose_average_of<3>},
    {.schema = "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
               "int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     .op_class = kExtern,
     .shape = max_pool_shape<2>,
     .decompose = decompose_greatest,
     .alone = max_alone},
    {.schema = "aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
               "int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     .op_class = kExtern,
     .shape = max_pool_shape<3>},
    {.schema = "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
     .op_class = kExtern,
     .shape = resized_shape<2>},
    {.schema = "aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
     .op_class = kExtern,
     .shape = adaptive_volumes_shape},
    {.schema = "aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
     .op_class = kExtern,
     .shape = adaptive_max_shape<2>},
    {.schema = "aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
               "scales_w=None) -> Tensor",
     .op_class = kExtern,
     .shape = upsample_shape<2>},
    {.schema = "aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> "
               "Tensor",
     .op_class = kExtern,
     .shape = upsample_shape<1>},
    {.schema = "aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
               "scales_h=None, float? scales_w=None) -> Tensor",
     .op_class = kExtern,
     .shape = upsample_shape<2>},
    {.schema = "aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? "
               "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
     .op_class = kExtern,
     .shape = upsample_shape<3>},
    {.schema = "aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, "
               "float? scales_w=None) -> Tensor",
     .op_class = kExtern,
     .shape = upsample_shape<2>},
    {.schema = "aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? "
               "scales_h=None, float? scales_w=None) -> Tensor",
     .op_class = kExtern,
     .shape = upsample_shape<2>},
    {.schema = "aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? "
               "scales_h=None, float? scales_w=None) -> Tensor",
     .op_class = kExtern,
     .shape = upsample_shape<2>},
    {.schema = "aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
               "align_corners) -> Tensor",
     .op_class = kExtern,
     .shape = grid_sampler_shape<2>},
    {.schema = "aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
               "align_corners) -> Tensor",
     .op_class = kExtern,
     .shape = grid_sampler_shape<3>},
    {.schema = "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = pixel_shape<true>,
     .element = pixel_element<true>},
    {.schema = "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
     .op_class = OpClass::Pointwise,
     .shape = pixel_shape<false>,
     .element = pixel_element<false>},
};

}  // namespace

std::span<const OpDef> pool_ops() { return kPoolOps; }

}  // namespace cresset::ops
