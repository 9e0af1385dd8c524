// Capture of operators with data-dependent result sizes or errors.
#include <ATen/core/LegacyTypeDispatch.h>

#include "bridge/capture/capture.h"
#include "bridge/capture/data_dependent_errors.h"
#include "bridge/capture/data_dependent_ops.h"
#include "bridge/capture/dtype_support.h"
#include "bridge/capture/input_proxy.h"
#include "bridge/capture/input_scalars.h"
#include "bridge/capture/masked_assignment.h"
#include "bridge/capture/size_tensors.h"
#include "bridge/capture/sym_node.h"
#include "ops/op_def.h"
#include "ops/result_types.h"

namespace cresset::bridge {

std::vector<graph::ValueId> GraphRecorder::call_data_dependent(graph::OpId op, std::vector<graph::Arg> args) {
  if (graph().type(std::get<graph::ValueId>(args[0])).device.kind == graph::DeviceKind::Meta)
    abort_capture(BreakKind::UnsupportedDevice, c10::str(std::string(graph::op_name(op)), " on meta tensors"));
  std::vector<std::pair<uint32_t, uint32_t>> fresh;
  std::vector<graph::TensorType> types = data_dependent_types(graph(), op, args, fresh);
  any_unbacked_ = true;
  DataDependentCall made{op, std::move(args), graph().order.size(), {}};
  std::vector<graph::ValueId> results;
  for (graph::TensorType& type : types) {
    made.made.push_back(static_cast<uint32_t>(graph().inputs.size()));
    results.push_back(graph().add_input(std::move(type), std::string(graph::op_name(op))));
  }
  for (const auto& [result, dim] : fresh) {
    const sym::ExprId size = graph().type(results[result]).sizes[dim];
    symbols_.push_back({env().pool().var_of(size), {runtime::SymbolSource::Kind::InputSize, made.made[result], dim}});
    origins_[symbols_.back().var] = graph().locations[graph().current_location];
  }
  data_calls_.push_back(std::move(made));
  return results;
}

namespace {

std::optional<sym::Interval> values_of(DType dtype) {
  if (dtype == DType::Bool) return sym::Interval{0, 1};
  if (category(dtype) != DTypeCategory::Integer) return std::nullopt;
  const auto bits = static_cast<int64_t>(8 * byte_size(dtype));
  if (bits == 64) return sym::Interval::all();
  if (dtype == DType::U8) return sym::Interval{0, 255};
  return sym::Interval{-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

bool is_of_inputs(const FloatExpr& made) {
  const std::vector<const FloatExpr*> leaves = made.leaves();
  return std::any_of(leaves.begin(), leaves.end(), [](const FloatExpr* leaf) { return leaf->input >= 0; });
}

// A number computed by an earlier segment has no guard: the segment ends, and each outcome has its own resume entry.
bool may_decide(const Capture& capture, const FloatExpr& made) {
  return !capture.is_later_segment || !is_of_inputs(made);
}

// An input scalar: an integer becomes a symbol, a bool a decision.
std::optional<sym::ExprId> given_element(Capture& capture, graph::ValueId value) {
  const DType dtype = capture.graph().type(value).dtype;
  if (!capture.specializes_input_scalars || !is_integral(dtype)) return std::nullopt;
  const FloatExpr::Ref made = capture.recorder().input_scalar(value);
  if (made == nullptr) return std::nullopt;
  // With symbolic_numbers, an integer of an argument becomes an unbacked symbol, without any decision.
  if (dtype != DType::Bool)
    return capture.symbolic_numbers && is_of_inputs(*made) ? std::nullopt : capture.recorder().derived_integer(made);
  if (!may_decide(capture, *made) ||
      !capture.recorder().decide(made, FloatRelation::Equal, FloatExpr::constant(made->number), OfData::Specialization))
    return std::nullopt;
  return capture.env().pool().constant(made->number != 0 ? 1 : 0);
}

}  // namespace

bool is_given(Capture& capture, const at::Tensor& tensor, bool to_decide) {
  if (capture.closed()) return false;
  TraceTensor* const trace = TraceTensor::from(tensor);
  if (trace == nullptr)  // a real tensor which is not yet used
    return capture.specializes_input_scalars && InputProxy::possible(tensor) && tensor.is_cpu() &&
           tensor.numel() == 1 && !at::isComplexType(tensor.scalar_type()) &&
           !at::isReducedFloatingType(tensor.scalar_type());
  const graph::ValueId value = capture.value_of(*trace);
  const auto constant = [&](const graph::Value& v) -> const at::Tensor& { return capture.recorder().constant(v); };
  const auto of_sizes = size_values(capture.graph(), value, constant);
  if (of_sizes) return of_sizes->size() == 1;
  const FloatExpr::Ref made = capture.specializes_input_scalars ? capture.recorder().input_scalar(value) : nullptr;
  return made != nullptr && (!to_decide || may_decide(capture, *made));
}

std::optional<std::vector<sym::ExprId>> GraphRecorder::symbolic_elements(graph::ValueId value) {
  const auto constant = [this](const graph::Value& v) -> const at::Tensor& { return constants_[v.result]; };
  if (auto known = size_values(graph(), value, constant)) return known;
  if (const auto given = given_element(capture_, value)) return std::vector{*given};
  const bool boolean = graph().type(value).dtype == DType::Bool;
  if (boolean ? !capture_.symbolic_booleans : !capture_.symbolic_numbers) return std::nullopt;
  const graph::TensorType type = graph().type(value);
  const std::optional<sym::Interval> range = values_of(type.dtype);
  if (!range || type.device.kind == graph::DeviceKind::Meta) return std::nullopt;
  constexpr int64_t kMost = 4096;
  const std::optional<int64_t> count = env().specialize(graph::numel(env().pool(), type.sizes), current_reason());
  if (count.value_or(kMost + 1) > kMost) return std::nullopt;
  static const graph::OpId item = graph::op_id("aten::_local_scalar_dense");
  std::vector<sym::ExprId> out;
  for (const DataDependentCall& known : data_calls_) {
    if (known.op != item || std::get<graph::ValueId>(known.args[0]) != value) continue;
    for (const SymbolBinding& s : symbols_)
      if (s.source.kind == runtime::SymbolSource::Kind::Element && s.source.position == known.made[0])
        out.push_back(env().pool().var(s.var));
    return out;
  }
  any_unbacked_ = true;
  const auto position = static_cast<uint32_t>(graph().inputs.size());
  graph().add_input(type, "numbers");
  for (uint32_t i = 0; i < *count; ++i) {
    out.push_back(env().new_unbacked("a number in tensor data", *range));
    symbols_.push_back({env().pool().var_of(out.back()), {runtime::SymbolSource::Kind::Element, position, i}});
    origins_[symbols_.back().var] = graph().locations[graph().current_location];
  }
  data_calls_.push_back({item, {value}, graph().order.size(), {position}});
  return out;
}

std::optional<graph::ValueId> GraphRecorder::nonzero_of(graph::ValueId mask) const {
  static const graph::OpId nonzero = graph::op_id("aten::nonzero");
  for (const DataDependentCall& call : data_calls_)
    if (call.op == nonzero && same_computation(graph(), std::get<graph::ValueId>(call.args[0]), mask))
      return graph().inputs[call.made[0]];
  return std::nullopt;
}

void GraphRecorder::state(sym::ExprId condition, std::string message) {
  facts_.push_back({condition, message});
  env().assume(condition, std::move(message));
}

std::string GraphRecorder::origin(sym::VarId var) const {
  const auto found = origins_.find(var);
  return found != origins_.end() ? found->second : std::string();
}

// A data-dependent number may be negative, but a size may not: eager mode raises then.
void GraphRecorder::assume_sizes(const std::vector<graph::TensorType>& types) {
  for (const graph::TensorType& type : types)
    for (const sym::ExprId size : type.sizes)
      if (!env().pool().is_const(size) && env().range(size).lo < 0 && !env().hint(size))
        env().assume(env().pool().ge(size, env().pool().constant(0)), "a size given by data is negative");
}

// x[mask] is x[nonzero(mask)]: a mask among the indices becomes an index for each of its dimensions.
void GraphRecorder::replace_masks(graph::OpId op, std::vector<graph::Arg>& args) {
  static const graph::OpId index = graph::op_id("aten::index.Tensor"), nonzero = graph::op_id("aten::nonzero"),
                           select = graph::op_id("aten::select.int");
  if (op != index) return;
  auto& indices = std::get<std::vector<graph::OptionalValue>>(args[1]);
  std::vector<graph::OptionalValue> replaced;
  for (const graph::OptionalValue& given : indices) {
    const bool is_mask =
        given && (graph().type(*given).dtype == DType::Bool || graph().type(*given).dtype == DType::U8);
    if (!is_mask) {
      replaced.push_back(given);
      continue;
    }
    check_mask(graph().type(std::get<graph::ValueId>(args[0])), replaced.size(), graph().type(*given));
    // Two reads under the same mask share a size.
    const std::optional<graph::ValueId> known = nonzero_of(*given);
    const graph::ValueId found = known ? *known : call(nonzero, {*given})[0];
    for (size_t d = 0; d < graph().type(*given).rank(); ++d)
      replaced.push_back(
          call(select, {found, env().pool().constant(1), env().pool().constant(static_cast<int64_t>(d))})[0]);
  }
  indices = std::move(replaced);
}

// x.new_zeros(sizes) is zeros(sizes): it needs nothing of x, whose size may depend on data.
void GraphRecorder::forget_example(graph::OpId& op, std::vector<graph::Arg>& args) const {
  struct Row {
    graph::OpId given, made;
    size_t dtype;  // argument of `made`
  };
  static const Row rows[] = {{graph::op_id("aten::new_zeros"), graph::op_id("aten::zeros"), 1},
                             {graph::op_id("aten::new_ones"), graph::op_id("aten::ones"), 1},
                             {graph::op_id("aten::new_full"), graph::op_id("aten::full"), 2}};
  for (const Row& row : rows) {
    if (row.given != op) continue;
    const graph::TensorType& type = graph().type(std::get<graph::ValueId>(args[0]));
    op = row.made;
    args.erase(args.begin());
    if (std::holds_alternative<graph::None>(args[row.dtype])) args[row.dtype] = type.dtype;
    if (std::holds_alternative<graph::None>(args[row.dtype + 2])) args[row.dtype + 2] = type.device;
    return;
  }
}

// A mask must have the sizes of the tensor's dimensions from `first` on; eager mode raises otherwise.
void GraphRecorder::check_mask(const graph::TensorType& self, size_t first, const graph::TensorType& mask) {
  TORCH_CHECK_INDEX(first + mask.rank() <= self.rank(), "too many indices for tensor of dimension ", self.rank());
  ops::ShapeContext context(graph(), "aten::index.Tensor");
  for (size_t d = 0; d < mask.rank(); ++d) {
    TORCH_CHECK_INDEX(context.require_equal(mask.sizes[d], self.sizes[first + d]), "The shape of the mask at index ", d,
                      " does not match the shape of the indexed tensor at index ", first + d);
  }
}

// Ends the capture when a rule needs a number which only data can supply.
Result<ops::Types> GraphRecorder::shape_of(const ops::OpDef& def, ops::ShapeContext& context,
                                           const std::vector<graph::Arg>& args) {
  if (data_calls_.empty()) return ops::result_types(context, def, args);
  try {
    return ops::result_types(context, def, args);
  } catch (const InternalError& e) {
    abort_capture(BreakKind::DataDependentSize, e.what());
  }
}

FloatExpr::Ref GraphRecorder::input_scalar(graph::ValueId value) const {
  return bridge::input_scalar(graph(), value, numbers_, real_inputs_, constants_);
}

// ---- Operators for which eager mode raises

void GraphRecorder::check_dtypes(graph::OpId op, const std::vector<graph::Arg>& args,
                                 std::vector<graph::TensorType>& types) {
  if (!capture_.subgraphs().in_subgraph() && !numbers_fit(graph(), op, args, types))
    abort_capture(BreakKind::UnsupportedDtype,
                  std::string(graph::op_name(op)) + " is given a number that its dtype may not hold");
  const Capture::StepAside aside;
  const at::AutoDispatchBelowADInplaceOrView below;
  DtypeTrial trial = try_dtypes(graph(), constants_, op, args);
  capture_.arguments_did_not_fit = trial.refused;
  if (trial.refused)
    abort_capture(BreakKind::InvalidArguments, std::string(graph::op_name(op)) + " does not take these dtypes");
  if (trial.made.size() != types.size()) std::erase(trial.made, std::nullopt);  // results excluded by an output mask
  for (size_t i = 0; trial.made.size() == types.size() && i < types.size(); ++i)
    types[i].dtype = trial.made[i].value_or(types[i].dtype);
}

static std::optional<ConcreteEval::Element> element_of(const std::vector<DataDependentCall>& calls,
                                                       const std::vector<SymbolBinding>& symbols, sym::VarId var) {
  static const graph::OpId item = graph::op_id("aten::_local_scalar_dense");
  for (const SymbolBinding& s : symbols) {
    if (s.var != var || s.source.kind != runtime::SymbolSource::Kind::Element) continue;
    for (const DataDependentCall& call : calls)
      if (call.op == item && call.made[0] == s.source.position)
        return ConcreteEval::Element{std::get<graph::ValueId>(call.args[0]), s.source.dim};
  }
  return std::nullopt;
}

bool GraphRecorder::check_data(graph::OpId op, const std::vector<graph::Arg>& args) {
  if (!has_known_cause(op) || capture_.subgraphs().in_subgraph()) return false;
  if (!data_dependent_errors_) {
    auto element = [this](sym::VarId var) { return element_of(data_calls_, symbols_, var); };
    data_dependent_errors_ =
        std::make_unique<DataDependentErrors>(graph(), real_inputs_, constants_, std::move(element));
  }
  const Capture::StepAside aside;
  const at::AutoDispatchBelowADInplaceOrView below;
  std::optional<bool> known;  // lazy, because the question walks frames
  const auto caught = [&] {
    if (!known) known = capture_.client().may_be_caught();
    return *known;
  };
  if (data_dependent_errors_->raises(ops::traits(op).raises, op, args, caught))
    abort_capture(BreakKind::DataDependentError, std::string(graph::op_name(op)) + " raises for what its tensors hold");
  return caught();
}

}  // namespace cresset::bridge
