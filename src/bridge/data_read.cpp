#include "bridge/data_read.h"

#include "bridge/op_entry.h"
#include "bridge/sym_node.h"

namespace cresset::bridge {
bool is_random(graph::OpId op) {
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  return handle && handle->hasSchema() && handle->getTags().size() > 0 &&
         std::find(handle->getTags().begin(), handle->getTags().end(), at::Tag::nondeterministic_seeded) !=
             handle->getTags().end();
}

bool draws_again(const graph::Node& node) {
  if (!is_random(node.op)) return false;
  const std::optional<int> dropout = find_operator(node.op)->schema().argumentIndexWithName("dropout_p");
  if (!dropout) return true;
  const auto* p = std::get_if<double>(&node.args.at(static_cast<size_t>(*dropout)));
  return p == nullptr || *p != 0;
}

namespace {

bool same_number(const at::Scalar& a, const at::Scalar& b) {
  if (a.type() != b.type()) return false;
  if (a.isFloatingPoint())
    return a.toDouble() == b.toDouble() || (a.toDouble() != a.toDouble() && b.toDouble() != b.toDouble());
  return a.isBoolean() ? a.toBool() == b.toBool() : a.toLong() == b.toLong();
}

}  // namespace

std::unique_ptr<graph::Graph> cut_to(const graph::Graph& graph, graph::ValueId value) {
  auto cut = std::make_unique<graph::Graph>(graph);
  cut->mutations.clear();
  cut->outputs = {value};
  std::vector<bool> needed(cut->value_count(), false);
  needed[value.index] = true;
  std::vector<graph::NodeId> kept;
  for (auto it = cut->order.rbegin(); it != cut->order.rend(); ++it) {
    const graph::Node& node = cut->node(*it);
    const bool used =
        std::any_of(node.results.begin(), node.results.end(), [&](graph::ValueId r) { return needed[r.index]; });
    if (!used) continue;
    if (is_random(node.op)) abort_capture("a number read from random data");
    graph::Graph::for_each_value(node.args, [&](const graph::ValueId& v) { needed[v.index] = true; });
    kept.push_back(*it);
  }
  cut->order.assign(kept.rbegin(), kept.rend());
  return cut;
}

DataGuard::DataGuard(DataRead read, const std::vector<at::Tensor>& constants,
                     const std::unordered_map<sym::VarId, uint32_t>& slots)
    : expected_(read.expected), location_(std::move(read.location)) {
  // Later constants are unknown to this earlier part of the graph.
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

at::Scalar Capture::read_number(graph::ValueId value) {
  if (graph_->type(value).device.kind != graph::DeviceKind::Cpu) abort_capture("a number read from a device");
  if (!data_calls_.empty()) abort_capture("a number read from tensor data after a size that data made");
  if (category(graph_->type(value).dtype) == DTypeCategory::Complex) abort_capture("a complex number read from data");
  constexpr size_t kMostReads = 16;
  if (data_reads_.size() >= kMostReads) abort_capture("more than 16 numbers read from tensor data");
  std::unordered_map<sym::VarId, uint32_t> slots;
  std::vector<int64_t> symbols;
  for (uint32_t i = 0; i < symbols_.size(); ++i) {
    slots.emplace(symbols_[i].var, i);
    symbols.push_back(env().hint_or(env().pool().var(symbols_[i].var), 0));
  }
  const std::string location = graph_->locations[graph_->current_location];
  std::vector<at::Tensor> constants;
  for (const at::Tensor& constant : constants_) {
    const at::Tensor alias = Guest::alias_of(constant);
    constants.push_back(alias.defined() ? alias : constant);
  }
  // Beyond the caller's tensors: gradients of the results, which are not there when a call is chosen.
  const auto without_gradients = [&](std::unique_ptr<graph::Graph> cut) {
    for (size_t i = real_inputs_.size(); i < cut->inputs.size(); ++i) {
      const auto uses = [&](graph::NodeId id) {
        bool found = false;
        graph::Graph::for_each_value(cut->node(id).args,
                                     [&](const graph::ValueId& v) { found |= v == cut->inputs[i]; });
        return found;
      };
      if (value == cut->inputs[i] || std::any_of(cut->order.begin(), cut->order.end(), uses))
        abort_capture("a number read from a gradient");
    }
    cut->inputs.resize(std::min(cut->inputs.size(), real_inputs_.size()));
    return cut;
  };
  StepAside aside;
  const DataGuard now({without_gradients(cut_to(*graph_, value)), at::Scalar(0), location}, constants, slots);
  const at::Scalar number = now.value(real_inputs_, symbols.data());
  data_reads_.push_back({without_gradients(cut_to(*graph_, value)), number, location});
  return number;
}

}  // namespace cresset::bridge
