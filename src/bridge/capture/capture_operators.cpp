// How a capture records an operator: the types of its results by a shape rule or by the generic rule, after checks of
// its devices, dtypes and data.
#include <ATen/SequenceNumber.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>

#include "bridge/aten/dtypes.h"
#include "bridge/aten/op_schema.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/data_dependent_errors.h"
#include "bridge/capture/data_dependent_ops.h"
#include "bridge/capture/masked_assignment.h"
#include "bridge/capture/meta_shape_rule.h"
#include "graph/text.h"
#include "ops/complex.h"
#include "ops/op_def.h"

namespace cresset::bridge {

// Here RaisedByData is complete.
Capture::Capture(bool dynamic)
    : default_dtype(*from_torch(c10::get_default_dtype_as_scalartype())),
      dynamic_(dynamic),
      graph_(std::make_unique<graph::Graph>(std::make_shared<sym::ShapeEnv>())),
      first_node_(at::sequence_number::peek()) {}

Capture::~Capture() = default;

namespace {

// Shape rules promote only real dtypes. The rules of views, copies and extents ignore dtypes.
bool applies(const ops::OpDef& def, const graph::Graph& graph, const std::vector<graph::Arg>& args) {
  if (!ops::takes_complex(graph, args)) return true;
  const std::string_view name = ops::name_of(def);
  return def.op_class == ops::OpClass::View || name == "aten::_to_copy" || name == "aten::clone";
}

// Only copies and indexing may mix devices; a CPU number fits everywhere. Eager mode raises for the remaining cases.
void check_devices(const graph::Graph& graph, graph::OpId op, const std::vector<graph::Arg>& args) {
  std::optional<graph::Device> found;
  for (const graph::Arg& arg : args) {
    const auto* value = std::get_if<graph::ValueId>(&arg);
    if (value == nullptr) continue;
    const graph::TensorType& type = graph.type(*value);
    if (type.rank() == 0 && type.device.kind == graph::DeviceKind::Cpu) continue;
    if (!found) found = type.device;
    if (*found == type.device) continue;
    const std::string_view name = graph::op_name(op);
    if (name.find("copy") != std::string_view::npos || name.find("index") != std::string_view::npos) return;
    abort_capture(BreakKind::UnsupportedDevice, c10::str(std::string(name), " on tensors of several devices"));
  }
}

// Only these devices have code generation; a tensor without memory has no place in a program at all.
void check_device_of(graph::OpId op, const std::vector<graph::TensorType>& types) {
  for (const graph::TensorType& type : types)
    if (type.device.kind != graph::DeviceKind::Cpu)
      abort_capture(BreakKind::UnsupportedDevice, c10::str(graph::op_name(op), " on device ",
                                                           graph::text::word(graph::text::kDevices, type.device.kind)));
}

}  // namespace

// An output mask is a list of booleans.
static bool may_mask_results(const std::vector<graph::Arg>& args) {
  return std::any_of(args.begin(), args.end(),
                     [](const graph::Arg& arg) { return std::holds_alternative<std::vector<bool>>(arg); });
}

std::vector<graph::ValueId> Capture::call(graph::OpId op, std::vector<graph::Arg> args) {
  ++counters.operators;
  absent_results = 0;
  if (makes_data_dependent_sizes(op)) {
    check_devices(*graph_, op, args);
    std::vector<graph::TensorType> unknown;
    check_dtypes(op, args, unknown);
    check_data(op, args);
    return call_data_dependent(op, std::move(args));
  }
  if (std::optional<graph::ValueId> chosen = masked_assignment(*this, op, args)) return {*chosen};
  replace_masks(op, args);
  forget_example(op, args);
  const ops::ShapeMemo::Entry* known = shapes_.find(*graph_, op, args);
  counters.shape_memo_hits += known != nullptr;
  ops::ShapeMemo::Entry found;
  if (known == nullptr) {
    check_devices(*graph_, op, args);
    found = result_types(op, args);
    check_device_of(op, found.types);
    check_dtypes(op, args, found.types);
    if (!ops::takes_complex(*graph_, args)) shapes_.add(found);  // a complex constant may count as a number
  }
  const bool refused = known != nullptr ? known->refused : found.refused;
  absent_results = known != nullptr ? known->absent : found.absent;
  const bool caught = check_data(op, args);
  std::vector<graph::ValueId> results =
      append(op, std::move(args), known != nullptr ? known->types : std::move(found.types));
  graph_->node(graph_->order.back()).caught = caught;
  if (refused) graph_->node(graph_->order.back()).through_aten = true;
  if (absent_results != 0 || results.size() < 3 || results.size() > 4 ||
      !may_mask_results(graph_->node(graph_->order.back()).args))
    return results;
  // cresset's rules make all results of an operator with an output mask.
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  if (handle) absent_results = unwanted_results(handle->schema(), graph_->node(graph_->order.back()).args);
  if (absent_results == 0) return results;
  std::vector<graph::ValueId> wanted;
  for (size_t i = 0; i < results.size(); ++i)
    if ((absent_results >> i & 1) == 0) wanted.push_back(results[i]);
  return wanted;
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
ops::ShapeMemo::Entry Capture::result_types(graph::OpId op, const std::vector<graph::Arg>& args) {
  std::string invalid;
  bool refused = false;
  if (const ops::OpDef* def = ops::find(op); def != nullptr && def->shape != nullptr && applies(*def, *graph_, args)) {
    ++counters.shape_rule_entries;
    ops::ShapeContext context(*graph_, graph::op_name(op));
    context.default_dtype = default_dtype;
    Result<ops::Types> types = shape_of(*def, context, args);
    const uint64_t absent = types.ok() ? left_out(*def, op, args, types->size()) : 0;
    if (types.ok()) return {std::move(*types), false, absent};
    if (types.fallback().reason == FallbackReason::DataDependent)
      abort_capture(BreakKind::DataDependentSize, describe(types.fallback()));
    if (types.fallback().reason == FallbackReason::InvalidArguments) invalid = describe(types.fallback());
    refused = true;
  }
  ++counters.generic_rule_entries;
  uint64_t absent = 0;
  std::vector<graph::TensorType> types = generic_rule(*this, op, args, &absent);
  arguments_did_not_fit = !invalid.empty();
  if (!invalid.empty())
    abort_capture(BreakKind::InvalidArguments, invalid);  // eager mode raises, although its meta kernel does not
  return {std::move(types), refused, absent};
}

}  // namespace cresset::bridge
