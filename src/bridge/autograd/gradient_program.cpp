#include <ATen/record_function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_set>

#include "base/log.h"
#include "bridge/aten/dtypes.h"
#include "bridge/autograd/double_backward.h"
#include "bridge/autograd/gradients.h"
#include "bridge/autograd/partial_gradients.h"
#include "bridge/capture/control_flow.h"
#include "bridge/executor/staged_program.h"
#include "fuse/layout.h"
#include "passes/partition.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cresset::bridge {

// Splits the joint graph.
class GradientProgram::Builder {
 public:
  Builder(graph::Graph& forward, const Backward& backward, size_t real_inputs,
          const std::vector<SymbolBinding>& symbols)
      : forward_(forward), backward_(backward), real_inputs_(real_inputs), original_symbols_(symbols) {
    for (const graph::Mutation& m : forward.mutations)
      changing_.insert(m.is_constant ? forward.constants[m.input] : forward.inputs[m.input]);
  }

  // Returns the backward program. `given` receives the inputs after the tangents: inputs of the call, or outputs of
  // `forward`. Missing outputs are added to `forward`.
  std::unique_ptr<graph::Graph> split(std::vector<Given>& given) {
    std::vector<graph::ValueId> needed;
    for (const graph::ValueId v : used_from_outside(forward_, backward_.part))
      if (!backward_.is_of_pass(v)) needed.push_back(v);
    note_changing(needed);
    const passes::Partition cut = passes::partition(forward_, needed, changing_);
    auto out = std::make_unique<graph::Graph>(forward_);
    out->order = cut.recomputed;
    calls_ = backward_.part.calls;
    for (DataDependentCall& call : calls_) call.position += cut.recomputed.size();
    out->order.insert(out->order.end(), backward_.part.order.begin(), backward_.part.order.end());
    out->outputs = backward_.part.outputs;
    out->mutations.clear();
    out->inputs.clear();
    for (const graph::ValueId v : backward_.tangents) become_input(*out, v);
    for (const Backward::Write& w : backward_.writes) become_input(*out, w.live);
    for (const graph::ValueId v : cut.saved) {
      const bool is_changing = changing_.contains(v);
      if (forward_.value(v).kind == graph::Value::Kind::Constant && !is_changing) continue;
      const bool gaps = has_gaps(v);
      given.push_back(give(v, is_changing));
      saved.push_back(v);
      become_input(*out, v);
      if (gaps) out->value(v).type.strides = rows(v);
    }
    return out;
  }

  std::vector<graph::ValueId> saved;  // values of the joint graph behind `given`

  // The program's input for a gradient which is itself a tangent or a tensor of the caller.
  uint32_t place_of_input(uint32_t position, std::vector<Given>& given, graph::Graph& out) const {
    for (uint32_t i = 0; i < backward_.tangents.size(); ++i)
      if (forward_.value(backward_.tangents[i]).result == position) return i;
    const auto known =
        std::find_if(given.begin(), given.end(), [&](const Given& g) { return g.is_input && g.position == position; });
    const auto at =
        static_cast<uint32_t>(backward_.tangents.size() + backward_.writes.size() + (known - given.begin()));
    if (known == given.end()) {
      given.push_back({true, position});
      become_input(out, forward_.inputs[position]);
    }
    return at;
  }

  // Takes the calls with data-dependent result sizes. Must be called last: their results become the last inputs.
  std::vector<DataDependentCall> take_calls(graph::Graph& out, std::vector<SymbolBinding>& symbols) {
    for (SymbolBinding& s : symbols) s.source.kind = runtime::SymbolSource::Kind::IntArgument;
    for (DataDependentCall& call : calls_)
      for (uint32_t& position : call.made) {
        const auto here = static_cast<uint32_t>(out.inputs.size());
        for (size_t i = 0; i < symbols.size(); ++i) {
          const runtime::SymbolSource& s = original_symbols_[i].source;
          const bool size = s.kind == runtime::SymbolSource::Kind::InputSize;
          if ((size || s.kind == runtime::SymbolSource::Kind::Element) && s.position == position)
            symbols[i].source = {s.kind, here, s.dim};
        }
        become_input(out, forward_.inputs[position]);
        position = here;
      }
    return std::move(calls_);
  }

 private:
  // Notes tensors which the caller may write between forward and backward pass, results too: eager mode permits it
  // where no formula reads the tensor or a view of it. A parameter that the program holds is written by optimizers,
  // after the pass.
  void note_changing(const std::vector<graph::ValueId>& needed) {
    std::unordered_set<graph::ValueId> read;
    for (const graph::ValueId v : needed) read.insert(passes::memory_of(forward_, v));
    for (const Backward::Place& leaf : backward_.leaves)
      if (leaf.home == OutputSpec::Kind::Constant) read.insert(forward_.constants[leaf.position]);
    for (uint32_t i = 0; i < real_inputs_; ++i)
      if (!read.contains(forward_.inputs[i])) changing_.insert(forward_.inputs[i]);
    for (const graph::ValueId v : forward_.constants)
      if (!read.contains(v)) changing_.insert(v);
    for (const graph::ValueId v : forward_.outputs)
      if (forward_.value(v).kind == graph::Value::Kind::Result && !read.contains(passes::memory_of(forward_, v)))
        changing_.insert(v);
  }
  // Whether the value lies, as a view or itself, where a value with gaps has its place. Lowering decides whether that
  // value has gaps in memory, so a copy without gaps is saved. So is a copy of a view of what may change.
  bool has_gaps(graph::ValueId v) const {
    const graph::ValueId memory = passes::memory_of(forward_, v);
    if (memory != v && changing_.contains(memory)) return true;
    const graph::Value& base = forward_.value(memory);
    return forward_.value(v).kind == graph::Value::Kind::Result && base.kind == graph::Value::Kind::Result &&
           !fuse::equal_strides(forward_.env(), base.type.sizes, base.type.strides,
                                fuse::own_layout(forward_, base.type).strides);
  }
  std::vector<sym::ExprId> rows(graph::ValueId v) const {
    return graph::contiguous_strides(forward_.pool(), forward_.type(v).sizes);
  }
  Given give(graph::ValueId v, bool is_changing) {
    static const graph::OpId clone = graph::op_id("aten::clone");
    if (has_gaps(v)) {
      graph::TensorType type = forward_.type(v);
      type.strides = rows(v);
      v = forward_.node(forward_.add_node(clone, {v, graph::MemoryFormat::Contiguous}, {std::move(type)})).results[0];
    }
    const graph::Value& value = forward_.value(v);
    const bool made = value.kind == graph::Value::Kind::Input && value.result >= real_inputs_;
    if (value.kind == graph::Value::Kind::Input && !made && !is_changing) return {true, value.result};
    if (value.kind != graph::Value::Kind::Result || is_changing)
      v = forward_.node(forward_.add_node(clone, {v, graph::None{}}, {forward_.type(v)})).results[0];
    const auto known = std::find(forward_.outputs.begin(), forward_.outputs.end(), v);
    const auto at = static_cast<uint32_t>(known - forward_.outputs.begin());
    if (known == forward_.outputs.end()) forward_.outputs.push_back(v);
    return {false, at};
  }
  static void become_input(graph::Graph& out, graph::ValueId v) {
    graph::Value& value = out.value(v);
    value.node = graph::NodeId{};
    value.kind = graph::Value::Kind::Input;
    value.result = static_cast<uint32_t>(out.inputs.size());
    out.inputs.push_back(v);
  }

  graph::Graph& forward_;
  const Backward& backward_;
  size_t real_inputs_;
  const std::vector<SymbolBinding>& original_symbols_;
  std::vector<DataDependentCall> calls_;
  std::unordered_set<graph::ValueId> changing_;  // until the backward pass
};

namespace {

// Sizes in the backward program: the forward program must keep the calls which make them.
std::vector<sym::ExprId> numbers_in(const graph::Graph& graph) {
  std::vector<sym::ExprId> out;
  for (const graph::NodeId id : graph.order) {
    for (const graph::Arg& arg : graph.node(id).args) {
      if (const auto* e = std::get_if<sym::ExprId>(&arg)) out.push_back(*e);
      if (const auto* list = std::get_if<std::vector<sym::ExprId>>(&arg))
        out.insert(out.end(), list->begin(), list->end());
    }
    for (const graph::ValueId v : graph.node(id).results) {
      out.insert(out.end(), graph.type(v).sizes.begin(), graph.type(v).sizes.end());
      out.insert(out.end(), graph.type(v).strides.begin(), graph.type(v).strides.end());
    }
  }
  return out;
}

// Positions of the constants which the graph mentions.
std::vector<uint32_t> constants_in(const graph::Graph& graph) {
  std::unordered_set<graph::ValueId> used(graph.outputs.begin(), graph.outputs.end());
  for (const graph::NodeId id : graph.order)
    graph::Graph::for_each_value(graph.node(id).args, [&](const graph::ValueId& v) { used.insert(v); });
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < graph.constants.size(); ++i)
    if (used.contains(graph.constants[i])) out.push_back(i);
  return out;
}

}  // namespace

GradientProgram::GradientProgram(graph::Graph& graph, std::shared_ptr<const Backward> backward,
                                 const std::vector<OutputSpec>& results, size_t real_inputs,
                                 const std::vector<SymbolBinding>& symbols, const std::vector<at::Tensor>& constants,
                                 const driver::Options& options)
    : backward_(std::move(backward)),
      shared_roots_(shared_roots(*backward_, results)),
      code_(std::make_shared<Code>()) {
  std::unordered_map<sym::VarId, uint32_t> slots;
  for (uint32_t i = 0; i < symbols.size(); ++i) slots.emplace(symbols[i].var, i);
  if (backward_->part.calls.empty() &&
      graph.inputs.size() == real_inputs + backward_->tangents.size() + backward_->writes.size())
    recorded_ = std::make_shared<DoubleBackward>(graph, backward_, constants, slots);
  Builder builder(graph, *backward_, real_inputs, symbols);
  std::unique_ptr<graph::Graph> program = builder.split(given_);
  if (recorded_ != nullptr) recorded_->set_saved(builder.saved);
  std::vector<OutputSpec> gradients = backward_->gradients;
  for (OutputSpec& spec : gradients)
    if (spec.kind == OutputSpec::Kind::Input) spec.position = builder.place_of_input(spec.position, given_, *program);
  std::vector<SymbolBinding> bindings = symbols;
  std::vector<DataDependentCall> calls = builder.take_calls(*program, bindings);
  numbers_ = numbers_in(*program);
  code_->used_constants = constants_in(*program);
  code_->constants = constants;
  code_->symbol_count = symbols.size();
  code_->slots = slots;
  const std::shared_ptr<sym::ShapeEnv> env = program->env_ptr();
  if (!backward_->groups.empty() && calls.empty()) {
    const size_t of_pass = backward_->tangents.size() + backward_->writes.size();
    std::vector<graph::ValueId> saved(program->inputs.begin() + static_cast<long>(of_pass), program->inputs.end());
    for (const uint32_t position : code_->used_constants) saved.push_back(program->constants[position]);
    use_ = std::make_shared<SavedUse>(*program, *backward_, saved);
  }
  CRESSET_LOG(Graph, "backward:\n" + graph::print(*program));
  if (calls.empty()) keep_for_partial(*program, options);
  compile(std::move(program), std::move(calls), bindings, options);

  std::vector<sym::ExprId> layout;
  for (const graph::ValueId tangent : backward_->tangents) {
    const graph::TensorType& type = graph.type(tangent);
    layout.insert(layout.end(), type.sizes.begin(), type.sizes.end());
    layout.insert(layout.end(), type.strides.begin(), type.strides.end());
    TangentLayout kind;
    kind.sizes.resize(type.rank());
    kind.strides.resize(type.rank());
    kind.dtype = to_torch(type.dtype);
    kind.device = to_torch(type.device);
    layout_kinds_.push_back(std::move(kind));
  }
  layouts_ = sym::SizeProgram::compile(env->pool(), layout, slots);
  for (const OutputSpec& spec : gradients)
    for (const auto* list : {&spec.sizes, &spec.strides}) numbers_.insert(numbers_.end(), list->begin(), list->end());
  code_->gradients = ResultViews(std::move(gradients), env->pool(), slots);
}

void GradientProgram::keep_for_partial(const graph::Graph& program, const driver::Options& options) {
  const size_t tangents = backward_->tangents.size();
  if (tangents < 2 || !backward_->linear) return;
  code_->partial = std::make_unique<PartialPrograms>(program, tangents, code_->constants, code_->slots, options);
}

void GradientProgram::seal() {
  if (code_->partial != nullptr) code_->partial->seal();
}

Executable::Executable(driver::Compiled compiled, const std::vector<at::Tensor>& constants,
                       const std::unordered_map<sym::VarId, uint32_t>& slots) {
  for (const sym::VarId var : compiled.program.symbols) program_slots.push_back(slots.at(var));
  executor = std::make_unique<Executor>(std::move(compiled), constants);
}

std::vector<at::Tensor> Executable::run(std::vector<at::Tensor> inputs, const std::vector<int64_t>& symbols) const {
  std::vector<int64_t> values;
  for (const uint32_t slot : program_slots) values.push_back(symbols[slot]);
  RECORD_FUNCTION("cresset: backward pass", c10::ArrayRef<const c10::IValue>());
  return executor->run_releasing(std::move(inputs), values);
}

GradientProgram::Code::Code() = default;
GradientProgram::Code::~Code() = default;

std::atomic<double>& ms_generated_in_backward() {
  static std::atomic<double> ms = 0;
  return ms;
}

void GradientProgram::compile(std::unique_ptr<graph::Graph> program, std::vector<DataDependentCall> calls,
                              const std::vector<SymbolBinding>& symbols, const driver::Options& options) {
  if (!calls.empty()) {
    const size_t given = backward_->tangents.size() + given_.size();
    code_->staged = std::make_unique<StagedProgram>(std::move(program), std::move(calls), symbols, given,
                                                    code_->constants, options);
    code_->stats = code_->staged->stats();
    return;
  }
  Result<std::unique_ptr<driver::Deferred>> deferred = driver::defer(std::move(program), options);
  CRESSET_CHECK(deferred.ok(), describe(deferred.fallback()));
  code_->deferred = std::move(*deferred);
  code_->stats = code_->deferred->stats();
}

void GradientProgram::Code::generate() {
  Result<driver::Compiled> compiled = deferred->finish();
  CRESSET_CHECK(compiled.ok(), describe(compiled.fallback()));
  ms_generated_in_backward() += compiled->stats.ms_codegen - stats.ms_codegen;
  whole = Executable(std::move(*compiled), constants, slots);
  deferred = nullptr;
}

std::vector<at::Tensor> GradientProgram::Code::run(std::vector<at::Tensor> inputs,
                                                   const std::vector<TangentLayout>& layouts,
                                                   std::vector<int64_t> symbols, const std::vector<Written>& live) {
  const PartialProgram* part = nullptr;
  if (const std::vector<bool> given = which_are_given(inputs, layouts.size()); !given.empty()) {
    if (partial != nullptr) part = partial->get(given);
    for (size_t i = 0; part == nullptr && i < layouts.size(); ++i)
      if (!given[i]) inputs[i] = zeros(layouts[i]);
  }
  if (staged == nullptr && part == nullptr) std::call_once(generated, [this] { generate(); });
  std::vector<at::Tensor> returned(inputs.size());  // gradients which are inputs
  for (size_t i = 0; i < gradients.size(); ++i)
    if (const OutputSpec& spec = gradients.spec(i); spec.kind == OutputSpec::Kind::Input)
      returned[spec.position] = inputs[spec.position];
  const std::vector<at::Tensor> results = part != nullptr     ? part->run(std::move(inputs), symbols)
                                          : staged != nullptr ? staged->run(inputs, symbols.data())
                                                              : whole.run(std::move(inputs), symbols);
  for (size_t i = 0; i < live.size(); ++i)
    write_live(live[i].tensor, results[results.size() - live.size() + i], live[i].unseen);
  return gradients.make(returned, constants, results, symbols.data());
}

std::vector<at::Tensor> GradientProgram::before_writes(c10::ArrayRef<at::Tensor> inputs) const {
  return recorded_ != nullptr ? recorded_->before_writes(inputs) : std::vector<at::Tensor>();
}

void GradientProgram::attach(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& outputs,
                             const ResultViews& views, std::vector<at::Tensor>& results, const int64_t* symbols,
                             const std::vector<at::Tensor>& before) const {
  SavedTensors saved;
  for (const Given& g : given_) saved.add(g.is_input ? inputs[g.position] : outputs[g.position]);
  const size_t given = saved.tensors.size();
  for (const uint32_t position : code_->used_constants) saved.add(code_->constants[position]);
  std::vector<at::Tensor> roots, leaves;
  std::vector<Code::Written> live;
  const auto at = [&](const Backward::Place& place) { return tensor_at(place, inputs, code_->constants, results); };
  for (size_t i = 0; i < backward_->roots.size(); ++i)
    roots.push_back(shared_roots_[i] ? outputs[*shared_roots_[i]] : at(backward_->roots[i]));
  for (const Backward::Place& leaf : backward_->leaves) leaves.push_back(at(leaf));
  for (const Backward::Write& w : backward_->writes) live.push_back({at(w.place), w.unseen});
  std::vector<int64_t> numbers(layouts_.output_count());
  if (!numbers.empty()) layouts_.run(symbols, numbers.data());
  std::vector<TangentLayout> layouts = layout_kinds_;
  auto number = numbers.begin();
  for (TangentLayout& layout : layouts)
    for (auto* list : {&layout.sizes, &layout.strides}) {
      std::copy_n(number, list->size(), list->begin());
      number += static_cast<long>(list->size());
    }
  const std::vector<Backward::Place> written = this->written();
  BackwardRuns runs;
  if (recorded_ != nullptr) {
    const auto call =
        std::make_shared<const DoubleBackward::Call>(recorded_->note(inputs, before, symbols, code_->symbol_count));
    runs.casts_apart = [pass = recorded_] { return pass->casts_apart(); };
    runs.recorded = [pass = recorded_, layouts, call](std::vector<at::Tensor> tangents,
                                                      const std::vector<at::Tensor>& kept) {
      return pass->run(*call, std::move(tangents), layouts, kept);
    };
    if (!backward_->intermediates.empty())
      runs.arriving = [pass = recorded_, layouts, call](std::vector<at::Tensor> tangents,
                                                        const std::vector<at::Tensor>& kept) {
        return pass->arriving(*call, std::move(tangents), layouts, kept);
      };
  }
  runs.compiled = [code = code_, given, layouts, live,
                   values = std::vector<int64_t>(symbols, symbols + code_->symbol_count)](
                      std::vector<at::Tensor> tangents, std::vector<at::Tensor> kept) {
    kept.resize(given);  // the program holds its constants itself
    for (const Code::Written& w : live) tangents.push_back(w.tensor);
    for (at::Tensor& t : kept) tangents.push_back(std::move(t));
    return code->run(std::move(tangents), layouts, values, live);
  };
  set_gradients(roots, roots.size() - written.size(), leaves, *backward_, layouts, std::move(saved), use_,
                std::move(runs));
  // Views were made below autograd, so a view which is a root by itself is no view for autograd. Every other view is
  // recorded here: a view of a root with its history, and a view of memory which may get a history by a later write.
  c10::SmallVector<uint32_t, 8> alone;
  for (size_t i = 0; i < backward_->roots.size(); ++i)
    if (backward_->roots[i].home == OutputSpec::Kind::GraphOutput && !shared_roots_[i])
      alone.push_back(views.spec(backward_->roots[i].position).position);
  for (const uint32_t i : views.order()) {
    const OutputSpec& spec = views.spec(i);
    if (spec.kind != OutputSpec::Kind::GraphOutput || spec.leaf) continue;
    if (std::find(alone.begin(), alone.end(), spec.position) != alone.end()) continue;
    const bool is_shared = std::find(shared_roots_.begin(), shared_roots_.end(), spec.position) != shared_roots_.end();
    if (is_shared || spec.is_view) results[i] = views.recorded(i, outputs[spec.position], symbols, results);
  }
  for (const Backward::Place& place : written)
    for (const uint32_t i : views.order())
      if (const OutputSpec& spec = views.spec(i); spec.is_view && place == Backward::Place{spec.kind, spec.position})
        results[i] = views.of_written(i, at(place), symbols, results);
}

std::shared_ptr<const Backward> with_images_laid_out(graph::Graph& forward, std::shared_ptr<const Backward> backward) {
  if (!backward->part.calls.empty()) return backward;
  std::vector<graph::ValueId> kept = backward->part.outputs;
  for (const Backward::Intermediate& i : backward->intermediates) kept.push_back(i.gradient);
  auto changed = std::make_shared<Backward>(*backward);
  return passes::channels_last_joint(forward, changed->part.order, kept) ? changed : backward;
}

std::vector<Backward::Place> GradientProgram::written() const { return written_roots(*backward_); }

std::vector<Backward::Place> written_roots(const Backward& backward) {
  std::vector<Backward::Place> out;
  for (const Backward::Place& root : backward.roots)
    if (root.home != OutputSpec::Kind::GraphOutput) out.push_back(root);
  return out;
}

std::vector<std::optional<uint32_t>> shared_roots(const Backward& backward, const std::vector<OutputSpec>& results) {
  std::vector<std::optional<uint32_t>> out;
  for (const Backward::Place& root : backward.roots) {
    if (root.home != OutputSpec::Kind::GraphOutput) {
      out.emplace_back();
      continue;
    }
    const uint32_t position = results[root.position].position;
    const auto count = std::count_if(results.begin(), results.end(), [&](const OutputSpec& spec) {
      return spec.kind == OutputSpec::Kind::GraphOutput && spec.position == position;
    });
    out.push_back(count > 1 ? std::optional(position) : std::nullopt);
  }
  return out;
}

}  // namespace cresset::bridge
