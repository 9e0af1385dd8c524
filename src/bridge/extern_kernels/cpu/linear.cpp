// Matrix multiplications: ATen's own kernels without the dispatcher, and oneDNN's.
#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <fmt/format.h>

#include "base/check.h"
#include "bridge/device/cpu/small_matmul.h"
#include "bridge/executor/frozen_weights.h"
#include "bridge/extern_kernels/autotuned_call.h"
#include "bridge/extern_kernels/cpu/epilogue.h"
#include "bridge/extern_kernels/cpu/onednn_matmul.h"
#include "bridge/extern_kernels/cpu/split_matmul.h"

namespace cresset::bridge {
namespace {

using runtime::ExternArg;
using runtime::ExternCall;
using runtime::SizeRef;
using runtime::TensorId;

enum class Family : uint8_t { Mm, Addmm, Bmm, Baddbmm };
enum class LinearWay : uint8_t { Aten, Small, OneDnnMatmul, OneDnnLinear };

constexpr double kWorthRacing = 64.0 * 64.0 * 64.0;  // multiply-adds; below, ATen's small kernels always win
constexpr size_t kMostCopied = 1 << 20;              // bytes at a time, for a batch of matrices

using LinearPointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                   std::string_view, c10::List<std::optional<at::Scalar>>,
                                   std::optional<std::string_view>);

const c10::TypedOperatorHandle<LinearPointwise>* linear_pointwise() {
  static const auto found = []() -> std::optional<c10::TypedOperatorHandle<LinearPointwise>> {
    const auto op = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!op) return std::nullopt;
    try {
      return op->typed<LinearPointwise>();
    } catch (const c10::Error&) {
      return std::nullopt;
    }
  }();
  return found ? &*found : nullptr;
}

struct LinearArgs {
  Family family;
  TensorId bias, a, b;  // bias + a @ b; an invalid bias is absent
  at::Scalar beta = 1, alpha = 1;
  const Epilogue* post = nullptr;
};

at::Scalar to_scalar(const ExternArg& arg, const BoundContext& context) {
  if (const auto* ref = std::get_if<SizeRef>(&arg)) return context.size(*ref);
  if (const auto* flag = std::get_if<bool>(&arg)) return *flag;
  return std::get<double>(arg);
}

std::optional<LinearArgs> parse_linear(const ExternCall& call, const BoundContext& context) {
  const std::string_view op = graph::op_name(call.op);
  const auto tensor = [&](size_t i) { return std::get<TensorId>(call.args[i]); };
  if (op == "aten::mm") return LinearArgs{Family::Mm, {}, tensor(0), tensor(1)};
  if (op == "aten::bmm") return LinearArgs{Family::Bmm, {}, tensor(0), tensor(1)};
  const bool addmm = op == "aten::addmm";
  if (addmm || op == "aten::baddbmm") {
    LinearArgs args{addmm ? Family::Addmm : Family::Baddbmm, tensor(0), tensor(1), tensor(2)};
    if (call.args.size() > 3) args.beta = to_scalar(call.args[3], context);
    if (call.args.size() > 4) args.alpha = to_scalar(call.args[4], context);
    return args;
  }
  if (op != "prim::linear_epilogue") return std::nullopt;
  LinearArgs args{Family::Mm, {}, tensor(1), tensor(2)};
  if (const auto* bias = std::get_if<TensorId>(&call.args[0])) {
    args.bias = *bias;
    args.family = Family::Addmm;
  }
  args.post = find_epilogue(std::get<std::string>(call.args[3]));
  CRESSET_CHECK(args.post != nullptr, "prim::linear_epilogue with an epilogue the bridge does not know");
  return args;
}

class LinearCall final : public AutotunedCall<LinearCall, LinearWay> {
 public:
  LinearCall(const ExternCall& call, LinearArgs args, const BoundContext& context)
      : args_(std::move(args)), result_(call.results[0]), op_(graph::op_name(call.op)) {
    const double work = multiply_adds(context);
    enter_autotuning(key(context), ways(context, work), work);
  }

  static std::string_view name_of(LinearWay way) {
    switch (way) {
      case LinearWay::Aten:
        return "aten";
      case LinearWay::Small:
        return "small";
      case LinearWay::OneDnnMatmul:
        return "onednn_matmul";
      case LinearWay::OneDnnLinear:
        return "onednn_linear";
    }
    return "";
  }

  void run_way(LinearWay way, BoundContext& context) {
    if (way == LinearWay::OneDnnLinear) return run_onednn_linear(context);
    at::Tensor own;
    const bool planned = context.has_planned_memory(result_);
    if (!planned) {
      const BoundSlot& slot = context.slot(result_);
      own = at::Tensor(at::detail::empty_strided_cpu(slot.sizes, slot.strides, slot.dtype));
    }
    at::Tensor out = planned ? context.planned(result_) : own;
    if (way != LinearWay::OneDnnMatmul || !(in_parts(context, out, way) || in_batches(context, out))) {
      const PlaceResults placed({}, context.gaps(), PlaceResults::kLine);
      compute(way, context, context.tensor(args_.a), out);
      if (way != LinearWay::OneDnnMatmul)
        note_extra(placed);
      else if (copies_much(placed, out))
        note_copies(placed);
      else if (has_no_room(context, placed))
        parts_.note(placed);
      check_places(placed, op_);
    }
    if (!planned) context.adopt(result_, std::move(own), op_);
  }

 private:
  void compute(LinearWay way, const BoundContext& context, const at::Tensor& a, const at::Tensor& out) const {
    switch (way) {
      case LinearWay::Small:
        run_small(context, out);
        break;
      case LinearWay::OneDnnMatmul:
        run_onednn_matmul(context, a, out);
        break;
      case LinearWay::OneDnnLinear:
        run_onednn_linear(context, a, out);
        return;
      case LinearWay::Aten:
        run_aten(context, out);
        break;
    }
    if (args_.post == nullptr) return;
    at::Tensor made = out;
    args_.post->apply(made);
  }

  // Runs in row parts if the library needs memory beyond the plan. Returns whether it ran.
  bool in_parts(const BoundContext& context, const at::Tensor& out, LinearWay way) const {
    return parts_.any_missed() && a_is_apart(context) && context.has_planned_memory(result_) &&
           context.slot(result_).home != runtime::Home::View && context.slot(args_.a).sizes.size() == 2 &&
           layout_letter(context.slot(args_.a)) == 'n' && layout_letter(context.slot(result_)) == 'n' &&
           parts_.run(context, args_.a, context.tensor(args_.a), out,
                      way == LinearWay::OneDnnLinear ? SplitMatmul::Result::Allocated : SplitMatmul::Result::Given,
                      SplitMatmul::kMatrixRows, op_,
                      [&](const at::Tensor& rows, const at::Tensor& made) { compute(way, context, rows, made); });
  }

  void run_aten(const BoundContext& context, const at::Tensor& given) const {
    at::Tensor out = given;
    const at::Tensor& a = context.tensor(args_.a);
    const at::Tensor& b = context.tensor(args_.b);
    switch (args_.family) {
      case Family::Mm:
        at::cpu::mm_out(out, a, b);
        return;
      case Family::Bmm:
        at::cpu::bmm_out(out, a, b);
        return;
      case Family::Addmm:
        at::cpu::addmm_out(out, context.tensor(args_.bias), a, b, args_.beta, args_.alpha);
        return;
      case Family::Baddbmm:
        at::cpu::baddbmm_out(out, context.tensor(args_.bias), a, b, args_.beta, args_.alpha);
        return;
    }
  }

  void run_small(const BoundContext& context, const at::Tensor& out) const {
    const BoundSlot& a = context.slot(args_.a);
    const BoundSlot& b = context.slot(args_.b);
    const auto data = [&](TensorId id) { return context.tensor(id).const_data_ptr<float>(); };
    small_product(a.sizes[0], b.sizes[1], a.sizes[1], {data(args_.a), a.strides[0], 1},
                  {data(args_.b), b.strides[0], b.strides[1]}, args_.bias.valid() ? data(args_.bias) : nullptr,
                  out.mutable_data_ptr<float>(), context.slot(result_).strides[0]);
  }

  void run_onednn_matmul(const BoundContext& context, const at::Tensor& a, const at::Tensor& out) const {
    // Never uses beta = 1: oneDNN's accumulation into the result corrupts memory for a float32 product of one row (seen
    // with torch 2.13).
    at::native::mkldnn_matmul(a, context.tensor(args_.b), out, 0.F, 1.F);
    if (args_.bias.valid()) out.add_(context.tensor(args_.bias));
  }

  void run_onednn_linear(BoundContext& context) {
    const at::Tensor& a = context.tensor(args_.a);
    if (context.has_planned_memory(result_) && in_parts(context, context.planned(result_), LinearWay::OneDnnLinear))
      return;
    const PlaceResults placed(context.places(result_), context.gaps(), PlaceResults::kLine);
    context.adopt(result_, made_by_onednn(context, a), op_);
    if (has_no_room(context, placed)) parts_.note(placed);
    check_places(placed, op_);
  }
  void run_onednn_linear(const BoundContext& context, const at::Tensor& a, const at::Tensor& out) const {
    const at::Tensor made = made_by_onednn(context, a);
    if (made.const_data_ptr() != out.const_data_ptr()) out.copy_(made);
  }
  at::Tensor made_by_onednn(const BoundContext& context, const at::Tensor& a) const {
    std::optional<at::Tensor> bias;
    if (args_.bias.valid()) bias = context.tensor(args_.bias).contiguous();  // oneDNN ignores the strides of the bias
    return onednn_linear(a, weight_of_linear(context), bias, args_.post);
  }
  at::Tensor weight_of_linear(const BoundContext& context) const {
    at::Tensor w = context.tensor(args_.b).t();
    FrozenWeights* frozen = context.frozen(args_.b);
    if (frozen == nullptr) return w;
    return packed_.get(*frozen, [&] {
      return frozen->packed("linear " + context.frozen_key(args_.b), [&] { return onednn_linear_weight(w); });
    });
  }

  // Whether this library copied more matrices of a batch than should be allocated at once, as for overlapping views.
  bool copies_much(const PlaceResults& placed, const at::Tensor& out) const {
    return args_.family == Family::Bmm && out.size(0) > 1 && placed.missed() > kMostCopied;
  }
  void note_copies(const PlaceResults& placed) {
    note_extra(placed);
    if (is_decided()) copied_ = placed.missed();
  }
  // Computes a few matrices of the batch at a time, so that their copies are small. Returns whether it ran.
  bool in_batches(BoundContext& context, const at::Tensor& out) {
    if (copied_ == 0) return false;
    const at::Tensor &a = context.tensor(args_.a), &b = context.tensor(args_.b);
    const int64_t batch = out.size(0), parts = static_cast<int64_t>((copied_ + kMostCopied - 1) / kMostCopied),
                  most = std::max<int64_t>(1, batch / parts);
    for (int64_t begin = 0; begin < batch; begin += most) {
      const int64_t count = std::min(most, batch - begin);
      const auto part = [&](const at::Tensor& whole) { return whole.narrow(0, begin, count); };
      const PlaceResults placed({}, context.gaps(), PlaceResults::kLine);
      at::native::mkldnn_matmul(part(a), part(b), part(out), 0.F, 1.F);
      context.want_gap(placed);
      check_places(placed, op_);
    }
    return true;
  }

  bool a_is_apart(const BoundContext& context) const {
    const uint32_t a = context.slot(args_.a).root;
    return context.slot(args_.b).root != a && (!args_.bias.valid() || context.slot(args_.bias).root != a);
  }

  double multiply_adds(const BoundContext& context) const {
    const BoundSlot& a = context.slot(args_.a);
    return static_cast<double>(context.slot(result_).numel) * static_cast<double>(a.sizes.back());
  }

  bool row_bias(const BoundContext& context) const {
    return !args_.bias.valid() || (context.slot(args_.bias).sizes.size() == 1 &&
                                   context.slot(args_.bias).sizes[0] == context.slot(result_).sizes.back());
  }

  bool fits_small_product(const BoundContext& context, double work) const {
    const BoundSlot& a = context.slot(args_.a);
    const BoundSlot& b = context.slot(args_.b);
    const BoundSlot& result = context.slot(result_);
    const auto dense = [](const BoundSlot& slot, size_t d) { return slot.strides[d] == 1 || slot.sizes[d] <= 1; };
    if (!row_bias(context)) return false;
    const bool bias_dense = !args_.bias.valid() || dense(context.slot(args_.bias), 0);
    return a.sizes.size() == 2 && work <= kSmallProduct && a.dtype == at::kFloat && b.dtype == at::kFloat &&
           args_.beta.equal(1) && args_.alpha.equal(1) && bias_dense && dense(a, 1) && dense(result, 1) &&
           (b.strides[1] == 1 || b.strides[0] == 1);
  }

  std::vector<LinearWay> ways(const BoundContext& context, double work) const {
    std::vector<LinearWay> ways{LinearWay::Aten};
    const BoundSlot& a = context.slot(args_.a);
    const BoundSlot& b = context.slot(args_.b);
    const BoundSlot& result = context.slot(result_);
    const bool known_dtype = a.dtype == at::kFloat || a.dtype == at::kBFloat16;
    const bool plain = args_.beta.equal(1) && args_.alpha.equal(1);
    if (fits_small_product(context, work)) return {LinearWay::Small};
    if (work < kWorthRacing || !known_dtype || !plain || b.dtype != a.dtype) return ways;
    const bool dense = layout_letter(result) == 'n';
    // Adding the bias afterwards would round a bfloat16 result twice.
    const bool rounds_once = !args_.bias.valid() || a.dtype == at::kFloat;
    if (at::native::mkldnn_matmul != nullptr && dense && rounds_once) ways.push_back(LinearWay::OneDnnMatmul);
    if (a.sizes.size() == 2 && dense && row_bias(context) && layout_letter(a) == 'n' && has_onednn_linear())
      ways.push_back(LinearWay::OneDnnLinear);
    return ways;
  }

  std::string key(const BoundContext& context) const {
    const BoundSlot& a = context.slot(args_.a);
    const BoundSlot& b = context.slot(args_.b);
    const size_t rank = a.sizes.size();
    return fmt::format("{} {} b{} m{} k{} n{} {}{}{} {} t{}", args_.bias.valid() ? "addmm" : "mm",
                       dtype_letter(a.dtype), rank == 3 ? size_class(a.sizes[0]) : 0, size_class(a.sizes[rank - 2]),
                       size_class(a.sizes[rank - 1]), size_class(b.sizes[rank - 1]), layout_letter(a), layout_letter(b),
                       layout_letter(context.slot(result_)), args_.post == nullptr ? "-" : args_.post->name,
                       at::get_num_threads()) +
           (context.frozen(args_.b) != nullptr ? " frozen" : "");
  }

  const LinearArgs args_;
  const TensorId result_;
  const std::string_view op_;
  SplitMatmul parts_;
  size_t copied_ = 0;  // bytes of batch operands which the library copied
  mutable PackedWeight packed_;
};

}  // namespace

bool has_onednn_linear() { return linear_pointwise() != nullptr; }

at::Tensor onednn_linear_weight(const at::Tensor& w) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_reorder_linear_weight", "");
  torch::jit::Stack stack{w.detach().contiguous(), c10::IValue()};
  op.callBoxed(stack);
  return stack.at(0).toTensor();
}

at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias,
                         const Epilogue* post) {
  return linear_pointwise()->call(x, w, bias, post == nullptr ? "none" : post->attribute,
                                  c10::List<std::optional<at::Scalar>>(),
                                  post == nullptr ? std::string_view() : post->algorithm);
}

char layout_letter(const BoundSlot& slot) {
  const size_t rank = slot.sizes.size();
  const auto dense = [&](size_t row, size_t column) {
    int64_t expected = 1;
    const auto matches = [&](size_t d) {
      const bool ok = slot.sizes[d] <= 1 || slot.strides[d] == expected;
      expected *= slot.sizes[d];
      return ok;
    };
    if (!matches(column) || !matches(row)) return false;
    for (size_t d = rank - 2; d-- > 0;)
      if (!matches(d)) return false;
    return true;
  };
  if (rank < 2) return 'n';
  if (dense(rank - 2, rank - 1)) return 'n';
  return dense(rank - 1, rank - 2) ? 't' : 's';
}

char dtype_letter(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return 'f';
    case at::kBFloat16:
      return 'b';
    case at::kHalf:
      return 'h';
    case at::kDouble:
      return 'd';
    default:
      return 'i';
  }
}

std::unique_ptr<ExternKernel> bind_linear_call(const ExternCall& call, const BoundContext& context) {
  std::optional<LinearArgs> args = parse_linear(call, context);
  // Without a result there is no work: capture has checked the shapes.
  if (!args || call.results.size() != 1 || !call.results[0].valid()) return nullptr;
  return std::make_unique<LinearCall>(call, std::move(*args), context);
}

}  // namespace cresset::bridge
