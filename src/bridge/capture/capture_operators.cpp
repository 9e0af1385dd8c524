// The types of an operator's results by a shape rule or by the generic rule, after checks of its devices, dtypes and
// data.
#include <ATen/SequenceNumber.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>

#include "bridge/aten/cuda_setup.h"
#include "bridge/aten/dtypes.h"
#include "bridge/aten/op_schema.h"
#include "bridge/capture/autograd_state.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/data_dependent_errors.h"
#include "bridge/capture/data_dependent_ops.h"
#include "bridge/capture/graph_recorder.h"
#include "bridge/capture/masked_assignment.h"
#include "bridge/capture/meta_shape_rule.h"
#include "bridge/capture/sym_node.h"
#include "graph/text.h"
#include "ops/effects.h"
#include "ops/op_def.h"
#include "ops/special_dtypes.h"
#include "sym/explain.h"

namespace cresset::bridge {

GraphRecorder::GraphRecorder(Capture& capture)
    : capture_(capture), graph_(std::make_unique<graph::Graph>(std::make_shared<sym::ShapeEnv>())) {}

GraphRecorder::~GraphRecorder() = default;  // here DataDependentErrors is complete

DType dtype_or_abort(const at::Tensor& real) {
  const std::optional<DType> dtype = from_torch(real.scalar_type());
  if (!dtype)
    abort_capture(BreakKind::UnsupportedDtype,
                  c10::str("tensors of dtype ", real.scalar_type(), " have no representation in a graph"));
  return *dtype;
}

void GraphRecorder::finish(Captured& out) {
  out.costs.memo_misses = shapes_.misses();
  out.graph = std::move(graph_);
  out.data_reads = std::move(data_reads_);
  out.float_guards = std::move(float_guards_);
  out.computed = std::move(computed_);
  out.data_calls = std::move(data_calls_);
  out.facts = std::move(facts_);
  out.constants = std::move(constants_);
  out.symbols = std::move(symbols_);
}

namespace {

// Shape rules promote only usual dtypes. The rules of views, copies and extents ignore dtypes.
bool applies(const ops::OpDef& def, const graph::Graph& graph, const std::vector<graph::Arg>& args) {
  if (!ops::takes_special(graph, args)) return true;
  return def.op_class == ops::OpClass::View || def.traits.elements == ops::Elements::Kept || def.traits.special_dtypes;
}

// A CPU number fits everywhere. Eager mode raises where tensors of several devices do not fit.
void check_devices(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args) {
  std::optional<graph::Device> found;
  for (const graph::Arg& arg : args) {
    const auto* value = std::get_if<graph::ValueId>(&arg);
    if (value == nullptr) continue;
    const graph::TensorType& type = graph.type(*value);
    if (type.rank() == 0 && type.device.kind == graph::DeviceKind::Cpu) continue;
    if (!found) found = type.device;
    if (*found == type.device) continue;
    if (ops::traits(op).mixes_devices) return;
    abort_capture(BreakKind::UnsupportedDevice,
                  c10::str(std::string(graph::op_name(op)), " on tensors of several devices"));
  }
}

}  // namespace

// Programs run on the CPU, and on one GPU where there is one. A tensor without memory has no place in a program at all.
void GraphRecorder::check_programs_device(graph::OpId op, const graph::Device& device) {
  if (device.kind == graph::DeviceKind::Cpu) return;
  const auto abort = [&](const std::string& why) {
    abort_capture(BreakKind::UnsupportedDevice, c10::str(graph::op_name(op), " on device ",
                                                         graph::text::word(graph::text::kDevices, device.kind), why));
  };
  if (device.kind == graph::DeviceKind::Meta) abort("");
  if (const Result<bool>& cuda = set_up_cuda(); !cuda.ok()) abort(": " + describe(cuda.fallback()));
  if (gpu_ && *gpu_ != device) abort(c10::str(":", static_cast<int>(device.index), " beside another GPU"));
  gpu_ = device;
}

void GraphRecorder::check_programs_devices(graph::OpId op, const std::vector<graph::Arg>& args,
                                           const std::vector<graph::TensorType>& results) {
  graph::Graph::for_each_value(args,
                               [&](const graph::ValueId& v) { check_programs_device(op, graph().type(v).device); });
  for (const graph::TensorType& type : results) check_programs_device(op, type.device);
}

// An output mask is a list of booleans.
static bool may_mask_results(const std::vector<graph::Arg>& args) {
  return std::any_of(args.begin(), args.end(),
                     [](const graph::Arg& arg) { return std::holds_alternative<std::vector<bool>>(arg); });
}

GraphRecorder::Results GraphRecorder::record(graph::OpId op, std::vector<graph::Arg> args) {
  ++capture_.counters.operators;
  if (makes_data_dependent_sizes(op)) {
    check_devices(graph(), op, args);
    check_programs_devices(op, args, {});
    std::vector<graph::TensorType> unknown;
    check_dtypes(op, args, unknown);
    check_data(op, args);
    return {call_data_dependent(op, std::move(args))};
  }
  if (std::optional<graph::ValueId> chosen = masked_assignment(capture_, op, args)) return {{*chosen}};
  replace_masks(op, args);
  forget_example(op, args);
  const ops::ShapeMemo::Entry* known = shapes_.find(graph(), op, args);
  capture_.counters.shape_memo_hits += known != nullptr;
  ops::ShapeMemo::Entry found;
  if (known == nullptr) {
    check_devices(graph(), op, args);
    found = result_types(op, args);
    check_programs_devices(op, args, found.types);
    check_dtypes(op, args, found.types);
    if (!ops::takes_special(graph(), args)) shapes_.add(found);  // a complex constant may count as a number
  }
  const bool refused = known != nullptr ? known->refused : found.refused;
  uint64_t absent = known != nullptr ? known->absent : found.absent;
  const bool caught = check_data(op, args);
  std::vector<graph::ValueId> results =
      append(op, std::move(args), known != nullptr ? known->types : std::move(found.types));
  graph().node(graph().order.back()).caught = caught;
  if (refused) graph().node(graph().order.back()).through_aten = true;
  if (absent != 0 || results.size() < 3 || results.size() > 4 ||
      !may_mask_results(graph().node(graph().order.back()).args))
    return {std::move(results), absent};
  // cresset's rules make all results of an operator with an output mask.
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  if (handle) absent = unwanted_results(handle->schema(), graph().node(graph().order.back()).args);
  if (absent == 0) return {std::move(results)};
  std::vector<graph::ValueId> wanted;
  for (size_t i = 0; i < results.size(); ++i)
    if ((absent >> i & 1) == 0) wanted.push_back(results[i]);
  return {std::move(wanted), absent};
}

namespace {

// The results excluded by an output mask, for a rule which made types only of the others.
uint64_t left_out(const ops::OpDef& def, graph::OpId op, const std::vector<graph::Arg>& args, size_t made) {
  if (def.schema.find("output_mask") == std::string_view::npos) return 0;
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  if (!handle || handle->schema().returns().size() == made) return 0;
  return unwanted_results(handle->schema(), args);
}

}  // namespace

// Uses the operator's shape rule, else the generic rule.
ops::ShapeMemo::Entry GraphRecorder::result_types(graph::OpId op, const std::vector<graph::Arg>& args) {
  std::string invalid;
  bool refused = false;
  if (const ops::OpDef* def = ops::find(op); def != nullptr && def->shape != nullptr && applies(*def, graph(), args)) {
    ++capture_.counters.shape_rule_entries;
    ops::ShapeContext context(graph(), graph::op_name(op));
    context.default_dtype = capture_.default_dtype;
    Result<ops::Types> types = shape_of(*def, context, args);
    const uint64_t absent = types.ok() ? left_out(*def, op, args, types->size()) : 0;
    if (types.ok()) return {std::move(*types), false, absent};
    if (types.fallback().reason == FallbackReason::DataDependent)
      abort_capture(BreakKind::DataDependentSize, describe(types.fallback()));
    if (types.fallback().reason == FallbackReason::InvalidArguments) invalid = describe(types.fallback());
    refused = true;
  }
  ++capture_.counters.generic_rule_entries;
  uint64_t absent = 0;
  std::vector<graph::TensorType> types = generic_rule(capture_, op, args, &absent);
  capture_.arguments_did_not_fit = !invalid.empty();
  if (!invalid.empty())
    abort_capture(BreakKind::InvalidArguments, invalid);  // eager mode raises, although its meta kernel does not
  return {std::move(types), refused, absent};
}

graph::TensorType GraphRecorder::constant_geometry(const at::Tensor& real) {
  graph::TensorType type;
  sym::ExprPool& pool = env().pool();
  type.dtype = dtype_or_abort(real);
  type.device = *from_torch(real.device());
  const c10::IntArrayRef sizes = real.sizes(), strides = real.strides();
  type.sizes.reserve(sizes.size());
  type.strides.reserve(strides.size());
  for (const int64_t s : sizes) type.sizes.push_back(pool.constant(s));
  for (const int64_t s : strides) type.strides.push_back(pool.constant(s));
  return type;
}

c10::SymInt GraphRecorder::add_int_argument(int64_t value, std::string name) {
  const sym::ExprId e = env().new_backed(name, value, sym::Interval::all());
  uint32_t position = 0;
  for (const SymbolBinding& s : symbols_)
    if (s.source.kind == runtime::SymbolSource::Kind::IntArgument) ++position;
  symbols_.push_back({env().pool().var_of(e), {runtime::SymbolSource::Kind::IntArgument, position, 0}});
  return SymNode::make_int(capture_.env_ptr(), e);
}

std::optional<bool> GraphRecorder::decide(const FloatExpr::Ref& left, FloatRelation relation,
                                          const FloatExpr::Ref& right, OfData of_data) {
  for (const FloatGuard& guard : float_guards_)
    if (guard.same(left, relation, right)) return guard.expected;
  constexpr size_t kMost = 8192;
  if (float_guards_.size() >= kMost) return std::nullopt;
  capture_.set_location();
  FloatGuard& guard = float_guards_.emplace_back(left, relation, right, current_reason().location);
  guard.of_data = of_data;
  return guard.expected;
}

std::optional<sym::ExprId> GraphRecorder::derived_integer(const FloatExpr::Ref& made) {
  for (const SymbolBinding& s : symbols_)
    if (s.source.kind == runtime::SymbolSource::Kind::Computed && computed_[s.source.position].same(*made))
      return env().pool().var(s.var);
  constexpr size_t kMost = 128;
  if (computed_.size() >= kMost || !DerivedInteger::is_whole(made->number)) return std::nullopt;
  const sym::VarNames sources = sym::source_names(env());
  FloatExpr::Names names{{}, {}, [&](sym::ExprId size) { return sym::to_string(env().pool(), size, sources); }};
  for (const graph::ValueId input : graph().inputs) names.inputs.push_back(graph().value(input).name);
  for (const graph::ValueId constant : graph().constants) names.constants.push_back(graph().value(constant).name);
  std::string source = made->text(names);
  constexpr size_t kLongest = 160;  // limit: names of nested numbers would grow with each level
  if (source.size() > kLongest) source = source.substr(0, kLongest) + "...";
  const sym::ExprId e = env().new_backed(std::move(source), static_cast<int64_t>(made->number), sym::Interval::all());
  const auto position = static_cast<uint32_t>(computed_.size());
  computed_.emplace_back(made);
  symbols_.push_back({env().pool().var_of(e), {runtime::SymbolSource::Kind::Computed, position, 0}});
  return e;
}

std::vector<graph::ValueId> GraphRecorder::append(graph::OpId op, std::vector<graph::Arg> args,
                                                  std::vector<graph::TensorType> types) {
  for (const graph::TensorType& type : types)
    for (const sym::ExprId size : type.sizes)
      if (env().pool().is_const(size) && env().pool().const_value(size) < 0)
        abort_capture(BreakKind::InvalidArguments, "a result of negative size");
  if (any_unbacked_) assume_sizes(types);
  const graph::NodeId id = graph().add_node(op, std::move(args), std::move(types));
  const graph::Node& node = graph().node(id);
  const std::shared_ptr<Backward>& backward = capture_.gradients().backward();
  if (backward != nullptr && capture_.subgraphs().in_subgraph() &&
      open_regions_of_autocast() != backward->regions_of_autocast)
    backward->in_own_casts.insert(id);
  if (!node.results.empty() && ops::has_effects(node)) ++draws_;
  return node.results;
}

}  // namespace cresset::bridge
