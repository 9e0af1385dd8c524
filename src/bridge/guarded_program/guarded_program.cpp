#include "bridge/guarded_program/guarded_program.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <unordered_set>

#include "base/log.h"
#include "base/options.h"
#include "bridge/aten/autograd_history.h"
#include "bridge/autograd/gradients.h"
#include "bridge/capture/control_flow.h"
#include "bridge/capture/dead_data_calls.h"
#include "bridge/capture/graph_cut.h"
#include "bridge/executor/frozen_weights.h"
#include "bridge/executor/staged_program.h"
#include "ops/op_def.h"
#include "sym/explain.h"

namespace cresset::bridge {
namespace {

std::unordered_map<sym::VarId, uint32_t> slot_map(const std::vector<SymbolBinding>& symbols) {
  std::unordered_map<sym::VarId, uint32_t> slots;
  for (uint32_t i = 0; i < symbols.size(); ++i) slots.emplace(symbols[i].var, i);
  return slots;
}

// nullptr: the tensor has no storage.
const c10::StorageImpl* memory_of(const at::Tensor& t) {
  return t.has_storage() ? t.storage().unsafeGetStorageImpl() : nullptr;
}

// Of a view whose base was written in ways that autograd forbids, autograd refuses to say it. Such a view is no leaf.
bool is_known_leaf(const at::Tensor& t) {
  try {
    return t.is_leaf();
  } catch (const c10::Error&) {
    return false;
  }
}

TensorGuard guard_for(const at::Tensor& t, std::string name) {
  TensorGuard guard;
  guard.name = std::move(name);
  guard.dispatch_keys = t.key_set().raw_repr();
  guard.dtype = t.scalar_type();
  guard.device = t.device();
  return guard;
}

}  // namespace

GuardedProgram::~GuardedProgram() = default;

Executor& GuardedProgram::executor() { return staged_ != nullptr ? staged_->last() : *executor_; }

GuardedProgram::GuardedProgram(Captured captured, const std::vector<at::Tensor>& inputs, const driver::Options& options,
                               bool keep_text, const std::vector<sym::ExprId>& numbers)
    : captured_(std::move(captured)), env_(captured_.graph->env_ptr()), symbols_(captured_.symbols) {
  env_->name_by_source();
  if (option_flag(Option::VERIFY)) {
    const std::string broken = graph::verify(*captured_.graph);
    CRESSET_CHECK(broken.empty(), broken);
  }
  if (captured_.backward != nullptr && captured_.data_calls.empty())
    captured_.backward = with_images_laid_out(*captured_.graph, std::move(captured_.backward));
  if (captured_.backward != nullptr)
    gradients_ = std::make_unique<GradientProgram>(*captured_.graph, std::move(captured_.backward), captured_.outputs,
                                                   inputs.size(), symbols_, captured_.constants, options);
  if (!captured_.data_calls.empty()) {
    std::vector<sym::ExprId> kept = numbers;
    if (gradients_ != nullptr) kept.insert(kept.end(), gradients_->numbers().begin(), gradients_->numbers().end());
    for (const OutputSpec& spec : captured_.outputs) {
      for (const Extent& extent : spec.extents()) {
        kept.insert(kept.end(), extent.sizes.begin(), extent.sizes.end());
        kept.insert(kept.end(), extent.strides.begin(), extent.strides.end());
        if (spec.is_view) kept.push_back(extent.offset);
      }
    }
    drop_unused_calls(*captured_.graph, captured_.data_calls, symbols_, inputs.size(), std::move(kept));
  }
  // Drops inputs of abandoned subgraphs.
  if (captured_.data_calls.empty()) captured_.graph->inputs.resize(inputs.size());
  CRESSET_LOG(Graph, print_with_calls(*captured_.graph, captured_.data_calls));
  if (keep_text) graph_text_ = print_with_calls(*captured_.graph, captured_.data_calls);
  make_tensor_guards(inputs);
  visible_ = VisibleStrides::of(captured_, inputs.size(), slot_map(symbols_));
  std::unique_ptr<graph::Graph> graph = std::move(captured_.graph);
  captured_.graph = nullptr;
  make_executor(std::move(graph), options);
  // Lowering may ask questions of its own. By now all stages are lowered and all guards are present.
  for (DataRead& read : captured_.data_reads)
    data_guards_.emplace_back(std::move(read), captured_.constants, slot_map(symbols_));
  captured_.data_reads.clear();
  make_shape_guards();
  make_assertions();
  make_outputs();
  choose_released();
  validate();
}

static bool is_of_torch(graph::OpId op) { return !ops::traits(op).foreign; }

void GuardedProgram::make_executor(std::unique_ptr<graph::Graph> graph, const driver::Options& options) {
  std::vector<graph::OpId> operators;
  for (const graph::NodeId id : graph->order) operators.push_back(graph->node(id).op);
  for (const DataDependentCall& call : captured_.data_calls) operators.push_back(call.op);
  draws_ = std::any_of(operators.begin(), operators.end(), is_random);
  is_of_torch_ = std::all_of(operators.begin(), operators.end(), is_of_torch) &&
                 std::all_of(captured_.data_calls.begin(), captured_.data_calls.end(),
                             [](const DataDependentCall& call) { return call.parts.empty(); });
  if (!captured_.data_calls.empty()) {
    try {
      staged_ = std::make_unique<StagedProgram>(std::move(graph), std::move(captured_.data_calls), symbols_,
                                                tensor_guards_.size(), captured_.constants, options);
    } catch (const InternalError& e) {  // lowering needs a size which only data can supply
      abort_capture(BreakKind::DataDependentSize, e.what());
    }
    stats_ = staged_->stats();
    return;
  }
  const bool writes_constants = std::any_of(graph->mutations.begin(), graph->mutations.end(),
                                            [](const graph::Mutation& m) { return m.is_constant; });
  driver::Options apart = options;
  apart.constants_apart = writes_constants && constants_are_apart();
  if (apart.constants_apart)
    for (const at::Tensor& c : captured_.constants) memories_.push_back(memory_of(c));
  std::vector<at::Tensor> constants = captured_.constants;
  const auto nodes = static_cast<int64_t>(graph->order.size());
  if (options.freeze && gradients_ == nullptr) frozen_ = FrozenWeights::freeze(*graph, constants, apart);
  Result<driver::Compiled> compiled = driver::compile(std::move(graph), apart);
  CRESSET_CHECK(compiled.ok(), describe(compiled.fallback()));
  stats_ = compiled->stats;
  if (frozen_ != nullptr) stats_.add(frozen_->stats());
  stats_.nodes_captured = nodes;
  small_ = compiled->program.steps.size() <= 2;
  const auto slots = slot_map(symbols_);
  for (const sym::VarId var : compiled->program.symbols) {
    const auto slot = slots.find(var);
    CRESSET_CHECK(slot != slots.end(),
                  "a program symbol that no argument gives: " + env_->to_string(env_->pool().var(var)));
    program_slots_.push_back(slot->second);
  }
  executor_ = std::make_unique<Executor>(std::move(*compiled), std::move(constants), frozen_.get());
}

void GuardedProgram::make_tensor_guards(const std::vector<at::Tensor>& inputs) {
  const graph::Graph& graph = *captured_.graph;
  const sym::ExprPool& pool = env_->pool();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const graph::Value& value = graph.value(graph.inputs[i]);
    TensorGuard guard = guard_for(inputs[i], value.name);
    for (const sym::ExprId e : value.type.sizes) guard.sizes.push_back(pool.is_const(e) ? pool.const_value(e) : -1);
    guard.layout = captured_.input_layouts[i];
    if (!guard.layout.dense)
      for (const sym::ExprId e : value.type.strides)
        guard.strides.push_back(pool.is_const(e) ? pool.const_value(e) : -1);
    for (size_t j = 0; j < i && guard.same_as < 0; ++j)
      if (inputs[j].is_same(inputs[i])) guard.same_as = static_cast<int32_t>(j);
    guard.requires_grad = inputs[i].requires_grad();
    if (*guard.requires_grad) guard.is_leaf = is_known_leaf(inputs[i]);
    tensor_guards_.push_back(std::move(guard));
  }
  for (size_t i = 0; i < captured_.constants.size(); ++i) {
    TensorGuard guard = guard_for(captured_.constants[i], graph.value(graph.constants[i]).name);
    guard.sizes = captured_.constants[i].sizes().vec();
    guard.strides = captured_.constants[i].strides().vec();
    guard.layout.dense = false;
    if (records_gradients_) guard.requires_grad = captured_.constants[i].requires_grad();
    constant_guards_.push_back(std::move(guard));
  }
  constant_marks_.set(captured_.constants, records_gradients_);
  for (const graph::Mutation& m : graph.mutations) {
    mutates_ = true;
    (m.is_constant ? constant_guards_ : tensor_guards_)[m.input].mutated = true;
  }
  if (gradients_ == nullptr) return;
  for (const Backward::Place& place : gradients_->written())
    (place.home == OutputSpec::Kind::Constant ? constant_guards_ : tensor_guards_)[place.position].rebased = true;
}

void GuardedProgram::make_shape_guards() {
  guards_ = env_->minimized_guards();
  if (gradients_ != nullptr) gradients_->seal();
  std::vector<sym::ExprId> conditions;
  for (const sym::SizeGuard& g : guards_) conditions.push_back(g.condition);
  guard_program_ = sym::SizeProgram::compile(env_->pool(), conditions, slot_map(symbols_));
  float_guards_ = FloatGuards(captured_.float_guards);
  if (!float_guards_.sizes().empty())
    float_sizes_ = sym::SizeProgram::compile(env_->pool(), float_guards_.sizes(), slot_map(symbols_));
  for (uint32_t slot = 0; slot < symbols_.size(); ++slot) {
    if (symbols_[slot].source.kind != runtime::SymbolSource::Kind::Computed) continue;
    const DerivedInteger& number = captured_.computed[symbols_[slot].source.position];
    computed_.emplace_back(slot, sym::SizeProgram::compile(env_->pool(), number.sizes(), slot_map(symbols_)));
  }
  find_specialized();
  if (log::enabled(log::Area::Guards))
    for (const std::string& text : guard_texts()) log::write(log::Area::Guards, text);
}

void GuardedProgram::find_specialized() {
  sym::ExprPool& pool = env_->pool();
  for (const auto& [slot, sizes] : computed_) {
    const uint32_t position = symbols_[slot].source.position;
    const auto only = static_cast<int64_t>(captured_.computed[position].made().number);
    const sym::ExprId specialize = pool.eq(pool.var(symbols_[slot].var), pool.constant(only));
    for (size_t i = 0; i < guards_.size(); ++i)
      if (guards_[i].condition == specialize) specialized_.emplace_back(i, position);
  }
}

bool GuardedProgram::wants_other_data(size_t guard, c10::ArrayRef<at::Tensor> inputs) const {
  return std::any_of(specialized_.begin(), specialized_.end(), [&](const auto& specialize) {
    return specialize.first == guard &&
           captured_.computed[specialize.second].made().is_of_other_data({inputs, captured_.constants, nullptr});
  });
}

void GuardedProgram::make_assertions() {
  std::vector<sym::ExprId> conditions;
  std::unordered_set<sym::VarId> made;  // by data
  for (const SymbolBinding& s : symbols_)
    if (s.source.kind == runtime::SymbolSource::Kind::Element ||
        (s.source.kind == runtime::SymbolSource::Kind::InputSize && s.source.position >= tensor_guards_.size()))
      made.insert(s.var);
  for (const sym::RuntimeAssertion& assertion : env_->assertions()) {
    std::vector<sym::VarId> vars;
    env_->pool().collect_vars(assertion.condition, vars);
    if (std::any_of(vars.begin(), vars.end(), [&](sym::VarId v) { return made.contains(v); })) continue;
    conditions.push_back(assertion.condition);
    assertion_texts_.push_back(assertion.message);
  }
  if (!conditions.empty()) assertions_ = sym::SizeProgram::compile(env_->pool(), conditions, slot_map(symbols_));
}

std::vector<std::string> GuardedProgram::input_names() const {
  std::vector<std::string> out;
  for (const TensorGuard& guard : tensor_guards_) out.push_back(guard.name);
  return out;
}

std::vector<std::string> GuardedProgram::guard_texts() const {
  std::vector<std::string> out;
  for (const sym::SizeGuard& g : guards_)
    out.push_back(env_->to_string(g.condition) + (g.reason.op.empty() ? "" : "  asked by " + g.reason.op) +
                  (g.reason.location.empty() ? "" : " at " + g.reason.location));
  const std::vector<std::string> of_floats = float_guard_texts();
  out.insert(out.end(), of_floats.begin(), of_floats.end());
  return out;
}

// A wrong proof step causes wrong answers: the compilation fails and names the step. A step without a timely proof is
// only reported.
void GuardedProgram::validate() {
  if (env_->log() == nullptr) return;
  validation_ = sym::validate(*env_, guards_);
  CRESSET_LOG(Guards, "validation: " + validation_.text());
  CRESSET_CHECK(validation_.ok(), "validation: " + validation_.text());
}

void GuardedProgram::make_outputs() {
  for (const OutputSpec& spec : captured_.outputs)
    returned_input_.push_back(
        spec.kind == OutputSpec::Kind::Input && !spec.is_view ? static_cast<int32_t>(spec.position) : -1);
  outputs_ = ResultViews(std::move(captured_.outputs), env_->pool(), slot_map(symbols_));
}

namespace {

bool strides_match(const TensorGuard& guard, const at::Tensor& t) {
  const bool exact = guard.layout.exact;
  if (guard.layout.dense) {
    if (t.numel() == 0 && !exact) return true;
    int64_t expected = 1;
    for (const uint8_t d : guard.layout.order) {
      if ((exact || t.size(d) != 1) && t.stride(d) != expected) return false;
      expected *= t.size(d);
    }
    return true;
  }
  for (size_t d = 0; d < guard.strides.size(); ++d)
    if (guard.strides[d] >= 0 && guard.strides[d] != t.stride(static_cast<int64_t>(d)) &&
        (exact || t.size(static_cast<int64_t>(d)) != 1))
      return false;
  return true;
}

// The strides of a tensor with these sizes that the guard accepts. -1: any.
std::vector<int64_t> expected_strides(const TensorGuard& guard, const at::Tensor& t) {
  if (!guard.layout.dense) return guard.strides;
  std::vector<int64_t> strides(guard.sizes.size());
  int64_t next = 1;
  for (const uint8_t d : guard.layout.order) strides[d] = std::exchange(next, next * t.size(d));
  return strides;
}

const char* truth(bool value) { return value ? "True" : "False"; }

// "(2, any)", where -1 stands for any number.
std::string any_or(c10::IntArrayRef numbers) {
  std::string text = "(";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i > 0 ? ", " : "") + (numbers[i] < 0 ? "any" : std::to_string(numbers[i]));
  return text + (numbers.size() == 1 ? ",)" : ")");
}

bool sizes_match(const TensorGuard& guard, const at::Tensor& t) {
  if (t.dim() != static_cast<int64_t>(guard.sizes.size())) return false;
  for (size_t d = 0; d < guard.sizes.size(); ++d)
    if (guard.sizes[d] >= 0 && guard.sizes[d] != t.size(static_cast<int64_t>(d))) return false;
  return true;
}

// During another thread's capture the tensor may be an input proxy at this moment; then the keys of the real tensor
// count.
bool has_keys(const at::Tensor& t, uint64_t keys) {
  if (t.key_set().raw_repr() == keys) return true;
  const at::Tensor real = InputProxy::alias_of(t);
  return real.defined() && real.key_set().raw_repr() == keys;
}

}  // namespace

// The caller sets the position in `why`.
bool GuardedProgram::tensor_matches(const TensorGuard& guard, const at::Tensor& t, c10::ArrayRef<at::Tensor> inputs,
                                    GuardFailure* why) const {
  const auto miss_of = [&](GuardKind kind, auto&&... text) {
    if (why != nullptr) why->text = c10::str(guard.name, ": ", text...), why->kind = kind;
    return false;
  };
  const auto miss = [&](auto&&... text) { return miss_of(GuardKind::Tensor, text...); };
  if (!has_keys(t, guard.dispatch_keys) || t.device() != guard.device)
    return miss("expected a tensor on ", guard.device, " of the kind it was compiled for, got ", t.key_set());
  if (t.scalar_type() != guard.dtype) return miss("expected dtype ", guard.dtype, ", got ", t.scalar_type());
  if (guard.requires_grad && t.requires_grad() != *guard.requires_grad)
    return miss("expected requires_grad ", truth(*guard.requires_grad), ", got ", truth(t.requires_grad()));
  if (guard.is_leaf && is_known_leaf(t) != *guard.is_leaf) return miss("expected is_leaf=", *guard.is_leaf);
  if (guard.rebased && !may_rebase(t)) return miss("it is written, which autograd does not allow");
  if (!sizes_match(guard, t))
    return miss_of(GuardKind::Size, "expected sizes ", any_or(guard.sizes), ", got ", any_or(t.sizes()));
  if (!strides_match(guard, t))
    return miss("expected strides ", any_or(expected_strides(guard, t)), ", got ", any_or(t.strides()));
  if (guard.layout.at_start && t.storage_offset() != 0) return miss("expected a tensor at the start of its storage");
  if (guard.same_as >= 0 && !inputs[static_cast<size_t>(guard.same_as)].is_same(t))
    return miss("expected the same tensor as ", tensor_guards_[static_cast<size_t>(guard.same_as)].name);
  return true;
}

bool GuardedProgram::any_tangent(c10::ArrayRef<at::Tensor> inputs) const {
  return std::any_of(inputs.begin(), inputs.end(), has_tangent) ||
         std::any_of(captured_.constants.begin(), captured_.constants.end(), has_tangent);
}

bool GuardedProgram::writes_state() const {
  return std::any_of(constant_guards_.begin(), constant_guards_.end(), [](const auto& guard) { return guard.mutated; });
}

// The first written constant which shares memory with an input; nullptr when there is none.
const TensorGuard* GuardedProgram::overlapping_constant(c10::ArrayRef<at::Tensor> inputs) const {
  for (size_t i = 0; i < constant_guards_.size(); ++i) {
    if (!constant_guards_[i].mutated) continue;
    const auto* memory = captured_.constants[i].storage().unsafeGetStorageImpl();
    for (const at::Tensor& input : inputs)
      if (input.storage().unsafeGetStorageImpl() == memory) return &constant_guards_[i];
  }
  return nullptr;
}

// Whether written constants share no memory with other constants.
bool GuardedProgram::constants_are_apart() const {
  std::unordered_map<const c10::StorageImpl*, int> users;
  for (const at::Tensor& c : captured_.constants) ++users[memory_of(c)];
  for (size_t i = 0; i < constant_guards_.size(); ++i)
    if (constant_guards_[i].mutated && users.at(memory_of(captured_.constants[i])) != 1) return false;
  return true;
}

bool GuardedProgram::overlaps_another(size_t i, c10::ArrayRef<at::Tensor> inputs) const {
  const auto* memory = inputs[i].storage().unsafeGetStorageImpl();
  for (size_t j = 0; j < inputs.size(); ++j)
    if (j != i && inputs[j].storage().unsafeGetStorageImpl() == memory &&
        tensor_guards_[j].same_as != static_cast<int32_t>(i))
      return true;
  for (const at::Tensor& c : captured_.constants)
    if (c.storage().unsafeGetStorageImpl() == memory) return true;
  return false;
}

bool GuardedProgram::matches(c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<int64_t> ints, int64_t* symbols,
                             GuardFailure* why) const {
  const auto miss = [&](GuardKind kind, size_t position, auto&&... text) {
    if (why != nullptr) *why = {c10::str(text...), kind, static_cast<uint32_t>(position)};
    return false;
  };
  if (inputs.size() != tensor_guards_.size()) return miss(GuardKind::Argument, 0, "expected another number of tensors");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!tensor_matches(tensor_guards_[i], inputs[i], inputs, why)) {
      if (why != nullptr) why->position = static_cast<uint32_t>(i);
      return false;
    }
  const bool unchanged = constant_marks_.hold();
  for (size_t i = 0; !unchanged && i < constant_guards_.size(); ++i)
    if (!tensor_matches(constant_guards_[i], captured_.constants[i], inputs, why)) {
      if (why != nullptr && why->kind == GuardKind::Tensor) why->kind = GuardKind::State;
      return false;
    }
  for (size_t i = 0; mutates_ && i < inputs.size(); ++i)
    if (tensor_guards_[i].mutated && tensor_guards_[i].same_as < 0 && overlaps_another(i, inputs))
      return miss(GuardKind::Tensor, i, tensor_guards_[i].name,
                  ": it is written, and shares memory with another tensor");
  if (const TensorGuard* constant = mutates_ ? overlapping_constant(inputs) : nullptr)
    return miss(GuardKind::State, 0, constant->name, ": it is written, and shares memory with an argument");
  const auto is_there = [](const auto* memory, const at::Tensor& constant) { return memory_of(constant) == memory; };
  if (!std::equal(memories_.begin(), memories_.end(), captured_.constants.begin(), is_there) && !constants_are_apart())
    return miss(GuardKind::State, 0, "what is written shares memory with another tensor of the program's");
  fill_symbols(inputs, ints, symbols);
  const sym::Symbol* const uncomputed = failed_computation(inputs, symbols);
  const int64_t failed = guard_program_.first_zero(symbols);
  if (failed < 0 && uncomputed != nullptr)
    return miss(GuardKind::Argument, 0, "expected a whole number: ", uncomputed->source);
  if (failed < 0) {
    for (const DataGuard& guard : data_guards_) {
      if (guard.holds(inputs, symbols)) continue;
      return miss(GuardKind::State, 0, "a number read from tensor data at ", guard.location(), " is another one");
    }
    const int64_t missed = failed_float_guard(inputs, symbols);
    if (missed < 0) return true;
    const FloatGuard& guard = captured_.float_guards[static_cast<size_t>(missed)];
    if (guard.of_data != OfData::No && guard.is_of_other_data({inputs, captured_.constants, nullptr}))
      (guard.of_data == OfData::Specialization ? specializations_went_otherwise_ : data_went_otherwise_) = true;
    if (why != nullptr) miss(GuardKind::Argument, 0, "expected ", guard.text(names_in_floats()));
    return false;
  }
  if (wants_other_data(static_cast<size_t>(failed), inputs)) specializations_went_otherwise_ = true;
  if (why != nullptr) *why = failure_of(guards_[static_cast<size_t>(failed)], symbols);
  return false;
}

GuardFailure GuardedProgram::failure_of(const sym::SizeGuard& guard, const int64_t* symbols) const {
  using Kind = runtime::SymbolSource::Kind;
  std::unordered_map<sym::VarId, int64_t> values;
  for (size_t i = 0; i < symbols_.size(); ++i) values[symbols_[i].var] = symbols[i];
  GuardFailure out{sym::explain_failure(*env_, guard, values)};
  std::vector<sym::VarId> vars;
  env_->pool().collect_vars(guard.condition, vars);
  for (const SymbolBinding& s : symbols_) {
    if (std::find(vars.begin(), vars.end(), s.var) == vars.end()) continue;
    if (s.source.kind == Kind::InputSize || s.source.kind == Kind::InputStride || s.source.kind == Kind::ConstantSize)
      return out.kind = GuardKind::Size, out;
    if (s.source.kind == Kind::IntArgument) out.kind = GuardKind::Number, out.position = s.source.position;
  }
  return out;
}

void GuardedProgram::fill_symbols(c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<int64_t> ints,
                                  int64_t* symbols) const {
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const runtime::SymbolSource& source = symbols_[i].source;
    switch (source.kind) {
      case runtime::SymbolSource::Kind::InputSize:
        // Inputs after the caller's tensors: the program makes this size when it runs.
        symbols[i] = source.position < inputs.size() ? inputs[source.position].size(source.dim) : 0;
        break;
      case runtime::SymbolSource::Kind::InputStride:
        symbols[i] = inputs[source.position].stride(source.dim);
        break;
      case runtime::SymbolSource::Kind::IntArgument:
        symbols[i] = ints[source.position];
        break;
      case runtime::SymbolSource::Kind::Element:
        symbols[i] = 0;
        break;
      case runtime::SymbolSource::Kind::ConstantSize:
        symbols[i] = captured_.constants[source.position].size(source.dim);
        break;
      case runtime::SymbolSource::Kind::Computed:
        break;  // failed_computation() fills in these
    }
  }
}

// The first derived integer which the call's floats and sizes cannot produce; its slot becomes 0. nullptr: there is
// none.
const sym::Symbol* GuardedProgram::failed_computation(c10::ArrayRef<at::Tensor> inputs, int64_t* symbols) const {
  const sym::Symbol* failed = nullptr;
  for (const auto& [slot, sizes_of] : computed_) {
    c10::SmallVector<int64_t, 16> sizes(sizes_of.output_count());
    if (!sizes.empty()) sizes_of.run(symbols, sizes.data());
    const DerivedInteger& number = captured_.computed[symbols_[slot].source.position];
    const std::optional<int64_t> value = number.value({inputs, captured_.constants, sizes.data()});
    symbols[slot] = value.value_or(0);
    if (!value && failed == nullptr) failed = env_->symbol(symbols_[slot].var);
  }
  return failed;
}

// The first failed float guard; -1: all hold.
int64_t GuardedProgram::failed_float_guard(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const {
  if (float_guards_.empty()) return -1;
  c10::SmallVector<int64_t, 16> sizes(float_sizes_.output_count());
  float_sizes_.run(symbols, sizes.data());
  return float_guards_.first_missed({inputs, captured_.constants, sizes.data()});
}

FloatExpr::Names GuardedProgram::names_in_floats() const {
  FloatExpr::Names names{input_names(), {}, [this, sources = sym::source_names(*env_)](sym::ExprId size) {
                           return sym::to_string(env_->pool(), size, sources);
                         }};
  for (const TensorGuard& constant : constant_guards_) names.constants.push_back(constant.name);
  return names;
}

std::vector<std::string> GuardedProgram::float_guard_texts() const {
  std::vector<std::string> out;
  if (captured_.float_guards.empty()) return out;
  const FloatExpr::Names names = names_in_floats();
  for (const FloatGuard& guard : captured_.float_guards) out.push_back(guard.text(names));
  return out;
}

void GuardedProgram::check_assumptions(const int64_t* symbols) const {
  if (assertion_texts_.empty()) return;
  if (const int64_t failed = assertions_.first_zero(symbols); failed >= 0)
    throw AssumptionFailed({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                           "cresset: " + assertion_texts_[static_cast<size_t>(failed)]);
}

c10::SmallVector<int64_t, 16> GuardedProgram::program_symbols(const int64_t* symbols) const {
  c10::SmallVector<int64_t, 16> out(program_slots_.size());
  for (size_t i = 0; i < program_slots_.size(); ++i) out[i] = symbols[program_slots_[i]];
  return out;
}

// The program writes a tensor once; eager mode counts each write, and each change of a view's geometry in place.
void GuardedProgram::count_writes(c10::ArrayRef<at::Tensor> inputs) const {
  for (const Captured::Written& written : captured_.written) {
    const at::Tensor& t = (written.is_constant ? captured_.constants : inputs)[written.position];
    for (uint32_t i = 0; i < written.steps && !t.is_inference(); ++i) t.unsafeGetTensorImpl()->bump_version();
  }
}

std::vector<at::Tensor> GuardedProgram::run(c10::ArrayRef<at::Tensor> inputs, int64_t* symbols) {
  check_assumptions(symbols);
  std::vector<at::Tensor> results, before;
  {
    std::optional<at::AutoDispatchBelowADInplaceOrView> below;  // what is recorded of the call is said by gradients_
    if (gradients_ != nullptr) {
      below.emplace();
      before = gradients_->before_writes(inputs);
    }
    if (frozen_ != nullptr) frozen_->refresh();
    results = staged_ != nullptr ? staged_->run(inputs, symbols) : executor_->run(inputs, program_symbols(symbols));
  }
  count_writes(inputs);
  const auto strides = visible_ != nullptr ? visible_->find(inputs, symbols) : nullptr;
  std::vector<at::Tensor> out =
      outputs_.make(inputs, captured_.constants, results, symbols, gradients_ != nullptr, strides.get());
  if (gradients_ != nullptr) gradients_->attach(inputs, results, outputs_, out, symbols, before);
  outputs_.set_versions(out);
  return out;
}

namespace {

// Whether the step raises for no data.
bool never_raises(const runtime::Step& step) {
  const auto* call = std::get_if<runtime::ExternCall>(&step);
  const ops::OpDef* def = call != nullptr ? ops::find(call->op) : nullptr;
  return call == nullptr || (def != nullptr && def->never_raises);
}

}  // namespace

void GuardedProgram::choose_released() {
  lets_go_.assign(tensor_guards_.size(), false);
  if (executor_ == nullptr || gradients_ != nullptr) return;
  const std::vector<runtime::Step>& steps = executor_->program().steps;
  if (!std::all_of(steps.begin(), steps.end(), never_raises)) return;
  lets_go_.assign(tensor_guards_.size(), true);
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_.spec(i).kind == OutputSpec::Kind::Input) lets_go_[outputs_.spec(i).position] = false;
}

std::vector<at::Tensor> GuardedProgram::run_releasing(std::span<at::Tensor> inputs, int64_t* symbols) {
  std::vector<at::Tensor> given(inputs.begin(), inputs.end());
  const auto strides = visible_ != nullptr ? visible_->find(inputs, symbols) : nullptr;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (lets_go_[i]) inputs[i].reset();
  if (frozen_ != nullptr) frozen_->refresh();
  if (!captured_.written.empty()) count_writes(given);
  std::vector<at::Tensor> results = executor_->run_releasing(std::move(given), program_symbols(symbols));
  std::vector<at::Tensor> out =
      outputs_.make({inputs.data(), inputs.size()}, captured_.constants, results, symbols, false, strides.get());
  outputs_.set_versions(out);
  return out;
}

const driver::Stats& GuardedProgram::backward_stats() const { return gradients_->stats(); }

}  // namespace cresset::bridge
