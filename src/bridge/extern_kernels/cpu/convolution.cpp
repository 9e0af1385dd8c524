// Convolutions: ATen's choice of library, and oneDNN with the epilogue as its post-operation.
#include <ATen/Parallel.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "bridge/device/cpu/layout_copy.h"
#include "bridge/executor/frozen_weights.h"
#include "bridge/extern_kernels/autotuned_call.h"
#include "bridge/extern_kernels/cpu/epilogue.h"
#include "bridge/extern_kernels/cpu/split_matmul.h"

namespace cresset::bridge {
namespace {

using runtime::ExternCall;
using runtime::SizeRef;
using runtime::TensorId;

// OneDnnConverted converts the image to the other memory format (NCHW or NHWC). The faster format depends on shapes and
// machine, and the conversion costs little beside most convolutions.
enum class ConvolutionWay : uint8_t { Aten, OneDnn, LinearOneDnn, LinearAten, OneDnnConverted };

using ConvolutionPointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                        at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view,
                                        c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);

const c10::TypedOperatorHandle<ConvolutionPointwise>* convolution_pointwise() {
  static const auto found = []() -> std::optional<c10::TypedOperatorHandle<ConvolutionPointwise>> {
    const auto op = c10::Dispatcher::singleton().findSchema({"mkldnn::_convolution_pointwise", ""});
    if (!op) return std::nullopt;
    try {
      return op->typed<ConvolutionPointwise>();
    } catch (const c10::Error&) {
      return std::nullopt;
    }
  }();
  return found ? &*found : nullptr;
}

struct ConvolutionArgs {
  TensorId input, weight, bias;
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
  const Epilogue* post = nullptr;
};

std::optional<ConvolutionArgs> parse_convolution(const ExternCall& call, const BoundContext& context) {
  const std::string_view op = graph::op_name(call.op);
  const bool epilogue = op == "prim::convolution_epilogue";
  if (op != "aten::convolution" && !epilogue) return std::nullopt;
  const auto sizes = [&](size_t i) { return context.sizes(std::get<std::vector<SizeRef>>(call.args[i])); };
  ConvolutionArgs args;
  args.input = std::get<TensorId>(call.args[0]);
  args.weight = std::get<TensorId>(call.args[1]);
  if (const auto* bias = std::get_if<TensorId>(&call.args[2])) args.bias = *bias;
  args.stride = sizes(3);
  args.padding = sizes(4);
  args.dilation = sizes(5);
  args.transposed = std::get<bool>(call.args[6]);
  args.output_padding = sizes(7);
  args.groups = context.size(std::get<SizeRef>(call.args[8]));
  if (epilogue) {
    args.post = find_epilogue(std::get<std::string>(call.args[9]));
    CRESSET_CHECK(args.post != nullptr, "prim::convolution_epilogue with an epilogue the bridge does not know");
  }
  return args;
}

// n: channels first, c: channels last, s: any other layout.
char channels_letter(const BoundSlot& slot) {
  if (layout_letter(slot) == 'n') return 'n';
  int64_t expected = 1;
  const size_t rank = slot.sizes.size();
  for (size_t i = 0; i < rank; ++i) {
    const size_t d = i == 0 ? 1 : i == rank - 1 ? 0 : rank - i;
    if (slot.sizes[d] > 1 && slot.strides[d] != expected) return 's';
    expected *= slot.sizes[d];
  }
  return 'c';
}

class ConvolutionCall final : public AutotunedCall<ConvolutionCall, ConvolutionWay> {
 public:
  ConvolutionCall(const ExternCall& call, ConvolutionArgs args, const BoundContext& context)
      : args_(std::move(args)), result_(call.results[0]), op_(graph::op_name(call.op)) {
    const BoundSlot& weight = context.slot(args_.weight);
    const double taps = static_cast<double>(weight.numel) / static_cast<double>(std::max<int64_t>(weight.sizes[0], 1));
    const std::vector<ConvolutionWay> candidates = ways(context);
    enter_autotuning(key(context, candidates.size()), candidates,
                     static_cast<double>(context.slot(result_).numel) * taps);
  }

  static std::string_view name_of(ConvolutionWay way) {
    switch (way) {
      case ConvolutionWay::Aten:
        return "aten";
      case ConvolutionWay::OneDnn:
        return "onednn";
      case ConvolutionWay::LinearOneDnn:
        return "linear_onednn";
      case ConvolutionWay::LinearAten:
        return "linear_aten";
      case ConvolutionWay::OneDnnConverted:
        return "onednn_turned";
    }
    return "";
  }

  void run_way(ConvolutionWay way, BoundContext& context) {
    if (context.has_planned_memory(result_) && (way == ConvolutionWay::OneDnnConverted || leaves_converted(context)))
      return run_apart(way, context);
    const at::Tensor& input = context.tensor(args_.input);
    const at::Tensor weight = weight_for(way, context);
    const bool divides = way == ConvolutionWay::LinearOneDnn || way == ConvolutionWay::OneDnn;
    const std::optional<at::Tensor> bias = bias_for(way, context);
    if (divides && parts_.any_missed() && run_in_parts(way, input, weight, bias, context)) return;
    const PlaceResults placed(context.places(result_), context.gaps(), PlaceResults::kLine);
    context.adopt(result_, compute(way, input, weight, bias), op_);
    if (has_no_room(context, placed) && divides) parts_.note(placed);
    check_places(placed, op_);
  }

 private:
  // The plain weight, or for a frozen weight oneDNN's packed layout.
  at::Tensor weight_for(ConvolutionWay way, const BoundContext& context) {
    const at::Tensor& weight = context.tensor(args_.weight);
    FrozenWeights* frozen = context.frozen(args_.weight);
    if (frozen == nullptr || way == ConvolutionWay::Aten || way == ConvolutionWay::LinearAten) return weight;
    if (way == ConvolutionWay::LinearOneDnn)
      return packed_matrix_.get(*frozen, [&] {
        return frozen->packed("linear " + context.frozen_key(args_.weight),
                              [&] { return onednn_linear_weight(matrix_of(weight)); });
      });
    return packed_filters_.get(*frozen, [&] {
      const std::string key =
          fmt::format("convolution p{} s{} d{} g{} {}", fmt::join(args_.padding, "x"), fmt::join(args_.stride, "x"),
                      fmt::join(args_.dilation, "x"), args_.groups, context.frozen_key(args_.weight));
      return frozen->packed(key, [&] { return onednn_filters(weight); });
    });
  }

  at::Tensor onednn_filters(const at::Tensor& weight) const {
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_reorder_convolution_weight", "");
    torch::jit::Stack stack{weight.detach(), args_.padding, args_.stride, args_.dilation, args_.groups, c10::IValue()};
    op.callBoxed(stack);
    return stack.at(0).toTensor();
  }

  std::optional<at::Tensor> bias_for(ConvolutionWay way, const BoundContext& context) const {
    if (!args_.bias.valid()) return std::nullopt;
    const at::Tensor& bias = context.tensor(args_.bias);
    const bool any_strides =
        way == ConvolutionWay::Aten || way == ConvolutionWay::LinearAten;  // oneDNN's ways ignore strides
    return any_strides ? bias : bias.contiguous();
  }

  // For a way whose layout differs from the result's: computes into separate memory and copies.
  void run_apart(ConvolutionWay way, BoundContext& context) {
    const at::Tensor& out = context.planned(result_);
    const PlaceResults placed({}, context.gaps(), PlaceResults::kLine);
    {
      const at::Tensor made =
          compute(way, context.tensor(args_.input), weight_for(way, context), bias_for(way, context));
      if (!convert_layout(made, out)) out.copy_(made);
    }
    has_no_room(context, placed);
    check_places(placed, op_);
  }

  // Whether a library, which keeps the image's format, would produce the wrong format for this result.
  bool leaves_converted(const BoundContext& context) const {
    const char input = channels_letter(context.slot(args_.input)), result = channels_letter(context.slot(result_));
    return (input == 'c' && result == 'n') || (input == 'n' && result == 'c');
  }

  at::Tensor compute(ConvolutionWay way, const at::Tensor& input, const at::Tensor& weight,
                     const std::optional<at::Tensor>& bias) const {
    switch (way) {
      case ConvolutionWay::Aten:
        return run_aten(input, weight, bias);
      case ConvolutionWay::OneDnn:
        return run_onednn(input, weight, bias);
      case ConvolutionWay::LinearOneDnn:
      case ConvolutionWay::LinearAten:
        return run_linear(way, input, weight, bias);
      case ConvolutionWay::OneDnnConverted: {
        const at::MemoryFormat last = channels_last_of(input);
        return run_onednn(turned(input, input.is_contiguous() ? last : at::MemoryFormat::Contiguous), weight, bias);
      }
    }
    return {};
  }

  static at::Tensor pixels_of(const at::Tensor& image) { return image.permute({0, 2, 3, 1}).view({-1, image.size(1)}); }
  static at::Tensor matrix_of(const at::Tensor& weight) {  // may also be a packed weight
    return weight.is_mkldnn() ? weight : weight.view({weight.size(0), weight.size(1)});
  }

  // oneDNN's ways, over pixels or over images.
  bool run_in_parts(ConvolutionWay way, const at::Tensor& input, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias, BoundContext& context) const {
    const uint32_t root = context.slot(args_.input).root;
    if (context.slot(result_).home == runtime::Home::View || !context.has_planned_memory(result_) ||
        context.slot(args_.weight).root == root || (bias && context.slot(args_.bias).root == root))
      return false;
    const at::Tensor& out = context.planned(result_);
    const auto keep = [](const at::Tensor& made, const at::Tensor& part) {
      if (made.const_data_ptr() != part.const_data_ptr()) part.copy_(made);
    };
    if (way == ConvolutionWay::LinearOneDnn) {
      const at::Tensor matrix = matrix_of(weight);
      return parts_.run(context, args_.input, pixels_of(input), pixels_of(out), SplitMatmul::Result::Allocated,
                        SplitMatmul::kMatrixRows, op_, [&](const at::Tensor& rows, const at::Tensor& part) {
                          keep(onednn_linear(rows, matrix, bias, args_.post), part);
                        });
    }
    const auto dense = [](char letter) { return letter == 'n' || letter == 'c'; };
    if (!dense(channels_letter(context.slot(args_.input))) || !dense(channels_letter(context.slot(result_))))
      return false;
    return parts_.run(
        context, args_.input, input, out, SplitMatmul::Result::Allocated, /*unit=*/1, op_,
        [&](const at::Tensor& images, const at::Tensor& part) { keep(run_onednn(images, weight, bias), part); });
  }

  // A product of pixels and channels: with channels last, neither image nor weight is copied.
  at::Tensor run_linear(ConvolutionWay way, const at::Tensor& input, const at::Tensor& weight,
                        const std::optional<at::Tensor>& bias) const {
    const at::Tensor pixels = pixels_of(input), matrix = matrix_of(weight);
    at::Tensor out;
    if (way == ConvolutionWay::LinearOneDnn) {
      out = onednn_linear(pixels, matrix, bias, args_.post);
    } else {
      out = bias ? at::cpu::addmm(*bias, pixels, matrix.t()) : at::cpu::mm(pixels, matrix.t());
      if (args_.post != nullptr) args_.post->apply(out);
    }
    return out.view({input.size(0), input.size(2), input.size(3), weight.size(0)}).permute({0, 3, 1, 2});
  }

  at::Tensor run_aten(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias) const {
    at::Tensor out =
        at::_ops::convolution::call(input, weight, bias, c10::fromIntArrayRefSlow(args_.stride),
                                    c10::fromIntArrayRefSlow(args_.padding), c10::fromIntArrayRefSlow(args_.dilation),
                                    args_.transposed, c10::fromIntArrayRefSlow(args_.output_padding), args_.groups);
    if (args_.post != nullptr) args_.post->apply(out);
    return out;
  }

  at::Tensor run_onednn(const at::Tensor& input, const at::Tensor& weight,
                        const std::optional<at::Tensor>& bias) const {
    const bool post = args_.post != nullptr;
    return convolution_pointwise()->call(input, weight, bias, args_.padding, args_.stride, args_.dilation, args_.groups,
                                         post ? args_.post->attribute : "none", c10::List<std::optional<at::Scalar>>(),
                                         post ? args_.post->algorithm : std::string_view());
  }

  std::vector<ConvolutionWay> ways(const BoundContext& context) const {
    std::vector<ConvolutionWay> ways{ConvolutionWay::Aten};
    const BoundSlot& input = context.slot(args_.input);
    const bool known_dtype = input.dtype == at::kFloat || input.dtype == at::kBFloat16;
    const size_t rank = input.sizes.size();
    const bool batched = rank >= 4 && rank <= 5 && rank == context.slot(args_.weight).sizes.size();
    if (!args_.transposed && known_dtype && batched && context.slot(result_).numel > 0 && input.numel > 0 &&
        convolution_pointwise() != nullptr)
      ways.push_back(ConvolutionWay::OneDnn);
    if (ways.size() > 1 && is_worth_converting(context)) ways.push_back(ConvolutionWay::OneDnnConverted);
    if (ways.size() > 1 && is_linear(context)) {
      if (has_onednn_linear()) ways.push_back(ConvolutionWay::LinearOneDnn);
      ways.push_back(ConvolutionWay::LinearAten);
    }
    return ways;
  }

  // Whether the conversion may pay off. It needs several channels and pixels, else it moves nothing. For channels last
  // it is tried only if images are small beside the weight: then it costs almost no time and memory.
  bool is_worth_converting(const BoundContext& context) const {
    const BoundSlot &input = context.slot(args_.input), &result = context.slot(result_);
    const char order = channels_letter(input);
    const int64_t channels = input.sizes[1];
    if (channels < 2 || input.numel == input.sizes[0] * channels || !context.has_planned_memory(result_)) return false;
    const bool small = input.numel + result.numel <= context.slot(args_.weight).numel;
    return order == 'n' || (order == 'c' && small);
  }

  // Whether each result depends on a single pixel of a channels-last image.
  bool is_linear(const BoundContext& context) const {
    const BoundSlot& weight = context.slot(args_.weight);
    const auto all = [](const std::vector<int64_t>& list, int64_t value) {
      return std::all_of(list.begin(), list.end(), [&](int64_t n) { return n == value; });
    };
    return weight.sizes.size() == 4 && weight.sizes[2] == 1 && weight.sizes[3] == 1 && layout_letter(weight) == 'n' &&
           args_.groups == 1 && all(args_.stride, 1) && all(args_.padding, 0) &&
           channels_letter(context.slot(args_.input)) == 'c' && channels_letter(context.slot(result_)) == 'c';
  }

  std::string key(const BoundContext& context, size_t candidates) const {
    const BoundSlot& input = context.slot(args_.input);
    const BoundSlot& weight = context.slot(args_.weight);
    std::string text = fmt::format("convolution {}", dtype_letter(input.dtype));
    for (const int64_t n : input.sizes) text += fmt::format(" {}", size_class(n));
    return text +
           fmt::format(" w{} s{} p{} d{} g{} {}{}{} {} t{} of {}", fmt::join(weight.sizes, "x"),
                       fmt::join(args_.stride, "x"), fmt::join(args_.padding, "x"), fmt::join(args_.dilation, "x"),
                       args_.groups, channels_letter(input), channels_letter(weight),
                       channels_letter(context.slot(result_)), args_.post == nullptr ? "-" : args_.post->name,
                       at::get_num_threads(), candidates) +
           (context.frozen(args_.weight) != nullptr ? " frozen" : "");
  }

  const ConvolutionArgs args_;
  const TensorId result_;
  const std::string_view op_;
  SplitMatmul parts_;
  PackedWeight packed_filters_, packed_matrix_;
};

}  // namespace

std::unique_ptr<ExternKernel> bind_convolution_call(const ExternCall& call, const BoundContext& context) {
  std::optional<ConvolutionArgs> args = parse_convolution(call, context);
  if (!args || call.results.size() != 1 || !call.results[0].valid()) return nullptr;
  return std::make_unique<ConvolutionCall>(call, std::move(*args), context);
}

}  // namespace cresset::bridge
