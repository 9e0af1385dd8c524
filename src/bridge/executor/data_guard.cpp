#include "bridge/executor/data_guard.h"

#include "bridge/aten/op_schema.h"
#include "bridge/capture/graph_cut.h"
#include "bridge/capture/sym_node.h"

namespace cresset::bridge {
namespace {

bool same_number(const at::Scalar& a, const at::Scalar& b) {
  if (a.type() != b.type()) return false;
  if (a.isFloatingPoint())
    return a.toDouble() == b.toDouble() || (a.toDouble() != a.toDouble() && b.toDouble() != b.toDouble());
  return a.isBoolean() ? a.toBool() == b.toBool() : a.toLong() == b.toLong();
}

}  // namespace

DataGuard::DataGuard(DataRead read, const std::vector<at::Tensor>& constants,
                     const std::unordered_map<sym::VarId, uint32_t>& slots)
    : expected_(read.expected), location_(std::move(read.location)) {
  // This part of the graph does not know later constants.
  const std::vector<at::Tensor> known(constants.begin(),
                                      constants.begin() + static_cast<long>(read.graph->constants.size()));
  Result<driver::Compiled> compiled = driver::compile(std::move(read.graph), {});
  CRESSET_CHECK(compiled.ok(), describe(compiled.fallback()));
  for (const sym::VarId var : compiled->program.symbols) symbol_slots_.push_back(slots.at(var));
  executor_ = std::make_unique<Executor>(std::move(*compiled), known);
}

at::Scalar DataGuard::value(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const {
  std::vector<int64_t> mine;
  for (const uint32_t slot : symbol_slots_) mine.push_back(symbols[slot]);
  return executor_->run(inputs, mine).at(0).item();
}

bool DataGuard::holds(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const {
  return same_number(value(inputs, symbols), expected_);
}

at::Scalar GraphRecorder::read_number(graph::ValueId value) {
  if (graph().type(value).device.kind == graph::DeviceKind::Meta)
    abort_capture(BreakKind::UnsupportedDevice, "a number read from a meta tensor");
  if (!data_calls_.empty())
    abort_capture(BreakKind::DataDependentValue, "a number read from tensor data after a size that data made");
  if (category(graph().type(value).dtype) == DTypeCategory::Complex)
    abort_capture(BreakKind::UnsupportedDtype, "a complex number read from data");
  constexpr size_t kMostReads = 16;
  if (data_reads_.size() >= kMostReads) abort_capture(BreakKind::Limits, "more than 16 numbers read from tensor data");
  std::unordered_map<sym::VarId, uint32_t> slots;
  std::vector<int64_t> symbols;
  for (uint32_t i = 0; i < symbols_.size(); ++i) {
    slots.emplace(symbols_[i].var, i);
    symbols.push_back(env().hint_or(env().pool().var(symbols_[i].var), 0));
  }
  const std::string location = graph().locations[graph().current_location];
  std::vector<at::Tensor> constants;
  for (const at::Tensor& constant : constants_) {
    const at::Tensor alias = InputProxy::alias_of(constant);
    constants.push_back(alias.defined() ? alias : constant);
  }
  // Inputs after the caller's tensors are gradients of the results, which do not exist when a cache entry is chosen.
  const auto without_gradients = [&](std::unique_ptr<graph::Graph> cut) {
    for (size_t i = real_inputs_.size(); i < cut->inputs.size(); ++i) {
      const auto uses = [&](graph::NodeId id) {
        bool found = false;
        graph::Graph::for_each_value(cut->node(id).args,
                                     [&](const graph::ValueId& v) { found |= v == cut->inputs[i]; });
        return found;
      };
      if (value == cut->inputs[i] || std::any_of(cut->order.begin(), cut->order.end(), uses))
        abort_capture(BreakKind::AutogradFeature, "a number read from a gradient");
    }
    cut->inputs.resize(std::min(cut->inputs.size(), real_inputs_.size()));
    return cut;
  };
  Capture::StepAside aside;
  const DataGuard now({without_gradients(cut_to(graph(), value)), at::Scalar(0), location}, constants, slots);
  const at::Scalar number = now.value(real_inputs_, symbols.data());
  data_reads_.push_back({without_gradients(cut_to(graph(), value)), number, location});
  return number;
}

}  // namespace cresset::bridge
