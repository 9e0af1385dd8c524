#include "bridge/autograd/partial_gradients.h"

#include <algorithm>

#include "base/log.h"
#include "passes/absent_tangents.h"

namespace cresset::bridge {

std::vector<at::Tensor> PartialProgram::run(std::vector<at::Tensor> inputs, const std::vector<int64_t>& symbols) const {
  std::vector<at::Tensor> taken;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (i >= given.size() || given[i]) taken.push_back(std::move(inputs[i]));
  const std::vector<at::Tensor> results = program.run(std::move(taken), symbols);
  std::vector<at::Tensor> out;
  auto next = results.begin();
  for (const bool none : absent) out.push_back(none ? at::Tensor() : *next++);
  return out;
}

const PartialProgram* PartialPrograms::get(const std::vector<bool>& given) {
  const std::lock_guard lock(mutex_);
  const auto known = made_.find(given);
  if (known != made_.end()) return known->second.get();
  if (sealed_ != sym::asked(whole_.env()) || made_.size() >= kMost) return nullptr;
  return (made_[given] = make(given)).get();
}

std::unique_ptr<PartialProgram> PartialPrograms::make(const std::vector<bool>& given) {
  auto graph = std::make_unique<graph::Graph>(whole_);
  auto out = std::make_unique<PartialProgram>();
  out->given = given;
  const std::vector<graph::ValueId> tangents(whole_.inputs.begin(),
                                             whole_.inputs.begin() + static_cast<long>(tangents_));
  out->absent = passes::without_tangents(*graph, graph->order, graph->outputs, tangents, given);
  graph->inputs.clear();
  for (size_t i = 0; i < whole_.inputs.size(); ++i) {
    if (i < tangents_ && !given[i]) continue;
    graph->value(whole_.inputs[i]).result = static_cast<uint32_t>(graph->inputs.size());
    graph->inputs.push_back(whole_.inputs[i]);
  }
  size_t kept = 0;
  for (size_t i = 0; i < out->absent.size(); ++i)
    if (!out->absent[i]) graph->outputs[kept++] = graph->outputs[i];
  graph->outputs.resize(kept);
  CRESSET_LOG(Graph, "backward, of some results:\n" + graph::print(*graph));
  const std::unique_ptr<driver::Deferred> deferred = lowered(std::move(graph));
  if (deferred == nullptr) return nullptr;
  Result<driver::Compiled> compiled = deferred->finish();
  CRESSET_CHECK(compiled.ok(), describe(compiled.fallback()));
  ms_generated_in_backward() += compiled->stats.ms_codegen;
  out->program = Executable(std::move(*compiled), constants_, slots_);
  return out;
}

std::unique_ptr<driver::Deferred> PartialPrograms::lowered(std::unique_ptr<graph::Graph> program) {
  Result<std::unique_ptr<driver::Deferred>> deferred = driver::defer(std::move(program), options_);
  CRESSET_CHECK(deferred.ok(), describe(deferred.fallback()));
  // If lowering asked new questions, their answers are unguarded: this program and all later ones are refused.
  return sealed_ == sym::asked(whole_.env()) ? std::move(*deferred) : nullptr;
}

}  // namespace cresset::bridge
