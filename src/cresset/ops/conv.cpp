// Convolutions, called through ATen. Sizes stay symbolic through every stride.
#include "base/device_traits.h"
#include "ops/compose.h"
#include "ops/families.h"
#include "ops/library_traits.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::MemoryFormat;
using graph::TensorType;
using graph::ValueId;
using sym::ExprId;
using sym::ExprPool;

// A per-dimension argument; a single number stands for all spatial dimensions.
ExprId spatial(const std::vector<ExprId>& list, size_t i) { return list.size() == 1 ? list[0] : list[i]; }

struct ConvArgs {
  const TensorType &input, &weight;
  const std::vector<ExprId>&stride, &padding, &dilation, &output_padding;
  bool transposed;
  ExprId groups;
};

ConvArgs conv_args(const OpArgs& args) {
  return {args.tensor(0),   args.tensor(1),   args.integers(3), args.integers(4),
          args.integers(5), args.integers(7), args.flag(6),     args.integer(8)};
}

// The extent covered by a dilated kernel, less one.
ExprId reach(ExprPool& pool, ExprId kernel, ExprId dilation) {
  return pool.mul(dilation, pool.sub(kernel, pool.constant(1)));
}

Result<ExprId> conv_extent(ShapeContext& shapes, const ConvArgs& conv, size_t i) {
  ExprPool& pool = shapes.pool();
  const ExprId in = conv.input.sizes[i + 2], stride = spatial(conv.stride, i), one = pool.constant(1);
  const ExprId padding = pool.mul(pool.constant(2), spatial(conv.padding, i));
  const ExprId kernel = reach(pool, conv.weight.sizes[i + 2], spatial(conv.dilation, i));
  if (!shapes.require(pool.ge(conv.weight.sizes[i + 2], one))) return shapes.invalid("the kernel is empty");
  ExprId out;
  if (conv.transposed) {
    out = pool.add(pool.mul(pool.sub(in, one), stride), pool.sub(kernel, padding));
    out = pool.add(out, pool.add(spatial(conv.output_padding, i), one));
  } else {
    const ExprId room = pool.sub(pool.add(in, padding), kernel);
    if (!shapes.require(pool.ge(room, one))) return shapes.invalid("the kernel is larger than the padded input");
    out = pool.add(pool.floor_div(pool.sub(room, one), stride), one);
  }
  out = shapes.env().simplify(out);
  if (!shapes.require(pool.ge(out, pool.constant(0)))) return shapes.invalid("the output is too small");
  return out;
}

Result<ExprId> conv_channels(ShapeContext& shapes, const ConvArgs& conv) {
  ExprPool& pool = shapes.pool();
  const ExprId in = conv.input.sizes[1], first = conv.weight.sizes[0],
               second = pool.mul(conv.weight.sizes[1], conv.groups);
  if (!shapes.require_equal(in, conv.transposed ? first : second))
    return shapes.invalid("the number of channels does not match the weight");
  if (!shapes.require_equal(pool.mod(first, conv.groups), pool.constant(0)))
    return shapes.invalid("the groups do not divide the channels");
  // Eager mode gives special sizes to a result without channels.
  if (!shapes.require(pool.ge(in, pool.constant(1)))) return shapes.invalid("there are no channels");
  if (!shapes.require(pool.ge(first, conv.groups))) return shapes.invalid("there are fewer channels than groups");
  return conv.transposed ? second : first;
}

// Whether ATen uses oneDNN for a convolution of volumes. ATen's own code computes small convolutions, and output
// padding by a stride or more.
bool is_large_volume(ShapeContext& shapes, const ConvArgs& conv) {
  ExprPool& pool = shapes.pool();
  for (size_t i = 0; conv.transposed && i < conv.output_padding.size(); ++i)
    if (shapes.decide(pool.ge(conv.output_padding[i], conv.stride[i % conv.stride.size()]))) return false;
  constexpr int64_t kSmall = 20480;
  const auto exceeds = [&](ExprId e, int64_t bound) { return shapes.decide(pool.gt(e, pool.constant(bound))); };
  const Sizes &input = conv.input.sizes, &kernel = conv.weight.sizes;
  return exceeds(conv.groups, 1) || (exceeds(kernel[3], 3) && exceeds(kernel[4], 3)) || exceeds(input[0], 1) ||
         exceeds(pool.mul(pool.mul(input[0], input[1]), pool.mul(input[2], input[3])), kSmall);
}

// ATen computes signals as images of a single row. It makes the input contiguous, but not the weight.
MemoryFormat signal_format(ShapeContext& shapes, const ConvArgs& conv) {
  if (conv.input.dtype == DType::F64) return MemoryFormat::Contiguous;
  TensorType weight = conv.weight;
  weight.sizes.insert(weight.sizes.begin() + 2, shapes.pool().constant(1));
  weight.strides.insert(weight.strides.begin() + 2, shapes.pool().mul(weight.sizes[3], weight.strides[2]));
  return shapes.suggest_format(weight);
}

// Every CPU backend writes channels-last when either operand is channels-last, except ATen's own backend for volumes,
// which computes doubles.
MemoryFormat conv_format(ShapeContext& shapes, const ConvArgs& conv) {
  if (conv.input.rank() < 4) return MemoryFormat::Contiguous;
  const MemoryFormat input = shapes.suggest_format(conv.input),
                     format = input != MemoryFormat::Contiguous ? input : shapes.suggest_format(conv.weight);
  if (format == MemoryFormat::Contiguous || conv.input.rank() != 5) return format;
  if (conv.input.dtype == DType::F64) return MemoryFormat::Contiguous;
  const bool written =
      conv.input.dtype != DType::F32 || (is_large_volume(shapes, conv) && library_traits().volumes_channels_last());
  return written ? format : MemoryFormat::Contiguous;
}

Result<Types> convolution_shape(ShapeContext& shapes, const OpArgs& args) {
  const ConvArgs conv = conv_args(args);
  const size_t rank = conv.input.rank();
  if (rank != conv.weight.rank() || rank < 3 || rank > 5) return shapes.unsupported("input and weight of these ranks");
  if (conv.input.dtype != conv.weight.dtype) return shapes.invalid("input and weight have different dtypes");
  if (!is_float(conv.input.dtype)) return shapes.unsupported("this dtype");
  for (const auto* list : {&conv.stride, &conv.padding, &conv.dilation})
    if (list->size() != 1 && list->size() != rank - 2) return shapes.invalid("a list does not fit the dimensions");
  CRESSET_TRY(const ExprId channels, conv_channels(shapes, conv));
  if (args.is_tensor(2)) {
    const TensorType& bias = args.tensor(2);
    if (bias.rank() != 1 || !shapes.require_equal(bias.sizes[0], channels))
      return shapes.invalid("the bias does not fit the channels");
    if (bias.dtype != conv.input.dtype) return shapes.invalid("input and bias have different dtypes");
  }
  Sizes sizes{conv.input.sizes[0], channels};
  for (size_t i = 0; i + 2 < rank; ++i) {
    CRESSET_TRY(const ExprId extent, conv_extent(shapes, conv, i));
    sizes.push_back(extent);
  }
  Sizes strides = shapes.strides_for(conv_format(shapes, conv), sizes);
  if (rank == 3 && signal_format(shapes, conv) == MemoryFormat::ChannelsLast) {
    strides = shapes.strides_for(MemoryFormat::ChannelsLast, {sizes[0], sizes[1], shapes.pool().constant(1), sizes[2]});
    strides.erase(strides.begin() + 2);
  }
  return one(with_shape(conv.input, std::move(sizes), std::move(strides)));
}

// Gradients have the memory format of the convolution's result, derived from input and weight.
Result<Types> convolution_backward_shape(ShapeContext& shapes, const OpArgs& args) {
  const ConvArgs conv{args.tensor(1),   args.tensor(2),   args.integers(4), args.integers(5),
                      args.integers(6), args.integers(8), args.flag(7),     args.integer(9)};
  const TensorType &grad = args.tensor(0), &input = conv.input, &weight = conv.weight;
  if (grad.rank() != input.rank() || weight.rank() != input.rank() || input.rank() < 3 || input.rank() > 5)
    return shapes.unsupported("tensors of these ranks");
  if (!is_float(input.dtype) || grad.dtype != input.dtype || weight.dtype != input.dtype)
    return shapes.unsupported("these dtypes");
  if (input.rank() == 3 && signal_format(shapes, conv) != MemoryFormat::Contiguous)
    return shapes.unsupported("a signal's weight with channels last");
  const MemoryFormat format = conv_format(shapes, conv);
  const auto& wanted = std::get<std::vector<bool>>(args[10]);
  Types types;
  if (wanted[0]) types.push_back(with_shape(grad, input.sizes, shapes.strides_for(format, input.sizes)));
  if (wanted[1]) types.push_back(with_shape(grad, weight.sizes, shapes.strides_for(format, weight.sizes)));
  if (wanted[2]) {
    if (args.is_none(3)) return shapes.unsupported("a bias of unknown size");
    types.push_back(with_shape(grad, args.integers(3), shapes.contiguous_strides(args.integers(3))));
  }
  return types;
}

std::vector<graph::Arg> all_of(const OpArgs& args) {
  std::vector<graph::Arg> out;
  for (size_t i = 0; i < args.count(); ++i) out.push_back(args[i]);
  return out;
}

bool adds_bias_later(const TensorType& input) { return traits_of(input.device.kind).bias_after_convolutions; }

// Libraries without biases let ATen add them in a pass of its own. A kernel adds them in what follows.
Result<Values> bias_afterwards(Compose& c, const OpArgs& args) {
  if (!args.is_tensor(2) || !adds_bias_later(args.tensor(0)))
    return Fallback{FallbackReason::UnsupportedArguments, "the library computes the whole convolution", ""};
  std::vector<graph::Arg> plain = all_of(args);
  plain[2] = graph::None{};
  Sizes channels(args.tensor(0).rank() - 1, c.pool().constant(1));
  channels[0] = args.tensor(2).sizes[0];
  const ValueId product = c.call("aten::convolution", std::move(plain));
  return Values{c.add(product, c.view(args.value(2), std::move(channels)))};
}

// The gradients of input and weight are made by libraries, and ATen allocates them itself: planned memory would cost a
// copy of each. The gradient of the bias is a sum.
Result<Values> bias_apart(Compose& c, const OpArgs& args) {
  auto wanted = std::get<std::vector<bool>>(args[10]);
  const TensorType& gradient = args.tensor(0);
  if (!wanted[2] || !adds_bias_later(gradient))
    return Fallback{FallbackReason::UnsupportedArguments, "gradients of convolutions are made by libraries", ""};
  wanted[2] = false;
  Values made;
  if (wanted[0] || wanted[1]) {
    std::vector<graph::Arg> others = all_of(args);
    others[10] = wanted;
    made = c.call_multi("aten::convolution_backward", std::move(others));
  }
  made.push_back(c.sum(args.value(0), all_but_channels(gradient.rank()), false));
  return made;
}

constexpr OpDef kConvOps[] = {
    {.schema = "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
               "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
     .op_class = OpClass::Extern,
     .shape = convolution_shape,
     .decompose = composed<convolution_shape, bias_afterwards>,
     .never_raises = true},
    {.schema = "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
               "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt "
               "groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
     .op_class = OpClass::Composite,
     .shape = convolution_backward_shape,
     .decompose = composed<convolution_backward_shape, bias_apart>},
};

}  // namespace

LibraryTraits& library_traits() {
  static LibraryTraits traits;
  return traits;
}

std::span<const OpDef> conv_ops() { return kConvOps; }

}  // namespace cresset::ops
